"""The machines of the table: shipped ones, the reduced SpiderMill, and a foreign model if it is at hand."""

from __future__ import annotations

from pathlib import Path

from tauloop import Mechanism, load
from tauloop.formats import ImportOptions, RodRecognition, load_urdf
from tauloop.kinematics.reduction import reduce
from tauloop.reduction import as_laminas

#: Models of others, beside the repository.
MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
DIGIT = MODELS / "example_parallel_robots" / "digit_like"


class NotThere(Exception):
    """A machine is not on this computer; the reason is the text."""


def machine(name: str) -> Mechanism:
    """A machine of the table by name.

    Raises:
        NotThere: a model of others is not here.
    """
    if name == "spidermill reduced":
        return as_laminas(reduce(load("spidermill")).mechanism)
    if name == "digit_like":
        if not DIGIT.is_dir():
            raise NotThere("../shared/models is not here")
        options = ImportOptions(rods=RodRecognition())
        return load_urdf(DIGIT / "robot.urdf", DIGIT / "robot.yaml", options=options)
    return load(name)

"""The machines of the tables: shipped ones, the reduced SpiderMill, and foreign models if they are at hand."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tauloop import Mechanism, load
from tauloop.formats import ImportOptions, RodRecognition, load_urdf
from tauloop.kinematics.reduction import reduce_model
from tauloop.mechanism.reduction import as_laminas

#: Models of others, in a folder next to the repository.
MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
TX40 = MODELS.parent / "data" / "tx40" / "tx40_nomesh.urdf"
DIGIT = MODELS / "example_parallel_robots" / "digit_like"


class NotThere(Exception):
    """A machine is not on this computer; the text states the reason."""


def machine(name: str) -> Mechanism:
    """Return a machine of the table by name.

    Raises:
        NotThere: a model of others is missing.
    """
    if name == "spidermill reduced":
        return as_laminas(reduce_model(load("spidermill")).mechanism)
    if name == "digit_like":
        if not DIGIT.is_dir():
            raise NotThere("../shared/models is not here")
        options = ImportOptions(rods=RodRecognition())
        return load_urdf(DIGIT / "robot.urdf", DIGIT / "robot.yaml", options=options)
    if name == "tx40 with a flange":
        return _tx40()
    return load(name)


def _tx40() -> Mechanism:
    """Return the serial arm; its last link, without inertia in the file, is given that of a flange of 0.2 kg."""
    if not TX40.is_file():
        raise NotThere("../shared/data is not here")
    head, tag, last = TX40.read_text(encoding="utf-8").rpartition("<inertia ")
    for axis in ("xx", "yy", "zz"):
        last = last.replace(f'i{axis}="0.000"', f'i{axis}="0.0001"', 1)
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "tx40.urdf"
        urdf.write_text(head + tag + last, encoding="utf-8")
        return load_urdf(
            urdf, Path(__file__).resolve().parents[2] / "examples" / "tx40" / "side.yaml"
        )

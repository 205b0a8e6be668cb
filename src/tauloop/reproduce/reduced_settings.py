"""The settings of an experiment with a reduced model, read from its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tauloop.reproduce.experiments import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedErrors:
    """Mean relative errors of the actuators' forces in percent, as printed.

    Attributes:
        before, after: by actuator, with the parameters of the full machine and with the estimated ones.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]

    def cut(self, actuator: int) -> float:
        """Share of the error that the estimation took away."""
        return 1.0 - self.after[actuator] / self.before[actuator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What the paper states.

    Attributes:
        by: where.
        identification, verification: errors on the two trajectories.
        cuts: least cuts of the verification errors, by actuator.
        condition: condition number of the information matrix.
        minimal: number of minimal parameters.
        estimated: values that the paper gives to parameters after its estimation, SI.
    """

    by: str
    identification: PrintedErrors
    verification: PrintedErrors
    cuts: tuple[float, ...]
    condition: float
    minimal: int
    estimated: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSet:
    """A printed set of parameters: combinations of products, and their units."""

    members: Mapping[str, Mapping[str, str]]
    units: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedSettings:
    """Everything that the paper says or leaves open; SI.

    Attributes:
        machine: the unreduced machine.
        contact_offset: displacement of rods' far ends in the plant alone, m, in the frame of the body they stand on.
        massless: rods that the reduced model takes for massless.
        parts, actuators: what these rods, and the actuators, are called.
        readings: what the reduced model, and the other reading of it (`placed`), are called.
        readings_in_print: where the paper has which.
        expected: what the paper expects of an exact plant, and what is so.
        joints: coordinates whose motion is given and measured.
        harmonics, period, stroke, speed, acceleration: of both trajectories, and limits of the joints.
        frequency: samples per second, Hz.
        seed: of all random numbers.
        random, starts: of the excitation.
        least_force: share of the largest force below which a sample is left out of relative errors.
        products: parameters in which the reduced model is written, expressions.
        lengths: parameters on which coefficients of the regrouping depend.
        placed: the other reading of the reduced model.
        printed: the paper's minimal set.
        spindle_factors, offset_sizes: factors of the massless rods' masses in the plant, and sizes (m) of the offset.
        stated: what the paper says.
    """

    machine: str
    contact_offset: Mapping[str, tuple[float, float, float]]
    massless: tuple[str, ...]
    parts: str
    actuators: tuple[str, ...]
    readings: tuple[str, ...]
    readings_in_print: str
    expected: str
    joints: tuple[str, ...]
    harmonics: int
    period: float
    stroke: float
    speed: float
    acceleration: float
    frequency: float
    seed: int
    random: int
    starts: int
    representatives: tuple[str, ...]
    least_force: float
    products: tuple[str, ...]
    lengths: tuple[str, ...]
    placed: Mapping[str, str]
    printed: PrintedSet
    spindle_factors: tuple[float, ...]
    offset_sizes: tuple[float, ...]
    stated: Stated


def reduced_settings(experiment: Experiment) -> ReducedSettings:
    """The settings of an experiment's file."""
    given = dict(experiment.settings)
    printed = given.pop("printed")
    stated = dict(given.pop("stated"))
    for name in ("identification", "verification"):
        stated[name] = PrintedErrors(**{key: tuple(values) for key, values in stated[name].items()})
    stated["cuts"] = tuple(stated["cuts"])
    given["contact_offset"] = {name: tuple(offset) for name, offset in given["contact_offset"].items()}
    lists = (
        "massless",
        "actuators",
        "readings",
        "representatives",
        "joints",
        "products",
        "lengths",
        "spindle_factors",
        "offset_sizes",
    )
    given |= {name: tuple(given[name]) for name in lists}
    return ReducedSettings(
        printed=PrintedSet(
            members={name: dict(entry["terms"]) for name, entry in printed.items()},
            units={name: entry["unit"] for name, entry in printed.items()},
        ),
        stated=Stated(**stated),
        **given,
    )

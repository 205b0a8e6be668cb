"""Models of a measured arm's torque at rest, chosen by validation and judged on held-out data.

    python benchmarks/friction_at_rest.py DATA [--json]

DATA is the folder of the TX40 log (docs/identification/tx40.md). Every model adds columns to the
regressor, or changes Coulomb's. Fitted to the first half of the first 70 %, validated on the
second, then fitted to both and judged on the last 30 %; errors are root mean squares over outputs,
in % of the largest torque.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tauloop import Model
from tauloop.formats.urdf.reader import load_urdf
from tauloop.identification import (
    RegressionData,
    WeightedLeastSquares,
    fit_regression,
    regression_data,
    with_columns,
)
from tauloop.logs import Preparation, decimate, load_recording, prepare, read_log, samples

HERE = Path(__file__).parent.parent / "examples" / "tx40"
#: The preparation that the scan chooses.
PREPARATION = Preparation(cutoff=70.0, order=2, standstill=1e-3, trim=200, decimation=10)
FADED = (0.02, 0.05, 0.1, 0.3, 1.0)  # s
PRESLIDING = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)  # rad
SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
#: Shorter rests are reversals of the motion, samples after decimation.
SHORTEST = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """The log, prepared.

    Attributes:
        data: regression data of the joints.
        motor, joint: velocities (N, 6) at the full rate; of motors at rest zero.
        position: of joints (N, 6), rad.
        transmission: motor speeds per joint speeds (6, 6).
    """

    data: RegressionData
    motor: np.ndarray
    joint: np.ndarray
    position: np.ndarray
    transmission: np.ndarray

    def thinned(self, columns: np.ndarray) -> np.ndarray:
        """Return columns decimated as the regressor is."""
        return np.asarray(decimate(columns, PREPARATION.decimation)[: len(self.data)])

    def own(self, columns: np.ndarray) -> np.ndarray:
        """Return one column (N', 6, 6) for each joint from (N, 6), nonzero in its own row only."""
        return np.asarray(self.thinned(columns)[:, :, None] * np.eye(6))

    @property
    def held_sign(self) -> np.ndarray:
        """Return the sign of the last motion of joints (N, 6) while their motors rest, else zero."""
        signs = np.sign(self.motor)
        last = np.maximum.accumulate(
            np.where(signs != 0.0, np.arange(len(signs))[:, None], -1), axis=0
        )
        kept = np.where(last >= 0, np.take_along_axis(signs, np.maximum(last, 0), axis=0), 0.0)
        return np.asarray(kept * (self.motor == 0.0) * np.sign(np.diag(self.transmission)))


def read(folder: Path) -> Recording:
    """Read and prepare the log."""
    model = Model(load_urdf(folder / "tx40_nomesh.urdf", HERE / "side.yaml"))
    described = load_recording(HERE / "recording.yaml", folder)
    log = read_log(*described.files, sample_rate=described.sample_rate)
    prepared = prepare(log, PREPARATION)
    names = [actuator.name for actuator in model.mechanism.actuators]
    A = np.asarray(model.assembly.loops.transmission[:, list(model.assembly.driven)])
    motor = samples(prepared, "velocity", names)
    return Recording(
        data=regression_data(model, log, PREPARATION, output="joints"),
        motor=motor,
        joint=motor @ np.linalg.inv(A).T,
        position=samples(prepared, "position", names) @ np.linalg.inv(A).T,
        transmission=A,
    )


def models(given: Recording) -> Iterator[tuple[str, RegressionData]]:
    """Yield every model of friction at rest, and others that might explain a constant torque there."""
    data, held = given.data, given.held_sign
    joints = [f"joint_{k + 1}" for k in range(6)]

    def more(columns: np.ndarray, what: str, unit: str = "N m") -> RegressionData:
        names = [f"{joint}.{what}" for joint in joints]
        return with_columns(data, columns, names, [unit] * len(names))

    yield "as described", data
    yield "sign of the last motion, a column per joint", more(given.own(held), "held")
    since = _since(given.motor == 0.0)
    for time in FADED:
        yield (
            f"the same, faded with {1e3 * time:g} ms",
            more(given.own(held * np.exp(-since / time)), "held"),
        )
    for share in SHARES:
        yield (
            f"{share:g} of Coulomb's in the last direction",
            _coulomb(given, held * share, joints, adds=True),
        )
    wrist = given.thinned(held[:, 5:])[:, 0]
    shared = np.zeros((*data.regressor.shape[:2], 1))
    shared[:, 4, 0] = shared[:, 5, 0] = wrist
    yield (
        "sign of the last motion, the wrist's column",
        with_columns(data, shared, ["motor_6.held"], ["N m"]),
    )
    for length in PRESLIDING:
        yield (
            f"Dahl's hysteresis, {length:g} rad",
            _coulomb(given, _dahl(given.position, length), joints, adds=False),
        )
    first = fit_regression(data.part(slice(0, len(data) * 35 // 100)), None, WeightedLeastSquares())
    torque = np.abs(data.regressor @ first.parameters)
    signs = np.stack(
        [data.regressor[:, k, data.parameters.index(f"{joints[k]}.coulomb")] for k in range(6)],
        axis=1,
    )
    yield "proportional to the torque", more((signs * torque)[:, :, None] * np.eye(6), "load", "1")
    time = np.arange(len(given.motor))[:, None] / len(given.motor) * np.ones(6)
    yield "drift of the offsets", more(given.own(time), "drift")
    yield "springs", more(given.own(given.position), "spring", "N m/rad")


def _coulomb(
    given: Recording, replaced: np.ndarray, joints: list[str], *, adds: bool
) -> RegressionData:
    """Return Coulomb's columns plus (N, 6), or replaced by it; the wrist's shared ones by the last joint's."""
    data = given.data
    Y = np.array(data.regressor)
    columns = given.thinned(replaced)
    for k, joint in enumerate(joints):
        place = data.parameters.index(f"{joint}.coulomb")
        Y[:, k, place] = columns[:, k] + (Y[:, k, place] if adds else 0.0)
    place, ratio = data.parameters.index("motor_6.coulomb"), given.transmission[5, 5]
    for row in (4, 5):
        Y[:, row, place] = ratio * columns[:, 5] + (Y[:, row, place] if adds else 0.0)
    return replace(data, regressor=Y)


def _since(rests: np.ndarray) -> np.ndarray:
    """Return the seconds since the last motion (N, 6) at 5 kHz."""
    count = np.arange(1, len(rests) + 1)[:, None]
    return np.asarray((count - np.maximum.accumulate(np.where(rests, 0, count), axis=0)) / 5000.0)


def _dahl(position: np.ndarray, length: float) -> np.ndarray:
    """Return Dahl's friction state: dz/dq = (1 - z sign(dq)) / length, exact from sample to sample."""
    moved = np.diff(position, axis=0, prepend=position[:1])
    sign, kept = np.sign(moved), np.exp(-np.abs(moved) / length)
    z = np.zeros_like(moved)
    for k in range(1, len(z)):
        z[k] = sign[k] + (z[k - 1] - sign[k]) * kept[k]
    return z


def judged(data: RegressionData) -> dict[str, object]:
    """Return validation and held-out errors."""
    last = round(0.7 * len(data))
    half = round(0.5 * last)
    whole = fit_regression(
        data.part(slice(0, last)), data.part(slice(last, None)), WeightedLeastSquares()
    )
    inner = fit_regression(
        data.part(slice(0, half)), data.part(slice(half, last)), WeightedLeastSquares()
    )
    scale = np.array([part.scale for part in whole.held_out])
    percent = 100.0 / scale
    errors = [percent * np.array([part.rmse for part in x.held_out]) for x in (inner, whole)]
    return {
        "validation": float(np.sqrt(np.mean(errors[0] ** 2))),
        "held_out": float(np.sqrt(np.mean(errors[1] ** 2))),
        "by_joint": errors[1].tolist(),
    }


def agreement(given: Recording) -> dict[str, list[int]]:
    """Count rests whose mean residual has the sign of the last motion, and all rests; training and held out."""
    data = given.data
    last = round(0.7 * len(data))
    found = fit_regression(data.part(slice(0, last)), None, WeightedLeastSquares())
    residual = data.forces - data.regressor @ found.parameters
    held = given.held_sign[:: PREPARATION.decimation][: len(data)]
    rests = (given.motor == 0.0)[:: PREPARATION.decimation][: len(data)]
    counts = {"training": [0, 0], "held out": [0, 0]}
    for k in range(6):
        edges = np.flatnonzero(np.diff(rests[:, k], prepend=False, append=False))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if end - start < SHORTEST or held[start, k] == 0.0:
                continue
            place = counts["training" if start < last else "held out"]
            place[0] += int(np.sign(residual[start:end, k].mean()) == np.sign(held[start, k]))
            place[1] += 1
    return counts


def main() -> None:
    """Print all models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    given = read(arguments.data)
    found = {name: judged(data) for name, data in models(given)}
    counts = agreement(given)
    if arguments.json:
        print(
            json.dumps(
                {"models": found, "residual has the sign of the last motion": counts}, indent=2
            )
        )
        return
    table = Table("model", "validation", "held out", "by joint")
    for name, row in found.items():
        joints = " ".join(f"{value:.2f}" for value in row["by_joint"])  # type: ignore[attr-defined]
        table.add_row(name, f"{row['validation']:.2f}", f"{row['held_out']:.2f}", joints)
    console = Console()
    console.print(table)
    console.print(f"rests in which the residual has the sign of the last motion: {counts}")


if __name__ == "__main__":
    main()

"""Motion of single elements of a machine along a log, passive joints too, and forces on them in the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.identification.regression.from_log import (
    leading_transmission,
    present_rows,
    require_positions,
)
from tauloop.logs import (
    Preparation,
    Signals,
    common_cutoff,
    decimate,
    prepared_signals,
    sample_period,
    samples,
    with_cutoffs,
)
from tauloop.logs.log import Log
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model


@dataclass(frozen=True, kw_only=True, eq=False)
class ElementMotion(Shown):
    """Speeds of the freedoms of joints, telescopic rods and motors at the log's own rate.

    An element moves at v_e = J_e w, with w the speeds of the leading actuators; a force f on it
    adds J_e^T f to the forces on these (virtual work).

    Attributes:
        turns: whether each element turns, by name.
        jacobian: J (N, n_elements, n).
        velocity: w (N, n).
        mixing: what the forces on the leading actuators are in the outputs (n, n_out), or None for
            themselves.
        period: s.
        factor: of the decimation.
        cutoff: that forces and regressor pass, as a share of the sampling rate; None for none.
        present: (N, n_out) rows that count, or None for all.
    """

    turns: dict[str, bool]
    jacobian: np.ndarray
    velocity: np.ndarray
    mixing: np.ndarray | None
    period: float
    factor: int
    cutoff: float | None
    present: np.ndarray | None

    def of(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Speeds (N, n_e) of some elements, and rows (N, n_out, n_e) of a unit of force on each."""
        J = self.jacobian[:, [list(self.turns).index(name) for name in names]]
        speed = np.einsum("nem,nm->ne", J, self.velocity)
        rows = J if self.mixing is None else J @ self.mixing
        return speed, rows.transpose(0, 2, 1)

    def stroke(self, name: str) -> float:
        """Range of an element's motion, m or rad."""
        speed, _ = self.of((name,))
        return float(np.ptp(np.cumsum(speed[:, 0]) * self.period))

    @property
    def of_outputs(self) -> np.ndarray:
        """Speeds (N, n_out) of the outputs' own motion: w, or that of the driven coordinates."""
        return (
            self.velocity
            if self.mixing is None
            else np.asarray(self.velocity @ np.linalg.pinv(self.mixing).T)
        )

    def force_unit(self, name: str) -> str:
        """Unit of a force on an element."""
        return "N m" if self.turns[name] else "N"

    def damping_unit(self, name: str) -> str:
        """Unit of a force by speed."""
        return "N m s/rad" if self.turns[name] else "N s/m"

    def decimated(self, columns: np.ndarray) -> np.ndarray:
        """Return columns (N, n_out, n_new) decimated as the regressor is, and zero where it has no row.

        Outputs on which no column acts are zero without any filter.
        """
        counted = columns if self.present is None else columns * self.present[:, :, None]
        acting = np.flatnonzero(columns.any(axis=(0, 2)))
        filtered = decimate(counted[:, acting], self.factor, self.cutoff)
        thinned = np.zeros((len(filtered), *columns.shape[1:]))
        thinned[:, acting] = filtered
        if self.present is None:
            return thinned
        return np.asarray(thinned * self.present[:: self.factor][: len(thinned), :, None])


def element_motion(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    output: str = "actuators",
    prepared: Signals | None = None,
) -> ElementMotion:
    """Motion of all elements of a machine along a log.

    Args:
        model: the machine.
        log: positions of all actuators, or of the leading ones of many.
        preparation: filtering, trimming, decimation.
        output: "actuators", or "joints" for forces on the driven coordinates.
        prepared: the log as `prepared_signals` prepares it, where that is done already.

    Raises:
        InputError: no such output.
        LogError: positions are missing, misspelt or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    require_positions(model, log, output)
    if prepared is None:
        preparation = with_cutoffs(log, preparation)
        prepared = prepared_signals(log, preparation)
    port = model.actuators.ports.position.columns
    position, velocity = (samples(prepared, kind, port) for kind in ("position", "velocity"))
    motion = motion_of_elements(model, position, velocity, period=sample_period(log), output=output)
    return replace(
        motion,
        factor=preparation.decimation,
        cutoff=common_cutoff(prepared, preparation),
        present=present_rows(model, prepared, output),
    )


def motion_of_elements(
    model: Model,
    position: np.ndarray,
    velocity: np.ndarray,
    *,
    period: float,
    output: str = "actuators",
) -> ElementMotion:
    """Motion of all elements where the leading actuators move so: positions and velocities (N, n) every `period`, SI.

    Raises:
        PoseError: the motion leaves the workspace of the described machine.
    """
    start = model.actuators.track(position).q if model.assembly.rows else None
    G = model.actuators.embedding(position, start=start)
    return ElementMotion(
        turns=elements(model),
        jacobian=np.concatenate([G, model.assembly.loops.transmission @ G], axis=1),
        velocity=velocity,
        mixing=leading_transmission(model) if output == "joints" else None,
        period=period,
        factor=1,
        cutoff=None,
        present=None,
    )


def elements(model: Model) -> dict[str, bool]:
    """Whether each element that may have friction turns (rad/s, N m) or slides: freedoms of joints, rods, motors."""
    actuators = model.mechanism.actuators
    names = (*model.topology.velocity_names, *(actuator.name for actuator in actuators))
    turns = (
        *model.topology.angular,
        *(model.topology.motor_turns(actuator) for actuator in actuators),
    )
    return dict(zip(names, turns, strict=True))


def require_elements(model: Model, names: Sequence[str]) -> None:
    """Refuse names that are no element, or none at all.

    Raises:
        IdentificationError: with all problems.
    """
    known = elements(model)
    what = "is no freedom of a joint, telescopic rod or motor with a coordinate of its own"
    problems = unknown_names(names, known, what)
    if not names:
        problems.append(
            Problem("friction", "no element is named", f"choose among {', '.join(known)}")
        )
    IdentificationError.raise_if_any(problems)

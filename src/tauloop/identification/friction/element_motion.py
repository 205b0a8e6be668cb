"""Motion of the elements of a machine along a log, and the effect of forces on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
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
class ElementMotion(ReprMixin):
    """Motion of joint coordinates, telescopic rods and motors (elements) along a log.

    The samples are those of the log before decimation. An element moves at the speed v_e = J_e w,
    where w (n,) are the speeds of the leading actuators. A force f on
    it adds J_e^T f to the forces on the actuators (virtual work).

    Attributes:
        is_rotational: whether each element is rotational, by name.
        jacobian: J (N, n_elements, n) from the speeds of the actuators to those of the elements.
        velocity: w (N, n), speeds of the leading actuators, rad/s or m/s.
        mixing: linear map (n, n_out) from the forces on the leading actuators to the outputs; None
            if the outputs are these forces.
        period: sampling period, s.
        factor: decimation factor.
        cutoff: cutoff of the filter of forces and regressor, as a fraction of the sampling rate;
            None for no filter.
        present: (N, n_out) whether each output is valid at each sample; None if all are valid.
    """

    is_rotational: dict[str, bool]
    jacobian: np.ndarray
    velocity: np.ndarray
    mixing: np.ndarray | None
    period: float
    factor: int
    cutoff: float | None
    present: np.ndarray | None

    turns = old_attribute("turns", "is_rotational")

    def of(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return speeds (N, n_e) of elements, and rows (N, n_out, n_e) of unit forces on them."""
        J = self.jacobian[:, [list(self.is_rotational).index(name) for name in names]]
        speed = np.einsum("nem,nm->ne", J, self.velocity)
        rows = J if self.mixing is None else J @ self.mixing
        return speed, rows.transpose(0, 2, 1)

    def stroke(self, name: str) -> float:
        """Return the range of an element's motion, m or rad."""
        speed, _ = self.of((name,))
        return float(np.ptp(np.cumsum(speed[:, 0]) * self.period))

    @property
    def of_outputs(self) -> np.ndarray:
        """Speeds (N, n_out) that belong to the output forces, SI.

        They are the speeds of the actuators, or of the driven coordinates.
        """
        if self.mixing is None:
            return self.velocity
        return np.asarray(self.velocity @ np.linalg.pinv(self.mixing).T)

    def force_unit(self, name: str) -> str:
        """Return the unit of a force on an element."""
        return "N m" if self.is_rotational[name] else "N"

    def damping_unit(self, name: str) -> str:
        """Return the unit of a force divided by a speed of an element."""
        return "N m s/rad" if self.is_rotational[name] else "N s/m"

    def decimated(self, columns: np.ndarray, acting: np.ndarray | None = None) -> np.ndarray:
        """Return columns (N, n_out, n_new), decimated as the regressor, with zeros in invalid rows.

        Outputs that the columns do not affect are set to zero without filtering.

        Args:
            columns: columns at the log's sampling rate, of all outputs, or only of those in
                `acting`.
            acting: indices of the outputs to which the columns belong; by default, all.
        """
        if acting is None:
            acting = np.flatnonzero(columns.any(axis=(0, 2)))
            columns = columns[:, acting]
        if self.present is not None:
            columns = columns * self.present[:, acting, None]
        outputs = self.jacobian.shape[2] if self.mixing is None else self.mixing.shape[1]
        filtered = decimate(columns, self.factor, self.cutoff)
        decimated_columns = np.zeros((len(filtered), outputs, columns.shape[2]))
        decimated_columns[:, acting] = filtered
        if self.present is None:
            return decimated_columns
        return np.asarray(
            decimated_columns * self.present[:: self.factor][: len(decimated_columns), :, None]
        )


def element_motion(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    output: str = "actuators",
    prepared: Signals | None = None,
) -> ElementMotion:
    """Return the motion of all elements of a machine along a log.

    Args:
        model: the machine.
        log: log with the positions of all actuators; of redundant actuators, the leading ones.
        preparation: filtering, trimming, decimation.
        output: "actuators", or "joints" for forces on the driven coordinates.
        prepared: the log after `prepared_signals`, if it has been applied already.

    Raises:
        InputError: the output does not exist.
        LogError: positions are missing, misspelled or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    require_positions(model, log, output)
    if prepared is None:
        preparation = with_cutoffs(log, preparation)
        prepared = prepared_signals(log, preparation)
    names = model.actuators.ports.position.columns
    position = samples(prepared, "position", names)
    velocity = samples(prepared, "velocity", names)
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
    """Return the motion of all elements for a motion of the leading actuators.

    Args:
        model: the machine.
        position, velocity: (N, n) motion of the leading actuators, SI.
        period: sampling period, s.
        output: "actuators", or "joints" for forces on the driven coordinates.

    Raises:
        PoseError: the motion leaves the workspace of the described machine.
    """
    start = model.actuators.track(position).q if model.assembly.rows else None
    G = model.actuators.embedding(position, start=start)
    return ElementMotion(
        is_rotational=elements(model),
        jacobian=np.concatenate([G, model.assembly.loops.transmission @ G], axis=1),
        velocity=velocity,
        mixing=leading_transmission(model) if output == "joints" else None,
        period=period,
        factor=1,
        cutoff=None,
        present=None,
    )


def elements(model: Model) -> dict[str, bool]:
    """Return whether each element that may have friction is rotational, by name.

    Elements are the scalar coordinates of joints, telescopic rods, and motors. Rotational elements
    have the units rad/s and N m, other elements m/s and N.
    """
    is_rotational = dict(zip(model.topology.velocity_names, model.topology.angular, strict=True))
    for actuator in model.mechanism.actuators:
        is_rotational[actuator.name] = model.topology.is_rotary(actuator)
    return is_rotational


def require_elements(model: Model, names: Sequence[str]) -> None:
    """Reject an empty list of names, and names that are not elements.

    Raises:
        IdentificationError: lists all problems.
    """
    known = elements(model)
    what = "is not a degree of freedom of a joint, telescopic rod or motor with its own coordinate"
    problems = unknown_names(names, known, what)
    if not names:
        problems.append(
            Problem("friction", "no element is given", f"choose among {', '.join(known)}")
        )
    IdentificationError.raise_if_any(problems)

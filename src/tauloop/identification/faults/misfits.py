"""Misfits of one log with measured and with changed channels, at samples spread over the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.faults.measured_motion import (
    ChannelChange,
    LogMotion,
    scale_channel,
    shift_channel,
    unchanged,
)
from tauloop.identification.friction.presliding import dahl_state
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.from_log import driven_transmission, regressor_rows
from tauloop.identification.regression.ties import Ties
from tauloop.logs.signals import butterworth
from tauloop.model import Model

#: Maximum number of samples on which faults are tested, spread evenly over the log.
MAX_TESTED_SAMPLES = 200
#: Minimum number of equations per parameter for which changes of the misfit are conclusive.
MIN_EQUATIONS_PER_PARAMETER = 3
#: Shifts of positions that are tried first, in steps. A parabola gives the minimum between them.
SHIFT_STEPS = (1, 2, 4, 8, 16)
#: Presliding lengths that are tried first, as fractions of a channel's stroke.
PRESLIDING_LENGTH_SHARES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
#: Presliding lengths that are tried next, as multiples of the best length.
PRESLIDING_REFINEMENT_FACTORS = (0.62, 0.74, 0.86, 1.16, 1.34, 1.6)
#: Relative misfits below this value are rounding errors.
MISFIT_ROUNDING = 1e-9


class Misfits:
    """The misfits of a log after a fit of the machine's base parameters.

    The misfit of an output is the norm of its residual divided by the norm of its force.

    Attributes:
        log: motion and forces.
        step: shifts are multiples of this number of samples.
        reach: largest shift, in samples.
        presliding_lengths: presliding length, m or rad, by drive, for drives with known presliding
            friction. The regressor has additional columns for this friction.
        rows: indices of the tested samples (M,).
        is_conclusive: whether there are enough samples within the workspace.
        regressor: (M, n_out, r). This and the following attributes only exist if `is_conclusive`.
        misfits: (n_out,) misfits of the outputs.
        misfit: root mean square of the outputs' misfits.
    """

    def __init__(
        self,
        model: Model,
        log: LogMotion,
        output: str,
        ties: Ties | None,
        step: int,
        presliding_lengths: Mapping[str, float] | None = None,
    ) -> None:
        """Fit the log; `output` and `ties` are those of its regression data."""
        self._model = model
        self.log = log
        self._output = output
        self._ties = ties
        self.step = step
        self.presliding_lengths = dict(presliding_lengths or {})
        self._mixing, self._output_rows = measured_outputs(model, log, output)
        self.reach = min(SHIFT_STEPS[-1] * step, len(log.position) // 10)
        margin = 0 if log.periodic else self.reach
        rows = np.arange(margin, len(log.position) - margin)
        if log.usable is not None:
            rows = rows[log.usable[rows]]
        spread = np.linspace(0, len(rows) - 1, min(MAX_TESTED_SAMPLES, len(rows)))
        self.rows = rows[np.unique(spread.round().astype(int))]
        self._base: list[int] | slice = slice(None)
        self._sliding_states: dict[str, list[np.ndarray]] = {}
        (regressor,) = self.regressors([unchanged])
        self.is_conclusive = regressor is not None
        if regressor is None:
            return
        count = regressor.shape[-1]
        base = base_parameters(
            regressor.transpose(1, 0, 2), tuple(map(str, range(count))), ("",) * count
        )
        self._base = list(base.independent)
        self.regressor = self._with_presliding(regressor[:, :, self._base], unchanged)
        equations = self.regressor.shape[0] * self.regressor.shape[1]
        self.is_conclusive = equations >= MIN_EQUATIONS_PER_PARAMETER * len(self._base)
        if self.is_conclusive:
            self.misfits = self.misfits_of(self.regressor, self.forces())
            self.misfit = overall(self.misfits)

    def with_log(
        self, log: LogMotion, presliding_lengths: Mapping[str, float] | None = None
    ) -> Misfits:
        """Return the misfits of another log, or with presliding friction of further drives."""
        lengths = self.presliding_lengths | dict(presliding_lengths or {})
        return Misfits(self._model, log, self._output, self._ties, self.step, lengths)

    @property
    def units(self) -> dict[str, str]:
        """Unit of every position."""
        port = self._model.actuators.ports.position
        return dict(zip(port.columns, port.units, strict=True))

    @cached_property
    def _weighted_basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Norms of the outputs' forces (n_out,), and a basis of the regressor divided by them."""
        norms = np.maximum(np.linalg.norm(self.forces(), axis=0), np.finfo(float).tiny)
        columns = (self.regressor / norms[:, None]).reshape(-1, self.regressor.shape[-1])
        return norms, np.linalg.qr(columns)[0]

    def forces(self, change: ChannelChange = unchanged) -> np.ndarray:
        """Return the forces of the outputs (M, n_out) at the tested samples, after a change."""
        return np.asarray(change(self.log.forces, self.rows) @ self._mixing)

    def regressors(self, changes: Sequence[ChannelChange]) -> list[np.ndarray | None]:
        """Return the regressors (M, n_out, r) of changed motions, all calculated together.

        The entry of a motion that the machine cannot follow is None.
        """
        log = self.log
        motions = []
        starts = []
        is_possible = []
        for change in changes:
            motion = [change(x, self.rows) for x in (log.position, log.velocity, log.acceleration)]
            try:
                if self._model.assembly.rows:
                    starts.append(self._model.actuators.track(motion[0]).q)
            except PoseError:
                is_possible.append(False)
                continue
            is_possible.append(True)
            motions.append(motion)
        if not motions:
            return [None] * len(changes)
        position, velocity, acceleration = map(np.concatenate, zip(*motions, strict=True))
        start = np.concatenate(starts) if starts else None
        try:
            rows = regressor_rows(
                self._model, (position, velocity, acceleration), self._output, start
            )
        except PoseError:
            return [None] * len(changes)
        rows = rows[:, self._output_rows]
        if self._ties is not None:
            rows = rows @ self._ties.matrix
        motion_rows = iter(np.split(rows[:, :, self._base], len(motions)))
        return [
            self._with_presliding(next(motion_rows), change) if possible else None
            for possible, change in zip(is_possible, changes, strict=True)
        ]

    def _with_presliding(self, regressor: np.ndarray, change: ChannelChange) -> np.ndarray:
        """Return the regressor with columns of known presliding friction, changed as the motion."""
        if not self.presliding_lengths or isinstance(self._base, slice):
            return regressor
        columns = [
            self._friction_columns(drive, length, change)
            for drive, length in self.presliding_lengths.items()
        ]
        return np.concatenate([regressor, *columns], axis=2)

    def _friction_columns(
        self, drive: str, length: float | None, change: ChannelChange
    ) -> np.ndarray:
        """Return the columns (M, n_out, 2 or 3) of a drive's friction.

        The columns are Coulomb friction, viscous friction, and presliding friction if a length is
        given. The filter of the forces is applied to them.
        """
        log = self.log
        k = log.names.index(drive)
        if drive not in self._sliding_states:
            velocity = log.velocity[:, k]
            self._sliding_states[drive] = self._filtered([np.sign(velocity), velocity])
        states = list(self._sliding_states[drive])
        if length is not None:
            state = dahl_state(log.velocity[:, [k]], log.step, np.array([length]))
            states += self._filtered([state[:, 0]])
        acting = self._mixing[log.drives.index(drive)]
        all_channels = np.zeros(log.velocity.shape)
        columns = []
        for state in states:
            all_channels[:, k] = state
            columns.append(change(all_channels, self.rows)[:, k])
        return np.asarray(np.stack(columns, axis=1)[:, None, :] * acting[None, :, None])

    def _filtered(self, states: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return states of friction (N,) after the filter of the forces."""
        log = self.log
        if log.cutoff is None:
            return list(states)
        rate = 1.0 / log.step
        return [butterworth(state, rate=rate, cutoff=log.cutoff, order=2) for state in states]

    def misfits_with_friction(self, drive: str, length: float | None) -> np.ndarray:
        """Return the misfits with additional friction of a drive.

        If a length is given, the friction includes presliding friction.
        """
        columns = self._friction_columns(drive, length, unchanged)
        return self.misfits_of(np.concatenate([self.regressor, columns], axis=2), self.forces())

    def best_presliding(self, drive: str) -> tuple[float, np.ndarray]:
        """Return the presliding length of a drive with the smallest misfit, and these misfits."""
        stroke = float(np.ptp(self.log.position[:, self.log.names.index(drive)]))
        tried: list[tuple[float, np.ndarray]] = []

        def best_of(lengths: Sequence[float]) -> tuple[float, np.ndarray]:
            tried.extend((length, self.misfits_with_friction(drive, length)) for length in lengths)
            return min(tried, key=lambda pair: overall(pair[1]))

        length, _ = best_of([share * stroke for share in PRESLIDING_LENGTH_SHARES])
        return best_of([length * factor for factor in PRESLIDING_REFINEMENT_FACTORS])

    def misfits_of_shifts(self, column: int, shifts: Sequence[int]) -> dict[int, float]:
        """Return the misfit of all outputs by shift of a position, without impossible shifts."""
        regressors = self.regressors([shift_channel(column, shift) for shift in shifts])
        misfits = {}
        for shift, regressor in zip(shifts, regressors, strict=True):
            if regressor is not None:
                misfits[shift] = overall(self.misfits_of(regressor, self.forces()))
        return misfits

    def are_reduced(self, misfits: np.ndarray, by_all: float, by_one: float) -> bool:
        """Return whether misfits (n_out,) are smaller than those of this log by two factors.

        Args:
            misfits: misfits of the outputs.
            by_all: factor by which the overall misfit must be smaller.
            by_one: factor by which the misfit of at least one output must be smaller.
        """
        is_one_reduced = bool(np.any(misfits * by_one <= self.misfits))
        return overall(misfits) * by_all <= self.misfit and is_one_reduced

    def describe_fall(self, misfits: np.ndarray) -> str:
        """Return a text that states how far misfits (n_out,) are below those of this log."""
        best = int(np.argmax(self.misfits / np.maximum(misfits, MISFIT_ROUNDING)))
        return (
            f"the relative misfit of one output falls from {self.misfits[best]:.3g} to "
            f"{misfits[best]:.3g}, and that of all outputs from {self.misfit:.3g} to "
            f"{overall(misfits):.3g}"
        )

    def misfits_of(self, regressor: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Return the norm of every output's residual divided by that of its force (n_out,).

        All outputs are fitted together, weighted by the norms of their forces.
        """
        norms = np.maximum(np.linalg.norm(forces, axis=0), np.finfo(float).tiny)
        columns = (regressor / norms[:, None]).reshape(-1, regressor.shape[-1])
        weighted = (forces / norms).ravel()
        basis = np.linalg.qr(columns)[0]
        residual = weighted - basis @ (basis.T @ weighted)
        return np.linalg.norm(residual.reshape(forces.shape), axis=0)

    def misfit_of_late_force(self, column: int, shift: int) -> float:
        """Return the misfit of all outputs for a shift of one force, with unchanged weights."""
        norms, basis = self._weighted_basis
        forces = (self.forces(shift_channel(column, shift)) / norms).ravel()
        power = forces @ forces - np.sum((basis.T @ forces) ** 2)
        return float(np.sqrt(max(power, 0.0) / len(norms)))

    def best_scale(self, drive: int) -> float | None:
        """Return the factor of one drive's force that fits the other forces best, by least squares.

        The result is None if the factor is not positive.
        """
        norms, basis = self._weighted_basis
        others = self.forces(scale_channel(drive, 0.0))
        drive_alone = ((self.forces() - others) / norms).ravel()
        others_alone = (others / norms).ravel()
        drive_residual = drive_alone - basis @ (basis.T @ drive_alone)
        others_residual = others_alone - basis @ (basis.T @ others_alone)
        power = float(drive_residual @ drive_residual)
        scale = -float(drive_residual @ others_residual) / power if power > 0.0 else 0.0
        return scale if scale > 0.0 else None


def measured_outputs(
    model: Model, log: LogMotion, output: str
) -> tuple[np.ndarray, Sequence[int] | slice]:
    """Return the mapping from measured forces to outputs, and the regressor's rows of the outputs.

    The outputs are B^T f of the measured forces f, with the mapping B (n_f, n_out).
    """
    names = [actuator.name for actuator in model.mechanism.actuators]
    drives = [names.index(drive) for drive in log.drives]
    if output == "joints":
        return driven_transmission(model)[drives], slice(None)
    return np.eye(len(drives)), drives

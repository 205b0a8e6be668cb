"""The misfit of one log, at samples spread over it, and what becomes of it when channels are changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.identification.estimation.evaluation import overall
from tauloop.identification.faults.measured_motion import Measured, Moved, as_is, late_by, scaled
from tauloop.identification.friction.presliding import dahl_state
from tauloop.identification.regression.base_parameters import base_parameters
from tauloop.identification.regression.from_log import driven_transmission, regressor_rows
from tauloop.identification.regression.ties import Ties
from tauloop.logs.signals import butterworth
from tauloop.model import Model

#: Samples on which faults are tried, evenly spread over the log.
TRIED = 200
#: Equations per parameter, below which a change of the misfit says nothing.
EQUATIONS = 3
#: Shifts of positions that are tried first, in steps; between them the minimum is that of a
#: parabola.
STEPS = (1, 2, 4, 8, 16)
#: Ways over which friction turns round that are tried, as shares of a channel's stroke.
WAYS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
#: Ways that are tried about the best of these, as multiples of it.
FINER = (0.62, 0.74, 0.86, 1.16, 1.34, 1.6)
#: Relative misfits below this are rounding.
ROUNDING = 1e-9


class Misfits:
    """A log fitted by the machine's base parameters; the misfit of an output is the norm of what is left over its own.

    Attributes:
        log: motion and forces.
        step: shifts are multiples of so many samples.
        reach: largest shift.
        ways: drives whose friction is known to turn round over some way, m or rad: its columns are
            beside the model's.
        at: the samples that are looked at (M,).
        can_tell: whether there are enough of them, in reach.
        regressor: (M, n_out, r); together with the misfits there where it can tell.
        misfits, misfit: of the outputs (n_out,), and of all.
    """

    def __init__(
        self,
        model: Model,
        log: Measured,
        output: str,
        ties: Ties | None,
        step: int,
        ways: Mapping[str, float] | None = None,
    ) -> None:
        """Fit the log; `output` and `ties` are those of its regression data."""
        self._model, self.log, self._output, self._ties, self.step = model, log, output, ties, step
        self.ways = dict(ways or {})
        self._mixing, self._rows = measured_outputs(model, log, output)
        reach = 0 if log.periodic else min(STEPS[-1] * step, len(log.position) // 10)
        self.reach = min(STEPS[-1] * step, len(log.position) // 10)
        count = len(log.position) - 2 * reach
        self._base: list[int] | slice = slice(None)
        places = reach + np.arange(count)
        places = places if log.usable is None else places[log.usable[places]]
        self.at = places[
            np.unique(np.linspace(0, len(places) - 1, min(TRIED, len(places))).round().astype(int))
        ]
        (regressor,) = self.regressors([as_is])
        self.can_tell = regressor is not None
        if regressor is None:
            return
        unknowns = regressor.shape[-1]
        columns = regressor.transpose(1, 0, 2)
        self._base = list(
            base_parameters(columns, tuple(map(str, range(unknowns))), ("",) * unknowns).independent
        )
        self.regressor = self._beside(regressor[:, :, self._base], as_is)
        self.can_tell = self.regressor.shape[0] * self.regressor.shape[1] >= EQUATIONS * len(
            self._base
        )
        if self.can_tell:
            self.misfits = self.of(self.regressor, self.forces())
            self.misfit = overall(self.misfits)

    def again(self, log: Measured, ways: Mapping[str, float] | None = None) -> Misfits:
        """Those of another log, or with friction that turns round over further ways."""
        return Misfits(
            self._model, log, self._output, self._ties, self.step, self.ways | dict(ways or {})
        )

    @property
    def units(self) -> dict[str, str]:
        """Unit of every position."""
        port = self._model.actuators.ports.position
        return dict(zip(port.columns, port.units, strict=True))

    @cached_property
    def _weighed(self) -> tuple[np.ndarray, np.ndarray]:
        """Norms of the outputs' forces (n_out,), and a basis of the regressor weighted by them."""
        sizes = np.maximum(np.linalg.norm(self.forces(), axis=0), np.finfo(float).tiny)
        return sizes, np.linalg.qr(
            (self.regressor / sizes[:, None]).reshape(-1, self.regressor.shape[-1])
        )[0]

    def forces(self, change: Moved = as_is) -> np.ndarray:
        """Forces of the outputs (M, n_out) at the tried samples, with those of the drives changed."""
        return np.asarray(change(self.log.forces, self.at) @ self._mixing)

    def regressors(self, changes: Sequence[Moved]) -> list[np.ndarray | None]:
        """Regressors (M, n_out, r) of changed motions, all made at once; None where the machine cannot move so."""
        log = self.log
        motions, starts, possible = [], [], []
        for change in changes:
            motion = [change(x, self.at) for x in (log.position, log.velocity, log.acceleration)]
            try:
                starts += (
                    [self._model.actuators.track(motion[0]).q] if self._model.assembly.rows else []
                )
            except PoseError:
                possible.append(False)
                continue
            possible.append(True)
            motions.append(motion)
        if not motions:
            return [None] * len(changes)
        together = [np.concatenate(parts) for parts in zip(*motions, strict=True)]
        start = np.concatenate(starts) if starts else None
        try:
            rows = regressor_rows(
                self._model, (together[0], together[1], together[2]), self._output, start
            )
        except PoseError:
            return [None] * len(changes)
        rows = rows[:, self._rows]
        rows = (rows if self._ties is None else rows @ self._ties.matrix)[:, :, self._base]
        whole = iter(np.split(rows, len(motions)))
        return [
            self._beside(next(whole), change) if is_possible else None
            for is_possible, change in zip(possible, changes, strict=True)
        ]

    def _beside(self, regressor: np.ndarray, change: Moved) -> np.ndarray:
        """The regressor with the columns of friction that turns round over some way, changed as the motion is."""
        if not self.ways or isinstance(self._base, slice):
            return regressor
        columns = [self._friction(drive, way, change) for drive, way in self.ways.items()]
        return np.concatenate([regressor, *columns], axis=2)

    def _friction(self, drive: str, way: float | None, change: Moved) -> np.ndarray:
        """Columns (M, n_out, 2 or 3) of a drive's friction: at once, viscous, and turning round over some way.

        They pass the filter that the forces have passed.
        """
        log, k = self.log, self.log.names.index(drive)
        velocity = log.velocity[:, [k]]
        states = [np.sign(velocity), velocity]
        states += [dahl_state(velocity, log.step, np.array([way]))] if way is not None else []
        acting = self._mixing[log.drives.index(drive)]
        every = np.zeros(log.velocity.shape)
        columns = []
        for state in states:
            if log.cutoff is not None:
                state = butterworth(state, rate=1.0 / log.step, cutoff=log.cutoff, order=2)
            every[:, k] = state[:, 0]
            columns.append(change(every, self.at)[:, k])
        return np.asarray(np.stack(columns, axis=1)[:, None, :] * acting[None, :, None])

    def with_friction(self, drive: str, way: float | None) -> np.ndarray:
        """Misfits with a drive's friction beside the model's own, turning round over some way if there is one."""
        columns = self._friction(drive, way, as_is)
        return self.of(np.concatenate([self.regressor, columns], axis=2), self.forces())

    def best_way(self, drive: str) -> tuple[float, np.ndarray]:
        """The way over which a drive's friction turns round best, and the misfits with it."""
        stroke = float(np.ptp(self.log.position[:, self.log.names.index(drive)]))
        tried = [(share * stroke, self.with_friction(drive, share * stroke)) for share in WAYS]
        best = min(tried, key=lambda pair: overall(pair[1]))
        tried += [
            (best[0] * factor, self.with_friction(drive, best[0] * factor)) for factor in FINER
        ]
        return min(tried, key=lambda pair: overall(pair[1]))

    def shifted(self, column: int, shifts: Sequence[int]) -> dict[int, float]:
        """Misfits of all outputs by shifts of a position, where the machine can move so."""
        regressors = self.regressors([late_by(column, s) for s in shifts])
        tried = zip(shifts, regressors, strict=True)
        return {s: overall(self.of(rows, self.forces())) for s, rows in tried if rows is not None}

    def lessened(self, misfits: np.ndarray, by_all: float, by_one: float) -> bool:
        """Whether misfits (n_out,) are less than these by such factors: that of all, and that of some output."""
        return overall(misfits) * by_all <= self.misfit and bool(
            np.any(misfits * by_one <= self.misfits)
        )

    def fall(self, misfits: np.ndarray) -> str:
        """From what misfits (n_out,) have fallen, in words."""
        best = int(np.argmax(self.misfits / np.maximum(misfits, ROUNDING)))
        return (
            f"the relative misfit of one output falls from {self.misfits[best]:.3g} to {misfits[best]:.3g}, "
            f"of all from {self.misfit:.3g} to {overall(misfits):.3g}"
        )

    def of(self, regressor: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Norm of every output's residual over that of its force, fitted together with these as weights."""
        sizes = np.maximum(np.linalg.norm(forces, axis=0), np.finfo(float).tiny)
        columns = (regressor / sizes[:, None]).reshape(-1, regressor.shape[-1])
        own = (forces / sizes).ravel()
        basis = np.linalg.qr(columns)[0]
        left = own - basis @ (basis.T @ own)
        return np.linalg.norm(left.reshape(forces.shape), axis=0)

    def late(self, column: int, shift: int) -> float:
        """Misfit of all outputs by a shift of a force, with the weights of the forces as they are."""
        sizes, basis = self._weighed
        moved = (self.forces(late_by(column, shift)) / sizes).ravel()
        power = moved @ moved - np.sum((basis.T @ moved) ** 2)
        return float(np.sqrt(max(power, 0.0) / len(sizes)))

    def scale(self, drive: int) -> float | None:
        """Factor of one drive's force that suits the others best, by least squares; None where it is not positive."""
        sizes, basis = self._weighed
        both, others = self.forces(), self.forces(scaled(drive, 0.0))
        own, known = (
            x - basis @ (basis.T @ x)
            for x in (((both - others) / sizes).ravel(), (others / sizes).ravel())
        )
        power = float(own @ own)
        scale = -float(own @ known) / power if power > 0.0 else 0.0
        return scale if scale > 0.0 else None


def measured_outputs(
    model: Model, log: Measured, output: str
) -> tuple[np.ndarray, Sequence[int] | slice]:
    """B (n_f, n_out), for outputs that are B^T f of the measured forces f, and the regressor's rows of them."""
    names = [actuator.name for actuator in model.mechanism.actuators]
    drives = [names.index(drive) for drive in log.drives]
    return (
        (driven_transmission(model)[drives], slice(None))
        if output == "joints"
        else (np.eye(len(drives)), drives)
    )

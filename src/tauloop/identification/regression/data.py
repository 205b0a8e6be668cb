"""What identification works on: a stacked regressor and the forces measured with it, whole or as small triangles.

Source: Golub and Van Loan 2013, Matrix Computations: least squares by triangularisation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dtpqrt

from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.identification.regression.ties import Ties, counted, freeze, named
from tauloop.logs.signals import HIGHEST_CUTOFF, filter_reach, low_pass

#: Samples taken at a time: many enough for LAPACK to be fast, few enough to stay in the processor's
#: cache.
SAMPLES_AT_ONCE = 1024
#: Columns that LAPACK eliminates together.
COLUMNS_AT_ONCE = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionData(ReprMixin):
    """Samples of forces = Y p, with the names and units of both sides. The arrays are viewed, not copied.

    Attributes:
        regressor: Y (N, n_out, n_p), SI.
        forces: measured forces or torques (N, n_out), SI; columns that are not measured are not
            looked at.
        parameters, parameter_units: name and unit of each of the n_p columns.
        outputs, output_units: name and unit of each of the n_out rows (actuators).
        time: (N,), s, for figures only; samples are numbered without it.
        measured: (n_out,) which outputs were measured; all when not given.
        present: (N, n_out) which rows were, where several logs did not measure the same outputs;
            regressor and forces are zero in the others.
        ties: known relations between the parameters.
        logs: (N,) number of the log that each sample is of, where there are several (`merge`).
        period: time between two samples, s, where it is the same for all.
        reach: samples at each end of a log that a filter made smaller, of regressor and forces
            alike, since it found nothing beyond the end.
    """

    regressor: np.ndarray
    forces: np.ndarray
    parameters: tuple[str, ...]
    parameter_units: tuple[str, ...]
    outputs: tuple[str, ...]
    output_units: tuple[str, ...]
    time: np.ndarray | None = None
    measured: np.ndarray | None = None
    ties: Ties | None = None
    present: np.ndarray | None = None
    logs: np.ndarray | None = None
    period: float | None = None
    reach: int = 0

    def __post_init__(self) -> None:
        """Check shapes, names and numbers.

        Raises:
            IdentificationError: with all problems.
        """
        regressor, forces = numbers(self.regressor, "regressor"), numbers(self.forces, "forces")
        if regressor.ndim != 3 or 0 in regressor.shape:
            remedy = "give (samples, outputs, parameters), none of them zero"
            raise IdentificationError.of("regressor", f"has shape {regressor.shape}", remedy)
        samples, n_outputs, n_parameters = regressor.shape
        measured = (
            np.ones(n_outputs, dtype=bool) if self.measured is None else np.asarray(self.measured)
        )
        time = None if self.time is None else numbers(self.time, "time")
        problems = Problems(
            [
                *named("parameters", self.parameters, n_parameters),
                *counted("parameter_units", self.parameter_units, n_parameters),
                *named("outputs", self.outputs, n_outputs),
                *counted("output_units", self.output_units, n_outputs),
            ]
        )
        for where, array, shape in (
            ("forces", forces, (samples, n_outputs)),
            ("measured", measured, (n_outputs,)),
            ("time", time, (samples,)),
            ("logs", self.logs, (samples,)),
            ("present", self.present, (samples, n_outputs)),
            (
                "ties.matrix",
                None if self.ties is None else self.ties.matrix,
                (n_parameters, len(self.unknowns)),
            ),
        ):
            if array is not None and array.shape != shape:
                problems.add(
                    where, f"has shape {array.shape}", f"give {shape} to suit the regressor"
                )
        if measured.dtype != bool:
            problems.add(
                "measured", f"is of type {measured.dtype}", "give True or False per output"
            )
        elif not measured.any():
            problems.add(
                "measured", "no output is measured", "measure at least one actuator's force"
            )
        if not problems:
            labels = (self.outputs, self.parameters)
            problems += _finite("regressor", regressor, labels)
            kept = np.flatnonzero(measured)
            problems += _finite("forces", forces[:, kept], ([self.outputs[k] for k in kept],))
            problems += _time(time) if time is not None else []
        IdentificationError.raise_if_any(problems)
        freeze(
            self,
            regressor=regressor,
            forces=forces,
            time=time,
            measured=measured,
            parameters=tuple(self.parameters),
            parameter_units=tuple(self.parameter_units),
            outputs=tuple(self.outputs),
            output_units=tuple(self.output_units),
        )

    def __len__(self) -> int:
        return len(self.regressor)

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the measured outputs."""
        return (
            np.arange(len(self.outputs)) if self.measured is None else np.flatnonzero(self.measured)
        )

    @property
    def counts(self) -> np.ndarray:
        """Number of samples (n_kept,) of every measured output."""
        kept = self.kept
        return (
            np.full(len(kept), len(self))
            if self.present is None
            else self.present[:, kept].sum(axis=0)
        )

    def rows(self, output: int) -> np.ndarray:
        """Numbers of the samples of an output that were measured."""
        return (
            np.arange(len(self))
            if self.present is None
            else np.flatnonzero(self.present[:, output])
        )

    @property
    def relations(self) -> Ties:
        """The ties; without any, those of parameters that are the unknowns themselves."""
        matrix = np.eye(len(self.parameters))
        return self.ties or Ties(
            matrix=matrix, parameters=self.parameters, units=self.parameter_units
        )

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Values (n_p,) of all columns from those of the unknowns."""
        return unknowns if self.ties is None else self.ties.expand(unknowns)

    def of_output(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns (N, n) of the unknowns in one output, and its forces (N,) less what is known."""
        regressor, forces = self.regressor[:, k], self.forces[:, k]
        if self.ties is None:
            return regressor, forces
        return regressor @ self.ties.matrix, forces - regressor @ np.asarray(self.ties.offset)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the parameters to identify: those of the ties where there are ties."""
        return self.ties.parameters if self.ties else self.parameters

    @property
    def unknown_units(self) -> tuple[str, ...]:
        """Units of the parameters to identify."""
        return self.ties.units if self.ties else self.parameter_units

    @cached_property
    def triangles(self) -> np.ndarray:
        """All that least squares asks of the samples: R_k with R_k^T R_k = [Y_k f_k]^T [Y_k f_k] of measured outputs k.

        Householder QR of the samples in chunks, each below the triangle so far (LAPACK's tpqrt).
        Nothing is squared, so the singular values and the least-squares solutions, with any weights
        of the outputs, are those of the whole regressor.

        Returns:
            (n_measured, n + 1, n + 1) for n unknowns; the force is the last column.
        """
        size = len(self.unknowns) + 1
        triangles = [np.zeros((size, size), order="F") for _ in self.kept]
        for start in range(0, len(self), SAMPLES_AT_ONCE):
            for k, columns in enumerate(self.unknown_rows(slice(start, start + SAMPLES_AT_ONCE))):
                width = min(COLUMNS_AT_ONCE, size)
                triangles[k], *_ = dtpqrt(
                    0, width, triangles[k], columns.T, overwrite_a=True, overwrite_b=True
                )
        factors = np.stack(triangles)
        factors.flags.writeable = False
        return factors

    def unknown_rows(self, samples: slice) -> np.ndarray:
        """[Y_k f_k] of measured outputs k and some samples, each column by itself: (n_measured, n + 1, samples).

        Ties are applied: Y becomes Y T, and f becomes f - Y offset.
        """
        regressor, forces, kept = self.regressor[samples], self.forces[samples], self.kept
        rows = np.empty((len(kept), len(self.unknowns) + 1, len(forces)))
        rows[:, -1] = forces[:, kept].T
        if self.ties is None:
            rows[:, :-1] = regressor[:, kept].transpose(1, 2, 0)
            return rows
        # one product for all outputs; that most of the matrix is zero costs less than to pick
        # columns out of rows
        both = np.column_stack([self.ties.matrix, self.ties.expand(np.zeros(len(self.unknowns)))])
        chosen = regressor if len(kept) == regressor.shape[1] else regressor[:, kept]
        tied = (chosen.reshape(-1, len(both)) @ both).reshape(len(forces), len(kept), -1)
        rows[:, :-1] = tied[:, :, :-1].transpose(1, 2, 0)
        rows[:, -1] -= tied[:, :, -1].T
        return rows

    def low_passed(self, cutoff: float | None) -> RegressionData:
        """Return the data with regressor and forces behind one filter.

        Args:
            cutoff: as a share of the rate of the data (see `tauloop.logs.signals.low_pass`); None
                leaves them.
        """
        if cutoff is None or cutoff >= HIGHEST_CUTOFF:
            return self
        regressor, forces = low_pass(self.regressor, cutoff), low_pass(self.forces, cutoff)
        if self.present is not None:
            regressor, forces = regressor * self.present[:, :, None], forces * self.present
        reach = self.reach + filter_reach(1, cutoff)
        return dataclasses.replace(self, regressor=regressor, forces=forces, reach=reach)

    def part(self, samples: slice | np.ndarray) -> RegressionData:
        """Some of the samples; those of a slice are views."""
        return dataclasses.replace(
            self,
            regressor=self.regressor[samples],
            forces=self.forces[samples],
            time=None if self.time is None else self.time[samples],
            present=None if self.present is None else self.present[samples],
            logs=None if self.logs is None else self.logs[samples],
        )


def split(data: RegressionData, share: float = 0.7) -> tuple[RegressionData, RegressionData]:
    """The first `share` of the samples for training, and the rest to judge by (held out).

    Raises:
        IdentificationError: one of the parts would be empty.
    """
    cut = round(share * len(data)) if np.isfinite(share) else 0
    if not 0 < cut < len(data):
        what = f"{share:g} of {len(data)} samples leaves one part without samples"
        raise IdentificationError.of("share", what, "choose a share between 0 and 1, such as 0.7")
    return data.part(slice(None, cut)), data.part(slice(cut, None))


def _time(time: np.ndarray) -> list[Problem]:
    problems = _finite("time", time, ())
    steps = np.diff(time)
    if not problems and np.any(steps <= 0.0):
        sample = int(np.argmax(steps <= 0.0)) + 1
        what = f"does not increase at sample {sample}: {time[sample - 1]:.9g} s, then {time[sample]:.9g} s"
        problems.append(Problem("time", what, "give the samples in order of time"))
    return problems


def _finite(where: str, array: np.ndarray, labels: tuple[Sequence[str], ...]) -> list[Problem]:
    """A problem where numbers are not finite: how many, and the first of them by sample and names."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return []
    bad = np.argwhere(~np.isfinite(array))
    if not len(bad):
        return []
    sample, *rest = bad[0]
    place = "".join(f", {names[k]}" for names, k in zip(labels, rest, strict=True))
    what = f"{len(bad)} of {array.size} numbers are not finite, the first at sample {sample}{place}"
    return [Problem(where, what, "repair or leave out these samples")]

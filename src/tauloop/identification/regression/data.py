"""Regression data: a stacked regressor and measured forces, in full or condensed to QR factors.

Source: Golub and Van Loan 2013, Matrix Computations: least squares by triangularization.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dtpqrt

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.identification.regression.ties import Ties, count_problems, freeze, named
from tauloop.logs.signals import HIGHEST_CUTOFF, filter_reach, low_pass

#: Number of samples in one QR step: large enough for LAPACK to be fast, small enough for the
#: processor's cache.
SAMPLES_AT_ONCE = 1024
#: Number of columns that LAPACK eliminates together.
COLUMNS_AT_ONCE = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionData(ReprMixin):
    """Samples of the equations f = Y p, with names and units. The arrays are views, not copies.

    Attributes:
        regressor: Y (N, n_out, n_p), SI.
        forces: measured forces or torques (N, n_out), SI; columns that are not measured are
            ignored.
        parameters: name of each of the n_p columns.
        parameter_units: unit of each of the n_p columns.
        outputs: name of each of the n_out rows (actuators).
        output_units: unit of each of the n_out rows.
        time: (N,) times of the samples, s, used only for plots; optional.
        measured: (n_out,) True for measured outputs; by default all outputs are measured.
        present: (N, n_out) True for measured rows, if different outputs were measured in several
            logs; regressor and forces are zero in the other rows.
        ties: known relations between the parameters.
        logs: (N,) index of the log of each sample, if there are several logs (`merge_data`).
        period: sampling period, s, if it is constant.
        reach: number of samples at each end of a log in which a filter attenuates regressor and
            forces, because there are no samples beyond the end.
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
            IdentificationError: lists all problems.
        """
        regressor = numbers(self.regressor, "regressor")
        forces = numbers(self.forces, "forces")
        if regressor.ndim != 3 or 0 in regressor.shape:
            remedy = "give (samples, outputs, parameters), none of them zero"
            raise IdentificationError.of("regressor", f"has shape {regressor.shape}", remedy)
        samples, n_outputs, n_parameters = regressor.shape
        if self.measured is None:
            measured = np.ones(n_outputs, dtype=bool)
        else:
            measured = np.asarray(self.measured)
        time = None if self.time is None else numbers(self.time, "time")
        ties_matrix = None if self.ties is None else self.ties.matrix
        problems = Problems(
            [
                *named("parameters", self.parameters, n_parameters),
                *count_problems("parameter_units", self.parameter_units, n_parameters),
                *named("outputs", self.outputs, n_outputs),
                *count_problems("output_units", self.output_units, n_outputs),
            ]
        )
        for where, array, shape in (
            ("forces", forces, (samples, n_outputs)),
            ("measured", measured, (n_outputs,)),
            ("time", time, (samples,)),
            ("logs", self.logs, (samples,)),
            ("present", self.present, (samples, n_outputs)),
            ("ties.matrix", ties_matrix, (n_parameters, len(self.unknowns))),
        ):
            if array is not None and array.shape != shape:
                problems.add(
                    where, f"has shape {array.shape}", f"give {shape}, as in the regressor"
                )
        if measured.dtype != bool:
            problems.add(
                "measured", f"has type {measured.dtype}", "give True or False for each output"
            )
        elif not measured.any():
            problems.add(
                "measured", "no output is measured", "measure the force of at least one actuator"
            )
        if not problems:
            labels = (self.outputs, self.parameters)
            problems += _finite_problems("regressor", regressor, labels)
            kept = np.flatnonzero(measured)
            measured_names = [self.outputs[k] for k in kept]
            problems += _finite_problems("forces", forces[:, kept], (measured_names,))
            problems += _time_problems(time) if time is not None else []
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
        """Indices of the measured outputs."""
        if self.measured is None:
            return np.arange(len(self.outputs))
        return np.flatnonzero(self.measured)

    @property
    def counts(self) -> np.ndarray:
        """Number of measured samples (n_kept,) of every measured output."""
        kept = self.kept
        if self.present is None:
            return np.full(len(kept), len(self))
        return np.asarray(self.present[:, kept].sum(axis=0))

    def rows(self, output: int) -> np.ndarray:
        """Return the indices of the samples in which an output was measured."""
        if self.present is None:
            return np.arange(len(self))
        return np.flatnonzero(self.present[:, output])

    @property
    def relations(self) -> Ties:
        """The ties; without ties, identity ties, with all parameters as unknowns."""
        matrix = np.eye(len(self.parameters))
        return self.ties or Ties(
            matrix=matrix, parameters=self.parameters, units=self.parameter_units
        )

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Return the values (n_p,) of all columns for values of the unknowns."""
        return unknowns if self.ties is None else self.ties.expand(unknowns)

    def of_output(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns (N, n) of the unknowns, and the forces (N,), of the output k.

        The forces of known parameters are subtracted.
        """
        regressor = self.regressor[:, k]
        forces = self.forces[:, k]
        if self.ties is None:
            return regressor, forces
        return regressor @ self.ties.matrix, forces - regressor @ np.asarray(self.ties.offset)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the unknown parameters, from the ties if there are ties."""
        return self.ties.parameters if self.ties else self.parameters

    @property
    def unknown_units(self) -> tuple[str, ...]:
        """Units of the unknown parameters."""
        return self.ties.units if self.ties else self.parameter_units

    @cached_property
    def triangles(self) -> np.ndarray:
        """QR factors R_k of the measured outputs k, with R_k^T R_k = [Y_k f_k]^T [Y_k f_k].

        The shape is (n_measured, n + 1, n + 1) for n unknowns; the force is the last column. The
        factors are sufficient for least squares with any weights of the outputs. They are computed
        by Householder QR of chunks of samples, each stacked below the factor of the previous chunks
        (LAPACK's tpqrt). The products are not formed, so singular values and least-squares
        solutions have the accuracy of the full regressor.
        """
        column_count = len(self.unknowns) + 1
        triangles = [np.zeros((column_count, column_count), order="F") for _ in self.kept]
        for start in range(0, len(self), SAMPLES_AT_ONCE):
            for k, columns in enumerate(self.unknown_rows(slice(start, start + SAMPLES_AT_ONCE))):
                width = min(COLUMNS_AT_ONCE, column_count)
                triangles[k], *_ = dtpqrt(
                    0, width, triangles[k], columns.T, overwrite_a=True, overwrite_b=True
                )
        factors = np.stack(triangles)
        factors.flags.writeable = False
        return factors

    def unknown_rows(self, samples: slice) -> np.ndarray:
        """Return the columns [Y_k f_k] of measured outputs k, (n_measured, n + 1, samples).

        Ties are applied: Y becomes Y T, and f becomes f - Y offset.
        """
        regressor = self.regressor[samples]
        forces = self.forces[samples]
        kept = self.kept
        rows = np.empty((len(kept), len(self.unknowns) + 1, len(forces)))
        rows[:, -1] = forces[:, kept].T
        if self.ties is None:
            rows[:, :-1] = regressor[:, kept].transpose(1, 2, 0)
            return rows
        # One dense product for all outputs is faster than a selection of columns, although most of
        # the matrix is zero.
        offset = self.ties.expand(np.zeros(len(self.unknowns)))
        extended = np.column_stack([self.ties.matrix, offset])
        measured = regressor if len(kept) == regressor.shape[1] else regressor[:, kept]
        tied = (measured.reshape(-1, len(extended)) @ extended).reshape(len(forces), len(kept), -1)
        rows[:, :-1] = tied[:, :, :-1].transpose(1, 2, 0)
        rows[:, -1] -= tied[:, :, -1].T
        return rows

    def low_passed(self, cutoff: float | None) -> RegressionData:
        """Return the data with the same low-pass filter applied to regressor and forces.

        Args:
            cutoff: cutoff frequency as a fraction of the sampling rate of the data (see
                `tauloop.logs.signals.low_pass`); None for no filter.
        """
        if cutoff is None or cutoff >= HIGHEST_CUTOFF:
            return self
        regressor = low_pass(self.regressor, cutoff)
        forces = low_pass(self.forces, cutoff)
        if self.present is not None:
            regressor = regressor * self.present[:, :, None]
            forces = forces * self.present
        reach = self.reach + filter_reach(1, cutoff)
        return dataclasses.replace(self, regressor=regressor, forces=forces, reach=reach)

    def part(self, samples: slice | np.ndarray) -> RegressionData:
        """Return some of the samples; for a slice the arrays are views."""
        return dataclasses.replace(
            self,
            regressor=self.regressor[samples],
            forces=self.forces[samples],
            time=None if self.time is None else self.time[samples],
            present=None if self.present is None else self.present[samples],
            logs=None if self.logs is None else self.logs[samples],
        )


def split_data(data: RegressionData, share: float = 0.7) -> tuple[RegressionData, RegressionData]:
    """Return training data, the first fraction `share` of the samples, and held-out data.

    Raises:
        IdentificationError: one of the parts would be empty.
    """
    count = round(share * len(data)) if np.isfinite(share) else 0
    if not 0 < count < len(data):
        raise IdentificationError.of(
            "share",
            f"a training fraction of {share:g} of {counted(len(data), 'sample')} leaves one part "
            "empty",
            "choose a fraction between 0 and 1, such as 0.7, or use more samples",
        )
    return data.part(slice(None, count)), data.part(slice(count, None))


def _time_problems(time: np.ndarray) -> list[Problem]:
    """Return a problem if times are not finite or do not increase."""
    problems = _finite_problems("time", time, ())
    steps = np.diff(time)
    if not problems and np.any(steps <= 0.0):
        sample = int(np.argmax(steps <= 0.0)) + 1
        times = f"{time[sample - 1]:.9g} s, then {time[sample]:.9g} s"
        problems.append(
            Problem(
                "time",
                f"does not increase at sample {sample}: {times}",
                "give the samples in order of time",
            )
        )
    return problems


def _finite_problems(
    where: str, array: np.ndarray, labels: tuple[Sequence[str], ...]
) -> list[Problem]:
    """Return a problem with the number and the first position of values that are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return []
    bad = np.argwhere(~np.isfinite(array))
    if not len(bad):
        return []
    sample, *indices = bad[0]
    location = "".join(f", {names[k]}" for names, k in zip(labels, indices, strict=True))
    return [
        Problem(
            where,
            f"{len(bad)} of {array.size} numbers are not finite, the first at sample {sample}{location}",
            "repair or remove these samples",
        )
    ]

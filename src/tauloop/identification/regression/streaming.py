"""Identification from several logs, and from data larger than memory, by merging QR factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.estimators import (
    CondensedEstimator,
    Estimate,
    require_equations,
)
from tauloop.identification.regression.base_parameters import (
    BaseParameters,
    RankOptions,
    base_parameters,
)
from tauloop.identification.regression.data import RegressionData, split_data


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condensed(ReprMixin):
    """The condensed form of samples, which is sufficient for least squares.

    Attributes:
        triangles: (n_measured, n + 1, n + 1) QR factors R_k with R_k^T R_k = [Y_k f_k]^T [Y_k f_k];
            the force is the last column.
        samples: number of samples.
        unknowns: names of the n unknowns.
        unknown_units: units of the n unknowns.
        outputs: names of the measured outputs.
    """

    triangles: np.ndarray
    samples: int
    unknowns: tuple[str, ...]
    unknown_units: tuple[str, ...]
    outputs: tuple[str, ...]
    beside = old_attribute("beside", "joined_with")

    def root_mean_squares(self, values: np.ndarray) -> np.ndarray:
        """Return the RMS residual (n_measured,), SI, for values (n,) of all unknowns."""
        misfit = self.triangles[:, :, :-1] @ values - self.triangles[:, :, -1]
        return np.asarray(np.linalg.norm(misfit, axis=1) / np.sqrt(self.samples))

    def joined_with(self, other: Condensed, where: str = "part") -> Condensed:
        """Return the condensed form of the samples of two condensed forms.

        Raises:
            IdentificationError: the unknowns or the measured outputs differ.
        """
        _require_equal(where, other, self, ("unknowns", "unknown_units", "outputs"))
        stacked = np.concatenate([self.triangles, other.triangles], axis=1)
        triangles = np.asarray(np.linalg.qr(stacked, mode="r"))
        return replace(self, triangles=triangles, samples=self.samples + other.samples)


def condensed(data: RegressionData) -> Condensed:
    """Return the condensed form of regression data."""
    return Condensed(
        triangles=data.triangles,
        samples=len(data),
        unknowns=data.unknowns,
        unknown_units=data.unknown_units,
        outputs=tuple(data.outputs[k] for k in data.kept),
    )


@solving(IdentificationError)
def condense_parts(parts: Iterable[RegressionData]) -> Condensed:
    """Condense samples part by part, such as chunks of one long log or logs of one machine.

    The QR factor of all samples is the QR factor of the stacked factors of the parts (incremental
    QR: Golub and Van Loan 2013, Matrix Computations). Only one part is in memory at a time, and the
    result does not depend on how the samples were split, up to rounding.

    Returns:
        The condensed samples, which are sufficient for least squares.

    Raises:
        IdentificationError: there are no parts, or their unknowns or measured outputs differ.
    """
    total: Condensed | None = None
    for number, data in enumerate(parts):
        part = condensed(data)
        total = part if total is None else total.joined_with(part, f"part {number}")
    if total is None:
        raise IdentificationError.of(
            "parts", "there are no samples", "give at least one part with samples"
        )
    return total


@solving(IdentificationError)
def estimate_condensed(
    condensed: Condensed, estimator: CondensedEstimator, rank: RankOptions | None = None
) -> tuple[BaseParameters, Estimate]:
    """Return the base parameters of condensed samples, and the estimate of their values.

    To validate the estimate, use `Condensed.root_mean_squares` of other samples.

    Raises:
        IdentificationError: the data do not determine the parameters.
    """
    size = len(condensed.unknowns)
    base = base_parameters(
        condensed.triangles[:, :, :-1], condensed.unknowns, condensed.unknown_units, rank
    )
    require_equations(len(condensed.triangles), condensed.samples, base.rank)
    return base, estimator.estimate(
        condensed.triangles[:, :, [*base.independent, size]], condensed.samples
    )


def merge_data(logs: Iterable[RegressionData]) -> RegressionData:
    """Return several logs of one machine as one set of samples, without time stamps.

    A single log is returned unchanged. If different outputs were measured in the logs, missing rows
    are zero and not `present`.

    Raises:
        IdentificationError: there are no logs, or their parameters, outputs or ties differ.
    """
    parts = list(logs)
    if not parts:
        raise IdentificationError.of("logs", "there are no logs", "give at least one log")
    first = parts[0]
    if len(parts) == 1:
        return first
    for number, part in enumerate(parts[1:], start=1):
        names = ("parameters", "parameter_units", "outputs", "output_units", "unknowns")
        _require_equal(f"log {number}", part, first, names)
    regressor = np.concatenate([part.regressor for part in parts])
    forces = np.concatenate([part.forces for part in parts])
    log_indices = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    periods = {part.period for part in parts}
    period = periods.pop() if len(periods) == 1 else None
    reach = max(part.reach for part in parts)
    if all(part.present is None and np.array_equal(part.kept, first.kept) for part in parts):
        return replace(
            first,
            regressor=regressor,
            forces=forces,
            time=None,
            logs=log_indices,
            period=period,
            reach=reach,
        )
    present = np.concatenate([_present(part) for part in parts])
    regressor[~present] = 0.0
    return replace(
        first,
        regressor=regressor,
        forces=np.where(present, forces, 0.0),
        time=None,
        measured=np.asarray(present.any(axis=0)),
        present=present,
        logs=log_indices,
        period=period,
        reach=reach,
    )


def _require_equal(where: str, part: object, first: object, names: Sequence[str]) -> None:
    """Raise an error if some attributes of two parts differ."""
    IdentificationError.raise_if_any(
        Problem(
            where,
            f"the {name} differ from those of the first log",
            "prepare all logs in the same way, with the same machine and the same ties",
        )
        for name in names
        if getattr(part, name) != getattr(first, name)
    )


def _present(data: RegressionData) -> np.ndarray:
    """Return a mask (N, n_out) of the rows that were measured."""
    if data.present is not None:
        return data.present
    return np.isin(np.arange(len(data.outputs)), data.kept) & np.ones((len(data), 1), dtype=bool)


def split_each(
    logs: Sequence[RegressionData], share: float
) -> tuple[list[RegressionData], list[RegressionData]]:
    """Return training data and held-out data of every log; see `split_data`.

    Raises:
        IdentificationError: a part would be empty.
    """
    pairs = [split_data(log, share) for log in logs]
    return [training for training, _ in pairs], [held_out for _, held_out in pairs]

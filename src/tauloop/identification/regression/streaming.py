"""Identification from more samples than memory holds, and from several logs: triangles are merged, not samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError, Problem, solving
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
from tauloop.identification.regression.data import RegressionData, split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Condensed(ReprMixin):
    """All that least squares can ask of a set of samples.

    Attributes:
        triangles: (n_measured, n + 1, n + 1), R_k^T R_k = [Y_k f_k]^T [Y_k f_k]; the force is the
            last column.
        samples: number of samples.
        unknowns, unknown_units: names and units of the n unknowns.
        outputs: names of the measured outputs.
    """

    triangles: np.ndarray
    samples: int
    unknowns: tuple[str, ...]
    unknown_units: tuple[str, ...]
    outputs: tuple[str, ...]

    def root_mean_squares(self, values: np.ndarray) -> np.ndarray:
        """RMS residual (n_measured,), SI, of values (n,) of all unknowns."""
        misfit = self.triangles[:, :, :-1] @ values - self.triangles[:, :, -1]
        return np.asarray(np.linalg.norm(misfit, axis=1) / np.sqrt(self.samples))

    def beside(self, other: Condensed, where: str = "part") -> Condensed:
        """The samples of both.

        Raises:
            IdentificationError: the other has other unknowns or measured outputs.
        """
        _require_alike(where, other, self, ("unknowns", "unknown_units", "outputs"))
        stacked = np.concatenate([self.triangles, other.triangles], axis=1)
        triangles = np.asarray(np.linalg.qr(stacked, mode="r"))
        return replace(self, triangles=triangles, samples=self.samples + other.samples)


def condensed(data: RegressionData) -> Condensed:
    """All that least squares asks of some samples."""
    return Condensed(
        triangles=data.triangles,
        samples=len(data),
        unknowns=data.unknowns,
        unknown_units=data.unknown_units,
        outputs=tuple(data.outputs[k] for k in data.kept),
    )


@solving(IdentificationError)
def condense_parts(parts: Iterable[RegressionData]) -> Condensed:
    """Condense samples that come part by part: chunks of one long log, or several logs of one machine.

    The triangle of a union of samples is that of the triangles below each other (incremental QR:
    Golub and Van Loan 2013, Matrix Computations), so one part is in memory at a time and the result
    does not depend on how the samples were cut, up to rounding.

    Raises:
        IdentificationError: there are no parts, or they have other unknowns or measured outputs.
    """
    whole: Condensed | None = None
    for number, data in enumerate(parts):
        part = condensed(data)
        whole = part if whole is None else whole.beside(part, f"part {number}")
    if whole is None:
        raise IdentificationError.of(
            "parts", "there are none", "give at least one part with samples"
        )
    return whole


@solving(IdentificationError)
def estimate_condensed(
    condensed: Condensed, estimator: CondensedEstimator, rank: RankOptions | None = None
) -> tuple[BaseParameters, Estimate]:
    """Base parameters of condensed samples and their estimate; judge it by `Condensed.root_mean_squares` of others.

    Raises:
        IdentificationError: the data cannot support the identification.
    """
    size = len(condensed.unknowns)
    base = base_parameters(
        condensed.triangles[:, :, :-1], condensed.unknowns, condensed.unknown_units, rank
    )
    require_equations(len(condensed.triangles), condensed.samples, base.rank)
    return base, estimator.estimate(
        condensed.triangles[:, :, [*base.independent, size]], condensed.samples
    )


def merge(logs: Iterable[RegressionData]) -> RegressionData:
    """Several logs of one machine as one set of samples; time stamps are left out. One log stays as it is.

    Where not all measured the same outputs, rows that are missing are zero and not `present`.

    Raises:
        IdentificationError: there are none, or they have other parameters, outputs or ties.
    """
    parts = list(logs)
    if not parts:
        raise IdentificationError.of("logs", "there are none", "give at least one log")
    first = parts[0]
    if len(parts) == 1:
        return first
    for number, part in enumerate(parts[1:], start=1):
        names = ("parameters", "parameter_units", "outputs", "output_units", "unknowns")
        _require_alike(f"log {number}", part, first, names)
    regressor = np.concatenate([part.regressor for part in parts])
    forces = np.concatenate([part.forces for part in parts])
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    periods = {part.period for part in parts}
    period = periods.pop() if len(periods) == 1 else None
    reach = max(part.reach for part in parts)
    if all(part.present is None and np.array_equal(part.kept, first.kept) for part in parts):
        return replace(
            first,
            regressor=regressor,
            forces=forces,
            time=None,
            logs=numbers,
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
        logs=numbers,
        period=period,
        reach=reach,
    )


def _require_alike(where: str, part: object, first: object, names: Sequence[str]) -> None:
    IdentificationError.raise_if_any(
        Problem(
            where,
            f"its {name} are others than the first's",
            "prepare all alike, with one machine and the same ties",
        )
        for name in names
        if getattr(part, name) != getattr(first, name)
    )


def _present(data: RegressionData) -> np.ndarray:
    if data.present is not None:
        return data.present
    return np.isin(np.arange(len(data.outputs)), data.kept) & np.ones((len(data), 1), dtype=bool)


def split_each(
    logs: Sequence[RegressionData], share: float
) -> tuple[list[RegressionData], list[RegressionData]]:
    """The first `share` of the samples of every log, and the rest of every log (see `split`).

    Raises:
        IdentificationError: a part would be empty.
    """
    pairs = [split(log, share) for log in logs]
    return [first for first, _ in pairs], [rest for _, rest in pairs]

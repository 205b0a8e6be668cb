"""Many logs as a tree: each becomes a small triangle where it lies, triangles are folded pairwise, samples never meet.

A log's triangle is R with R^T R = [Y f]^T [Y f], by QR, for the samples that are fitted and for those that are held
out. What deviations need beside it, when the errors have a known correlation c in time, is Y^T C Y, C the Toeplitz
matrix of c; that of two parts one behind the other is the sum of both and what their ends have in common, which is why
a triangle keeps its first and last rows. So parts of one log, logs of one machine, and a log that comes a year later
fold alike, and in any order of pairs, up to rounding.

Source: Demmel, Grigori, Hoemmen and Langou 2012, Communication-optimal parallel and sequential QR and LU
factorizations (trees of triangles).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from tauloop.errors import IdentificationError
from tauloop.files import unreadable, write_file
from tauloop.identification.estimation.error_models import correlated
from tauloop.identification.estimation.estimators import CondensedEstimator, Estimate
from tauloop.identification.regression.base_parameters import BaseParameters, RankOptions
from tauloop.identification.regression.data import RegressionData, split
from tauloop.identification.regression.streaming import Condensed, condensed, estimate_condensed
from tauloop.identification.regression.threads import one_thread
from tauloop.records import dataclass
from tauloop.shown import Shown

_FORMAT = "tauloop-triangle/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTriangle(Shown):
    """All that an identification asks of one log, or of many.

    Attributes:
        training: samples that are fitted.
        held_out: samples that the fit is judged by; None without any.
        correlation: (L,) of the errors at lags 0 to L - 1.
        spread: Y_k^T C Y_k (n_measured, n, n) of the samples that are fitted.
        head, tail: the first and the last L - 1 rows Y (n_measured, m, n), fewer where there are fewer.
        logs: number of logs in it.
    """

    training: Condensed
    held_out: Condensed | None
    correlation: np.ndarray
    spread: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    logs: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldedIdentification(Shown):
    """Base parameters of many logs.

    Attributes:
        base: what the logs can tell.
        estimate: values and their covariance, SI.
        held_out: RMS residual of each measured output on the samples that were not fitted, SI; None without any.
        training: the same on those that were.
    """

    base: BaseParameters
    estimate: Estimate
    training: np.ndarray
    held_out: np.ndarray | None


@one_thread
def fold_log(data: RegressionData, *, share: float = 1.0, correlation: np.ndarray | None = None) -> LogTriangle:
    """The triangle of one log.

    Args:
        data: its samples; all measured outputs in all of them.
        share: of the samples, the first of which are fitted and the others held out; all are fitted with 1.
        correlation: of the errors (L,), 1 first, such as `decimation_correlation` gives; white errors without it.

    Raises:
        IdentificationError: a part would be empty, or rows of single outputs are missing.
    """
    if data.present is not None:
        raise IdentificationError.of("log", "has rows of single outputs only", "fold logs that measure all of them")
    training, held_out = (data, None) if share == 1.0 else split(data, share)
    kernel = np.ones(1) if correlation is None else np.asarray(correlation, dtype=float)
    rows = training.unknown_rows(slice(None))[:, :-1]  # (k, n, samples)
    edge = min(len(kernel) - 1, len(training))
    return LogTriangle(
        training=condensed(training),
        held_out=None if held_out is None else condensed(held_out),
        correlation=kernel,
        spread=np.stack([columns @ correlated(columns.T, kernel) for columns in rows]),
        head=rows[:, :, :edge].transpose(0, 2, 1).copy(),
        tail=rows[:, :, rows.shape[2] - edge :].transpose(0, 2, 1).copy(),
        logs=1,
    )


@one_thread
def fold(first: LogTriangle, second: LogTriangle, *, one_log: bool = False) -> LogTriangle:
    """The triangle of the samples of both.

    Args:
        first, second: triangles.
        one_log: whether the second goes on where the first ends: their errors are correlated across the seam.

    Raises:
        IdentificationError: they have other unknowns, outputs or correlations.
    """
    if not np.array_equal(first.correlation, second.correlation):
        raise IdentificationError.of("triangles", "their errors have other correlations", "fold all logs alike")
    pair = [part for part in (first.held_out, second.held_out) if part is not None]
    spread = first.spread + second.spread
    if one_log:
        across = _across(first.tail, second.head, first.correlation)
        spread = spread + across + across.transpose(0, 2, 1)
    edge = len(first.correlation) - 1
    return LogTriangle(
        training=first.training.beside(second.training),
        held_out=None if not pair else pair[0] if len(pair) == 1 else pair[0].beside(pair[1]),
        correlation=first.correlation,
        spread=spread,
        head=np.concatenate([first.head, second.head], axis=1)[:, :edge],
        tail=np.concatenate([first.tail, second.tail], axis=1)[:, -edge:] if edge else second.tail,
        logs=max(first.logs, second.logs) if one_log else first.logs + second.logs,
    )


def _across(tail: np.ndarray, head: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Sum over rows i before a seam and j behind it of c_(lag) Y_i^T Y_j (n_measured, n, n)."""
    before, behind = tail.shape[1], head.shape[1]
    lags = np.arange(behind)[None, :] + np.arange(before, 0, -1)[:, None]
    weights = np.where(lags < len(correlation), correlation[np.minimum(lags, len(correlation) - 1)], 0.0)
    return np.einsum("kin,ij,kjm->knm", tail, weights, head)


def fold_all(triangles: Iterable[LogTriangle]) -> LogTriangle:
    """The triangle of all logs, folded pairwise as a tree.

    Raises:
        IdentificationError: there are none, or they do not belong together.
    """
    level = list(triangles)
    if not level:
        raise IdentificationError.of("triangles", "there are none", "give at least one")
    while len(level) > 1:
        pairs = [fold(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return level[0]


@one_thread
def identify_folded(
    triangle: LogTriangle, estimator: CondensedEstimator, rank: RankOptions | None = None
) -> FoldedIdentification:
    """Base parameters of all logs of a triangle, with deviations by the known correlation of the errors.

    Covariance B (sum over outputs k of w_k^4 s_k^2 Y_k^T C Y_k) B, B = (sum of w_k^2 Y_k^T Y_k)^-1 with the weights w_k
    of the estimator, and s_k^2 the residual's sum of squares over N - t_k, t_k what the parameters follow of the
    errors: that of `FilteredErrors`.

    Raises:
        IdentificationError: the logs cannot support the identification.
    """
    fitted = triangle.training
    base, estimate = estimate_condensed(fitted, estimator, rank)
    chosen = list(base.independent)
    triangles = fitted.triangles[:, :, [*chosen, len(fitted.unknowns)]]
    weights = estimate.weights**2
    normal = sum(w * (R[:, :-1].T @ R[:, :-1]) for w, R in zip(weights, triangles, strict=True))
    sensitivity = np.linalg.inv(np.asarray(normal))
    total = np.zeros_like(sensitivity)
    for w, R, whole in zip(weights, triangles, triangle.spread, strict=True):
        meat = whole[np.ix_(chosen, chosen)]
        residual = R[:, :-1] @ estimate.values - R[:, -1]
        freedom = max(fitted.samples - w * float(np.trace(sensitivity @ meat)), 1.0)
        total += w**2 * (residual @ residual) / freedom * meat
    values = base.spread(estimate.values)
    return FoldedIdentification(
        base=base,
        estimate=replace(estimate, covariance=sensitivity @ total @ sensitivity.T),
        training=fitted.root_mean_squares(values),
        held_out=None if triangle.held_out is None else triangle.held_out.root_mean_squares(values),
    )


def write_triangle(triangle: LogTriangle, path: str | Path) -> Path:
    """Write a triangle as a NumPy archive: arrays and texts, nothing that is unpickled.

    Raises:
        InputError: it cannot be written.
    """
    texts = {"unknowns": triangle.training.unknowns, "units": triangle.training.unknown_units}
    texts |= {"outputs": triangle.training.outputs, "format": (_FORMAT,)}
    arrays = {name: getattr(triangle, name) for name in ("correlation", "spread", "head", "tail")}
    arrays |= {name: np.array(items) for name, items in texts.items()}
    for name in ("training", "held_out"):
        part: Condensed | None = getattr(triangle, name)
        if part is not None:
            arrays |= {f"{name}_triangles": part.triangles, f"{name}_samples": np.array(part.samples)}

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, logs=np.array(triangle.logs), allow_pickle=False, **arrays)

    return write_file(path, write)


def read_triangle(path: str | Path) -> LogTriangle:
    """Read what `write_triangle` wrote.

    Raises:
        IdentificationError: it is none, or damaged.
    """
    path = Path(path)
    if (problem := unreadable(path)) is not None:
        raise IdentificationError.of("", *problem, file=str(path))
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        if arrays["format"].tolist() != [_FORMAT]:
            raise ValueError("it has another format")
        unknowns, units, outputs = (tuple(arrays[name].tolist()) for name in ("unknowns", "units", "outputs"))

        def part(name: str) -> Condensed | None:
            if f"{name}_triangles" not in arrays:
                return None
            return Condensed(
                triangles=arrays[f"{name}_triangles"],
                samples=int(arrays[f"{name}_samples"]),
                unknowns=unknowns,
                unknown_units=units,
                outputs=outputs,
            )

        training = part("training")
        if training is None:
            raise ValueError("it has no samples")
        names = ("correlation", "spread", "head", "tail")
        return LogTriangle(
            training=training, held_out=part("held_out"), logs=int(arrays["logs"]), **{n: arrays[n] for n in names}
        )
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        MemoryError,
        BadZipFile,
        zlib.error,
    ) as error:
        what = f"is no triangle of logs: {type(error).__name__}"
        raise IdentificationError.of("", what, "fold its logs again", file=str(path)) from None

"""Many logs as a tree: each becomes a small triangle where it lies, triangles are folded pairwise, samples never meet.

A log's triangle is R with R^T R = [Y f]^T [Y f], by QR, for the samples that are fitted and for
those that are held out. What deviations need beside it, when the errors have a known correlation c
in time, is Y^T C Y, C the Toeplitz matrix of c; that of two parts one behind the other is the sum
of both and what their ends have in common, which is why a triangle keeps its first and last rows.
For errors of unknown correlation it may keep the triangles of blocks, or of each log, apart
(`ClusteredErrors`). So parts of one log, logs of one machine, and a log that comes a year later
fold alike, and in any order of pairs, up to rounding.

A triangle says what it was folded of and how, and has a mark of each log: logs of another machine,
or of other options, are refused, and one that comes twice is known again.

Source: Demmel, Grigori, Hoemmen and Langou 2012, Communication-optimal parallel and sequential QR
and LU factorizations (trees of triangles).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from tauloop.common.errors import IdentificationError, LogError, solving
from tauloop.common.files import unreadable, write_file
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.clustered_errors import ClusteredErrors, jackknife
from tauloop.identification.estimation.error_models import correlated
from tauloop.identification.estimation.estimators import CondensedEstimator, Estimate
from tauloop.identification.regression.base_parameters import BaseParameters, RankOptions
from tauloop.identification.regression.data import RegressionData, split
from tauloop.identification.regression.streaming import Condensed, condensed, estimate_condensed
from tauloop.logs.files.unpacking import require_archive

_FORMAT = "tauloop-triangle/3"
#: Arrays of a triangle that are kept as they are.
_ARRAYS = ("correlation", "spread", "head", "tail", "clusters", "marks")
#: Differences that are named of two triangles which do not belong together.
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTriangle(ReprMixin):
    """All that an identification asks of one log, or of many.

    Attributes:
        training: samples that are fitted.
        held_out: samples that the fit is judged by; None without any.
        correlation: (L,) of the errors at lags 0 to L - 1.
        spread: Y_k^T C Y_k (n_measured, n, n) of the samples that are fitted.
        head, tail: the first and the last L - 1 rows Y (n_measured, m, n), fewer where there are
            fewer.
        logs: number of logs in it.
        clusters: triangles (G, n_measured, n + 1, n + 1) of blocks of the fitted samples that were
            kept apart.
        marks: a number for each log, the same for one whose columns have the same norms to ten
            digits.
        origin: machine and options that all logs must have in common, by name; empty where nothing
            is said.
    """

    training: Condensed
    held_out: Condensed | None
    correlation: np.ndarray
    spread: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    logs: int
    clusters: np.ndarray
    marks: np.ndarray
    origin: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldedIdentification(ReprMixin):
    """Base parameters of many logs.

    Attributes:
        base: what the logs can tell.
        estimate: values and their covariance, SI.
        sensitivity: (sum over outputs of w_k^2 Y_k^T Y_k)^-1 (r, r).
        samples: that were fitted.
        held_out: RMS residual of each measured output on the samples that were not fitted, SI; None
            without any.
        training: the same on those that were.
    """

    base: BaseParameters
    estimate: Estimate
    sensitivity: np.ndarray
    samples: int
    training: np.ndarray
    held_out: np.ndarray | None


@solving(IdentificationError)
def fold_log(
    data: RegressionData,
    *,
    share: float = 1.0,
    correlation: np.ndarray | None = None,
    blocks: int = 0,
) -> LogTriangle:
    """The triangle of one log.

    Args:
        data: its samples; all measured outputs in all of them.
        share: of the samples, the first of which are fitted and the others held out; all are fitted
            with 1.
        correlation: of the errors (L,), 1 first, such as `decimation_correlation` gives; white
            errors without it.
        blocks: of the fitted samples whose triangles are kept, for `ClusteredErrors`; 1 keeps that
            of the log.

    Raises:
        IdentificationError: fewer samples than blocks; a part would be empty, or rows of single
            outputs are missing.
    """
    if data.present is not None:
        raise IdentificationError.of(
            "log", "has rows of single outputs only", "fold logs that measure all of them"
        )
    training, held_out = (data, None) if share == 1.0 else split(data, share)
    kernel = np.ones(1) if correlation is None else np.asarray(correlation, dtype=float)
    whole = condensed(training)
    spread, head, tail = _spread(training, whole, kernel)
    if blocks > len(training):
        what = f"{len(training)} samples of a log do not fill {blocks} blocks"
        raise IdentificationError.of("blocks", what, "take fewer blocks")
    parts = np.array_split(np.arange(len(training)), blocks) if blocks > 1 else []
    rest = None if held_out is None else condensed(held_out)
    apart = [
        condensed(training.part(slice(int(part[0]), int(part[-1]) + 1))).triangles for part in parts
    ]
    return LogTriangle(
        training=whole,
        held_out=rest,
        correlation=kernel,
        spread=spread,
        head=head,
        tail=tail,
        logs=1,
        clusters=np.stack(apart) if apart else whole.triangles[None][:blocks],
        marks=np.array([_mark(whole, rest)]),
        origin={},
    )


def _mark(*parts: Condensed | None) -> int:
    """A number of 48 bits by which a log is known again, also on a computer that rounds otherwise."""
    norms = [
        np.append(np.linalg.norm(part.triangles, axis=1), part.samples)
        for part in parts
        if part is not None
    ]
    text = " ".join(f"{norm:.9e}" for norm in np.concatenate(norms))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _spread(
    data: RegressionData, whole: Condensed, kernel: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Y_k^T C Y_k of every output, and the rows at both ends; of white errors from the triangle, R^T R."""
    if len(kernel) == 1:
        R = whole.triangles[:, :, :-1]
        nothing = np.zeros((len(R), 0, R.shape[2]))
        return R.transpose(0, 2, 1) @ R, nothing, nothing
    rows = data.unknown_rows(slice(None))[:, :-1]  # (k, n, samples)
    edge = min(len(kernel) - 1, len(data))
    return (
        np.stack([columns @ correlated(columns.T, kernel) for columns in rows]),
        rows[:, :, :edge].transpose(0, 2, 1).copy(),
        rows[:, :, rows.shape[2] - edge :].transpose(0, 2, 1).copy(),
    )


@solving(IdentificationError)
def fold(first: LogTriangle, second: LogTriangle, *, one_log: bool = False) -> LogTriangle:
    """The triangle of the samples of both.

    Args:
        first, second: triangles.
        one_log: whether the second goes on where the first ends: their errors are correlated across
            the seam.

    Raises:
        IdentificationError: they have other unknowns, outputs or correlations, or are of other
            machines or options.
    """
    if first.origin and second.origin and first.origin != second.origin:
        pairs = {
            name: (first.origin.get(name), second.origin.get(name))
            for name in {**first.origin, **second.origin}
        }
        others = [
            f"{name} was {before} and is {now}"
            for name, (before, now) in pairs.items()
            if before != now
        ]
        what = f"they were not folded alike: {'; '.join(others[:_NAMED])}"
        raise IdentificationError.of(
            "triangles", what, "fold all logs with one machine file and the same options"
        )
    if not np.array_equal(first.correlation, second.correlation):
        raise IdentificationError.of(
            "triangles", "their errors have other correlations", "fold all logs alike"
        )
    pair = [part for part in (first.held_out, second.held_out) if part is not None]
    spread = first.spread + second.spread
    if one_log:
        across = seam(first.tail, second.head, first.correlation)
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
        clusters=np.concatenate([first.clusters, second.clusters]),
        marks=np.concatenate([first.marks, second.marks]),
        origin=first.origin or second.origin,
    )


def seam(tail: np.ndarray, head: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Sum over rows i before a seam and j behind it of c_(lag) Y_i^T Y_j (n_measured, n, n)."""
    before, behind = tail.shape[1], head.shape[1]
    lags = np.arange(behind)[None, :] + np.arange(before, 0, -1)[:, None]
    weights = np.where(
        lags < len(correlation), correlation[np.minimum(lags, len(correlation) - 1)], 0.0
    )
    return np.einsum("kin,ij,kjm->knm", tail, weights, head)


def fold_all(triangles: Iterable[LogTriangle]) -> LogTriangle:
    """The triangle of all logs, folded pairwise as a tree; no more than one triangle of each height is in memory.

    Raises:
        IdentificationError: there are none, or they do not belong together.
    """
    waiting: list[tuple[int, LogTriangle]] = []  # of falling heights
    for triangle in triangles:
        height = 0
        while waiting and waiting[-1][0] == height:
            triangle, height = fold(waiting.pop()[1], triangle), height + 1
        waiting.append((height, triangle))
    if not waiting:
        raise IdentificationError.of("triangles", "there are none", "give at least one")
    return reduce(
        lambda later, earlier: fold(earlier, later), (item for _, item in reversed(waiting))
    )


@solving(IdentificationError)
def identify_folded(
    triangle: LogTriangle,
    estimator: CondensedEstimator,
    rank: RankOptions | None = None,
    *,
    errors: ClusteredErrors | None = None,
) -> FoldedIdentification:
    """Base parameters of all logs of a triangle, with deviations by the known correlation of the errors.

    Covariance B (sum over outputs k of w_k^4 s_k^2 Y_k^T C Y_k) B, B = (sum of w_k^2 Y_k^T Y_k)^-1
    with the weights w_k of the estimator, and s_k^2 the residual's sum of squares over N - t_k, t_k
    what the parameters follow of the errors: that of `FilteredErrors`. With errors of any
    correlation inside blocks or logs, the jackknife over them.

    Args:
        triangle: of all logs.
        estimator, rank: how.
        errors: clustered, where the triangle has kept clusters; as `triangle.correlation` says
            without.

    Raises:
        IdentificationError: the logs cannot support the identification; fewer than two clusters
            were kept.
    """
    fitted = triangle.training
    base, estimate = estimate_condensed(fitted, estimator, rank)
    chosen = list(base.independent)
    triangles = fitted.triangles[:, :, [*chosen, len(fitted.unknowns)]]
    weights = estimate.weights**2
    normal = sum(w * (R[:, :-1].T @ R[:, :-1]) for w, R in zip(weights, triangles, strict=True))
    sensitivity = np.linalg.inv(np.asarray(normal))
    total, triangles_apart = (
        np.zeros_like(sensitivity),
        triangle.clusters[:, :, :, [*chosen, len(fitted.unknowns)]],
    )
    if errors is not None and len(triangles_apart) < 2:
        what = f"{len(triangles_apart)} clusters were kept of the logs"
        raise IdentificationError.of(
            "triangle", what, "fold several logs with blocks=1, or each with blocks=12"
        )
    for w, R, whole in zip(weights, triangles, triangle.spread, strict=True):
        meat = whole[np.ix_(chosen, chosen)]
        residual = R[:, :-1] @ estimate.values - R[:, -1]
        freedom = max(fitted.samples - w * float(np.trace(sensitivity @ meat)), 1.0)
        total += w**2 * (residual @ residual) / freedom * meat
    covariance = sensitivity @ total @ sensitivity.T
    if errors is not None:
        misfits = triangles_apart[..., -1] - triangles_apart[..., :-1] @ estimate.values
        parts = np.einsum(
            "k,gkmi,gkmj->gij", weights, triangles_apart[..., :-1], triangles_apart[..., :-1]
        )
        scores = np.einsum("k,gkmi,gkm->gi", weights, triangles_apart[..., :-1], misfits)
        covariance = jackknife(list(parts), list(scores))
    values = base.spread(estimate.values)
    return FoldedIdentification(
        base=base,
        estimate=replace(estimate, covariance=covariance),
        sensitivity=sensitivity,
        samples=fitted.samples,
        training=fitted.root_mean_squares(values),
        held_out=None if triangle.held_out is None else triangle.held_out.root_mean_squares(values),
    )


def triangle_arrays(triangle: LogTriangle) -> dict[str, np.ndarray]:
    """All that a triangle holds, as arrays by name."""
    texts = {"unknowns": triangle.training.unknowns, "units": triangle.training.unknown_units}
    texts |= {
        "outputs": triangle.training.outputs,
        "format": (_FORMAT,),
        "origin": (json.dumps(triangle.origin),),
    }
    arrays = {name: getattr(triangle, name) for name in _ARRAYS}
    arrays |= {name: np.array(items) for name, items in texts.items()}
    for name in ("training", "held_out"):
        part: Condensed | None = getattr(triangle, name)
        if part is not None:
            arrays |= {
                f"{name}_triangles": part.triangles,
                f"{name}_samples": np.array(part.samples),
            }
    return arrays | {"logs": np.array(triangle.logs)}


def triangle_of(arrays: Mapping[str, np.ndarray]) -> LogTriangle:
    """The triangle of such arrays.

    Raises:
        KeyError, ValueError: they are none of a triangle.
    """
    if arrays["format"].tolist() != [_FORMAT]:
        raise ValueError("it has another format")
    unknowns, units, outputs = (
        tuple(arrays[name].tolist()) for name in ("unknowns", "units", "outputs")
    )

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
    own = {name: arrays[name] for name in _ARRAYS}
    origin, logs = dict(json.loads(arrays["origin"][0])), int(arrays["logs"])
    return LogTriangle(
        training=training, held_out=part("held_out"), logs=logs, origin=origin, **own
    )


def write_triangle(triangle: LogTriangle, path: str | Path) -> Path:
    """Write a triangle as a NumPy archive: arrays and texts, nothing that is unpickled.

    Raises:
        InputError: it cannot be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **triangle_arrays(triangle))

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
        require_archive(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            return triangle_of({name: held[name] for name in held.files})
    except LogError as error:
        raise IdentificationError(error.problems) from None
    except Exception as error:  # NumPy parses a damaged head as Python's own text
        what = f"is no triangle of logs: {type(error).__name__}"
        raise IdentificationError.of("", what, "fold its logs again", file=str(path)) from None

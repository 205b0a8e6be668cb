"""Identification from many logs: each log is condensed to a QR factor, and the factors are merged.

The condensed form of a log contains the triangular QR factor R of [Y f], with R^T R = [Y f]^T [Y
f], for the fitted and for the held-out samples. The samples of different logs are never in memory
together. Further data are stored for the standard deviations:

- For errors with a known correlation c in time: Y^T C Y, where C is the Toeplitz matrix of c. For
  two consecutive parts of a log, this product is the sum of the parts' products plus a term from
  the rows next to their common boundary. The first and the last rows are therefore stored too.
- For errors of unknown correlation: the QR factors of blocks or of each log (`ClusteredErrors`).

To condense a log in this form is called *folding*. Parts of one log, logs of one machine, and logs
that are recorded later can be folded in any order, with the same result up to rounding.

Machine, options and a fingerprint of each log are stored too. Logs of another machine or with other
options are rejected, and a log that is folded twice is recognized.

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

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, LogError, solving
from tauloop.common.files import unreadable, write_file
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.clustered_errors import ClusteredErrors, jackknife
from tauloop.identification.estimation.error_models import correlated
from tauloop.identification.estimation.estimators import CondensedEstimator, Estimate
from tauloop.identification.regression.base_parameters import BaseParameters, RankOptions
from tauloop.identification.regression.data import RegressionData, split_data
from tauloop.identification.regression.streaming import Condensed, condensed, estimate_condensed
from tauloop.logs.files.unpacking import require_archive

_TRIANGLE_FORMAT = "tauloop-triangle/3"
#: Attributes of a `LogTriangle` that are saved without conversion.
_TRIANGLE_ARRAYS = ("correlation", "spread", "head", "tail", "clusters", "marks")
#: Number of differences that a message names for two triangles that do not match.
_MAX_NAMED_DIFFERENCES = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogTriangle(ReprMixin):
    """The condensed form of one or many logs, which is sufficient for an identification.

    Attributes:
        training: the fitted samples, condensed.
        held_out: the held-out samples, condensed; None if there are none.
        correlation: (L,) correlation of the errors at lags 0 to L - 1.
        spread: (n_measured, n, n) Y_k^T C Y_k of the fitted samples, for each output k.
        head: (n_measured, m, n) the first m rows of Y, with m at most L - 1.
        tail: (n_measured, m, n) the last m rows of Y.
        logs: number of logs.
        clusters: (G, n_measured, n + 1, n + 1) QR factors of blocks of the fitted samples.
        marks: a fingerprint of each log. It is equal for logs whose columns have the same norms to
            ten digits.
        origin: properties of machine and options by name, which must be the same for all logs;
            empty if they are not known.
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
        base: the base parameters.
        estimate: values and their covariance, SI.
        sensitivity: (sum over outputs of w_k^2 Y_k^T Y_k)^-1 (r, r).
        samples: number of fitted samples.
        training: RMS residual of each measured output on the fitted samples, SI.
        held_out: RMS residual on the held-out samples, SI; None if there are none.
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
    """Return the condensed form of one log.

    Args:
        data: samples of the log, with all measured outputs in all samples.
        share: fraction of the samples, at the start of the log, that are fitted; the others are
            held out. With 1, all samples are fitted.
        correlation: (L,) correlation of the errors at lags 0 to L - 1, such as from
            `decimation_correlation`; None for white errors.
        blocks: number of blocks of the fitted samples whose QR factors are stored for
            `ClusteredErrors`. With 1, the whole log is one block.

    Raises:
        IdentificationError: there are fewer samples than blocks, a part would be empty, or some
            samples have no data for some outputs.
    """
    if data.present is not None:
        raise IdentificationError.of(
            "log",
            "some samples have no data for some outputs",
            "fold logs that measure all outputs in all samples",
        )
    training, held_out = (data, None) if share == 1.0 else split_data(data, share)
    kernel = np.ones(1) if correlation is None else np.asarray(correlation, dtype=float)
    condensed_training = condensed(training)
    condensed_held_out = None if held_out is None else condensed(held_out)
    spread, head, tail = _spread(training, condensed_training, kernel)
    if blocks > len(training):
        raise IdentificationError.of(
            "blocks",
            f"a log of {counted(len(training), 'sample')} cannot be split into {counted(blocks, 'block')}",
            "use fewer blocks",
        )
    clusters = condensed_training.triangles[None][:blocks]
    if blocks > 1:
        block_triangles = []
        for block in np.array_split(np.arange(len(training)), blocks):
            samples = slice(int(block[0]), int(block[-1]) + 1)
            block_triangles.append(condensed(training.part(samples)).triangles)
        clusters = np.stack(block_triangles)
    return LogTriangle(
        training=condensed_training,
        held_out=condensed_held_out,
        correlation=kernel,
        spread=spread,
        head=head,
        tail=tail,
        logs=1,
        clusters=clusters,
        marks=np.array([_fingerprint(condensed_training, condensed_held_out)]),
        origin={},
    )


def _fingerprint(*parts: Condensed | None) -> int:
    """Return a 48-bit fingerprint of a log that does not depend on rounding errors."""
    norms = [
        np.append(np.linalg.norm(part.triangles, axis=1), part.samples)
        for part in parts
        if part is not None
    ]
    text = " ".join(f"{norm:.9e}" for norm in np.concatenate(norms))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _spread(
    data: RegressionData, samples: Condensed, kernel: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Y_k^T C Y_k of every output, and the rows at both ends of a log.

    For white errors, C is the identity. The products are then R^T R, and no rows are needed.
    """
    if len(kernel) == 1:
        R = samples.triangles[:, :, :-1]
        no_rows = np.zeros((len(R), 0, R.shape[2]))
        return R.transpose(0, 2, 1) @ R, no_rows, no_rows
    # Axes: output, unknown, sample.
    rows = data.unknown_rows(slice(None))[:, :-1]
    edge = min(len(kernel) - 1, len(data))
    return (
        np.stack([columns @ correlated(columns.T, kernel) for columns in rows]),
        rows[:, :, :edge].transpose(0, 2, 1).copy(),
        rows[:, :, rows.shape[2] - edge :].transpose(0, 2, 1).copy(),
    )


@solving(IdentificationError)
def merge_triangles(
    first: LogTriangle, second: LogTriangle, *, one_log: bool = False
) -> LogTriangle:
    """Return the condensed form of the samples of two condensed forms.

    Args:
        first, second: condensed forms of logs.
        one_log: whether `second` continues the log of `first`, so that errors are correlated across
            the boundary.

    Raises:
        IdentificationError: unknowns, outputs, correlations, machines or options differ.
    """
    _require_same_origin(first, second)
    if not np.array_equal(first.correlation, second.correlation):
        raise IdentificationError.of(
            "triangles",
            "the condensed logs assume different correlations of the errors",
            "fold all logs with the same correlation",
        )
    spread = first.spread + second.spread
    if one_log:
        across = seam(first.tail, second.head, first.correlation)
        spread = spread + across + across.transpose(0, 2, 1)
    held_out = first.held_out or second.held_out
    if first.held_out is not None and second.held_out is not None:
        held_out = first.held_out.joined_with(second.held_out)
    edge = len(first.correlation) - 1
    return LogTriangle(
        training=first.training.joined_with(second.training),
        held_out=held_out,
        correlation=first.correlation,
        spread=spread,
        head=np.concatenate([first.head, second.head], axis=1)[:, :edge],
        tail=np.concatenate([first.tail, second.tail], axis=1)[:, -edge:] if edge else second.tail,
        logs=max(first.logs, second.logs) if one_log else first.logs + second.logs,
        clusters=np.concatenate([first.clusters, second.clusters]),
        marks=np.concatenate([first.marks, second.marks]),
        origin=first.origin or second.origin,
    )


def _require_same_origin(first: LogTriangle, second: LogTriangle) -> None:
    """Raise an error if two condensed forms have different machines or options."""
    if not first.origin or not second.origin or first.origin == second.origin:
        return
    differences = []
    for name in {**first.origin, **second.origin}:
        before, after = first.origin.get(name), second.origin.get(name)
        if before != after:
            differences.append(f"{name} was {before} and is {after}")
    raise IdentificationError.of(
        "triangles",
        f"the logs were folded in different ways: {'; '.join(differences[:_MAX_NAMED_DIFFERENCES])}",
        "fold all logs with the same machine file and the same options",
    )


def seam(tail: np.ndarray, head: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the products of rows on both sides of a boundary: sum over i and j of c_lag Y_i^T Y_j.

    Args:
        tail: rows Y_i before the boundary (n_measured, m, n).
        head: rows Y_j after the boundary (n_measured, m, n).
        correlation: (L,) correlation c of the errors; the lag is the distance of the rows.

    Returns:
        Sum of the products of each output (n_measured, n, n).
    """
    before_count, after_count = tail.shape[1], head.shape[1]
    lags = np.arange(after_count)[None, :] + np.arange(before_count, 0, -1)[:, None]
    weights = np.where(
        lags < len(correlation), correlation[np.minimum(lags, len(correlation) - 1)], 0.0
    )
    return np.einsum("kin,ij,kjm->knm", tail, weights, head)


def fold_all(triangles: Iterable[LogTriangle]) -> LogTriangle:
    """Return the condensed form of all logs, merged pairwise as a binary tree.

    At most one condensed form of each level of the tree is in memory.

    Raises:
        IdentificationError: there are no triangles, or they do not match.
    """
    # Pairs of level and condensed form, by descending level.
    subtrees: list[tuple[int, LogTriangle]] = []
    for triangle in triangles:
        height = 0
        while subtrees and subtrees[-1][0] == height:
            triangle = merge_triangles(subtrees.pop()[1], triangle)
            height += 1
        subtrees.append((height, triangle))
    if not subtrees:
        raise IdentificationError.of(
            "triangles", "there are no condensed logs", "give at least one condensed log"
        )
    return reduce(
        lambda later, earlier: merge_triangles(earlier, later),
        (item for _, item in reversed(subtrees)),
    )


@solving(IdentificationError)
def identify_folded(
    triangle: LogTriangle,
    estimator: CondensedEstimator,
    rank: RankOptions | None = None,
    *,
    errors: ClusteredErrors | None = None,
) -> FoldedIdentification:
    """Return the base parameters of all logs in a condensed form.

    The covariance is that of `FilteredErrors`: B (sum over outputs k of w_k^4 s_k^2 Y_k^T C Y_k) B
    with B = (sum of w_k^2 Y_k^T Y_k)^-1 and the weights w_k of the estimator. The noise variance
    s_k^2 is the residual's sum of squares divided by N - t_k, where t_k is the number of parameters
    that output k determines. For errors with any correlation within blocks or logs, the covariance
    is the jackknife over these clusters.

    Args:
        triangle: condensed form of all logs.
        estimator, rank: estimator, and options of the rank decision.
        errors: clustered errors, if the triangle contains clusters; None for errors with the
            correlation `triangle.correlation`.

    Raises:
        IdentificationError: the logs do not determine the parameters, or the triangle contains
            fewer than two clusters.
    """
    fitted = triangle.training
    base, estimate = estimate_condensed(fitted, estimator, rank)
    independent = list(base.independent)
    columns = [*independent, len(fitted.unknowns)]
    triangles = fitted.triangles[:, :, columns]
    clusters = triangle.clusters[:, :, :, columns]
    weights = estimate.weights**2
    normal = sum(w * (R[:, :-1].T @ R[:, :-1]) for w, R in zip(weights, triangles, strict=True))
    sensitivity = np.linalg.inv(np.asarray(normal))
    if errors is not None and len(clusters) < 2:
        raise IdentificationError.of(
            "triangle",
            f"contains {counted(len(clusters), 'cluster')}, but at least 2 are needed",
            "fold several logs with blocks=1, or each log with blocks=12",
        )
    total = np.zeros_like(sensitivity)
    for w, R, spread in zip(weights, triangles, triangle.spread, strict=True):
        meat = spread[np.ix_(independent, independent)]
        residual = R[:, :-1] @ estimate.values - R[:, -1]
        freedom = max(fitted.samples - w * float(np.trace(sensitivity @ meat)), 1.0)
        total += w**2 * (residual @ residual) / freedom * meat
    covariance = sensitivity @ total @ sensitivity.T
    if errors is not None:
        regressors, forces = clusters[..., :-1], clusters[..., -1]
        misfits = forces - regressors @ estimate.values
        parts = np.einsum("k,gkmi,gkmj->gij", weights, regressors, regressors)
        scores = np.einsum("k,gkmi,gkm->gi", weights, regressors, misfits)
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
    """Return the contents of a condensed form as arrays by name."""
    texts = {"unknowns": triangle.training.unknowns, "units": triangle.training.unknown_units}
    texts |= {
        "outputs": triangle.training.outputs,
        "format": (_TRIANGLE_FORMAT,),
        "origin": (json.dumps(triangle.origin),),
    }
    arrays = {name: getattr(triangle, name) for name in _TRIANGLE_ARRAYS}
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
    """Return the condensed form from the arrays of `triangle_arrays`.

    Raises:
        KeyError, ValueError: the arrays do not come from `triangle_arrays`.
    """
    if arrays["format"].tolist() != [_TRIANGLE_FORMAT]:
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
    return LogTriangle(
        training=training,
        held_out=part("held_out"),
        logs=int(arrays["logs"]),
        origin=dict(json.loads(arrays["origin"][0])),
        **{name: arrays[name] for name in _TRIANGLE_ARRAYS},
    )


def write_triangle(triangle: LogTriangle, path: str | Path) -> Path:
    """Write condensed logs as a NumPy archive of arrays and texts, without pickled objects.

    Returns:
        Path of the file.

    Raises:
        InputError: the file cannot be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **triangle_arrays(triangle))

    return write_file(path, write)


def read_triangle(path: str | Path) -> LogTriangle:
    """Return the condensed logs in a file of `write_triangle`.

    Raises:
        IdentificationError: the file does not contain condensed logs, or is damaged.
    """
    path = Path(path)
    if (problem := unreadable(path)) is not None:
        raise IdentificationError.of("", *problem, file=str(path))
    try:
        require_archive(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return triangle_of({name: archive[name] for name in archive.files})
    except LogError as error:
        raise IdentificationError(error.problems) from None
    except Exception as error:
        # NumPy parses a damaged header as Python source, which can raise any exception.
        raise IdentificationError.of(
            "",
            f"is not a file of condensed logs: {type(error).__name__}",
            "condense the logs again",
            file=str(path),
        ) from None

"""Whether further columns predict what was not fitted: every block of the logs judged by a fit of all the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.data import RegressionData

#: Blocks of every log; each is left out in turn, in all logs at once.
BLOCKS = 6
#: Samples of a log that are looked at: its first ones.
LONGEST = 12_000
#: What one output gains may make others worse by this share, or by this part of the gain.
WORSE, PAID = 0.01, 0.15
#: Directions of unit-norm columns below this share of the largest are none: of products, the square
#: of what is kept.
RANK = 1e-12
#: A column of unit norm of which a smaller square is left beside the others cannot be told.
LEFT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFits:
    """Products of the columns of a fit, block by block and output by output, so that trials need no sample twice.

    With X = [Y f] of base parameters and force, and C the columns that are tried, a fit asks for
    X^T X, X^T C and C^T C alone, and so does the misfit of its parameters on any block (Stone 1974,
    Cross-validatory choice and assessment of statistical predictions, with blocks for samples,
    since neighbours are alike).

    Attributes:
        rows: X of every log, (n_kept, r + 1, N), each output over its residual in the fit.
        used: (n_kept, N) of every log, one for samples that count and zero for others.
        blocks: samples of every log that are a block, (BLOCKS, 2) from and to.
        products: X^T X (BLOCKS, n_kept, r + 1, r + 1).
        counts: samples that count (BLOCKS, n_kept).
        kept: numbers of the outputs.
        deviations: RMS residual (n_kept,), SI, that the outputs are divided by.
    """

    rows: tuple[np.ndarray, ...]
    used: tuple[np.ndarray, ...]
    blocks: tuple[np.ndarray, ...]
    products: np.ndarray
    counts: np.ndarray
    kept: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(
        cls,
        parts: Sequence[RegressionData],
        result: Identification,
        moving: Sequence[np.ndarray] | None = None,
    ) -> BlockFits:
        """Of logs, with the base parameters and the weights of their identification.

        Args:
            parts: the logs.
            result: their identification.
            moving: samples (N, n_out) of each that count; all without it.
        """
        columns = [*result.base.independent, len(result.base.parameters)]
        kept, deviations = (
            parts[0].kept,
            np.maximum([output.rmse for output in result.training], np.finfo(float).tiny),
        )
        rows, used, blocks = [], [], []
        for number, part in enumerate(parts):
            size = min(len(part), LONGEST)
            counted = (
                np.ones((size, len(part.outputs)))
                if part.present is None
                else part.present[:size].astype(float)
            )
            counted = counted if moving is None else counted * moving[number][:size]
            used.append(counted[:, kept].T)
            rows.append(
                part.unknown_rows(slice(0, size))[:, columns]
                * (used[-1] / deviations[:, None])[:, None]
            )
            edges = np.linspace(0, size, BLOCKS + 1).astype(int)
            blocks.append(np.stack([edges[:-1], edges[1:]], axis=1))
        return cls(
            rows=tuple(rows),
            used=tuple(used),
            blocks=tuple(blocks),
            products=np.sum(
                [_products(row, row, edges) for row, edges in zip(rows, blocks, strict=True)],
                axis=0,
            ),
            counts=np.sum(
                [
                    [counted[:, a:b].sum(axis=1) for a, b in edges]
                    for counted, edges in zip(used, blocks, strict=True)
                ],
                axis=0,
            ),
            kept=kept,
            deviations=deviations,
        )

    def errors(self, columns: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """RMS misfit (BLOCKS, n_kept), SI, of every block with the parameters of all others.

        Args:
            columns: further ones (N, n_out, n) of every log, decimated as the regressor; none
                without them.
        """
        return self._errors(self._grams(columns))

    def values(self) -> np.ndarray:
        """Parameters (r,) fitted to all blocks."""
        return _solved(self.products.sum(axis=(0, 1)))

    def both(self, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Errors with further columns, and parameters (r + n,): those of the base, then the columns' coefficients."""
        grams = self._grams(columns)
        return self._errors(grams), _solved(grams.sum(axis=(0, 1)))

    def _errors(self, grams: np.ndarray) -> np.ndarray:
        whole = grams.sum(axis=(0, 1))
        misfits = np.zeros(self.counts.shape)
        for block, own in enumerate(grams):
            values = np.append(_solved(whole - own.sum(axis=0)), -1.0)
            misfits[block] = np.sqrt(
                np.maximum((own @ values) @ values, 0.0) / np.maximum(self.counts[block], 1)
            )
        return np.asarray(misfits * self.deviations)

    def explained(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Power (n,) of the residual that each column alone would explain, over that of the output with the least."""
        grams = self._grams(columns).sum(axis=0)
        gram, count = grams.sum(axis=0), columns[0].shape[-1]
        size = len(gram) - 1 - count
        scale = 1.0 / _norms(gram)
        unit = gram * np.outer(scale, scale)
        products = unit[:size, size:]  # the columns that are tried, and the force
        values = np.linalg.lstsq(unit[:size, :size], products, rcond=RANK)[0]
        left = unit[size:, size:] - products.T @ values
        own = np.diag(left)[:count]
        gain = (
            np.where(own > LEFT, left[:count, -1] ** 2 / np.maximum(own, LEFT), 0.0)
            / scale[-1] ** 2
        )
        fitted = np.concatenate([values[:, -1] * scale[:size] / scale[-1], np.zeros(count), [-1.0]])
        power = np.einsum("i,kij,j->k", fitted, grams, fitted)
        is_shown = power > RANK * power.sum()
        return np.asarray(gain / power[is_shown].min()) if is_shown.any() else np.zeros(count)

    @property
    def largest(self) -> np.ndarray:
        """Largest force (n_kept,) of every output."""
        return np.asarray(
            np.max([np.abs(rows[:, -1]).max(axis=1) for rows in self.rows], axis=0)
            * self.deviations
        )

    def carried(self, acting: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Predicted force (N,) of every log along an element whose unit force is these rows (N, n_out, 1)."""
        values, carried = self.values(), []
        for rows, unit in zip(self.rows, acting, strict=True):
            predicted = np.einsum("kjn,j->nk", rows[:, :-1], values) * self.deviations
            own = unit[: len(predicted), self.kept, 0]
            carried.append(
                np.sum(own * predicted, axis=1)
                / np.maximum(np.sum(own**2, axis=1), np.finfo(float).tiny)
            )
        return carried

    def _grams(self, columns: Sequence[np.ndarray] | None) -> np.ndarray:
        """Products of all columns, with the force at the end."""
        if columns is None:
            return self.products
        size, beside = self.products.shape[-1] - 1, columns[0].shape[-1]
        grams = np.zeros((*self.products.shape[:2], size + beside + 1, size + beside + 1))
        old = [*range(size), size + beside]
        new = slice(size, size + beside)
        grams[:, :, np.array(old)[:, None], old] = self.products
        for rows, used, blocks, tried in zip(
            self.rows, self.used, self.blocks, columns, strict=True
        ):
            weights = (used / self.deviations[:, None])[:, None]
            added = tried[: rows.shape[-1], self.kept].transpose(1, 2, 0) * weights
            across = _products(rows, added, blocks)
            grams[:, :, old, new] += across
            grams[:, :, new, old] += across.transpose(0, 1, 3, 2)
            grams[:, :, new, new] += _products(added, added, blocks)
        return grams


def pooled(errors: np.ndarray) -> np.ndarray:
    """RMS (n_kept,) over the blocks."""
    return np.asarray(np.maximum(np.sqrt(np.mean(errors**2, axis=0)), np.finfo(float).tiny))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What further columns are worth.

    Attributes:
        output: number of the one that gains most, among those that are kept.
        share: by which its error falls over all blocks.
        alike: blocks in which it does.
        is_fair: whether no output gets worse by more than `WORSE`, or `PAID` of the gain.
    """

    output: int
    share: float
    alike: int
    is_fair: bool


def gained(errors: np.ndarray, before: np.ndarray) -> Gain:
    """The gain from errors (BLOCKS, n_kept) before to those after."""
    ratios = pooled(errors) / pooled(before)
    output = int(np.argmin(ratios))
    share = 1.0 - float(ratios[output])
    return Gain(
        output=output,
        share=share,
        alike=int(np.sum(errors[:, output] < before[:, output])),
        is_fair=bool(ratios.max() <= 1.0 + max(WORSE, PAID * share)),
    )


def _products(left: np.ndarray, right: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Products (BLOCKS, n_kept, a, b) of columns (n_kept, a, N) and (n_kept, b, N)."""
    return np.stack([left[:, :, a:b] @ right[:, :, a:b].transpose(0, 2, 1) for a, b in blocks])


def _solved(gram: np.ndarray) -> np.ndarray:
    """Least squares from products, the last column being the force; columns scaled to unit norm."""
    norms = _norms(gram)[:-1]
    values, *_ = np.linalg.lstsq(
        gram[:-1, :-1] / np.outer(norms, norms), gram[:-1, -1] / norms, rcond=RANK
    )
    return np.asarray(values / norms)


def _norms(gram: np.ndarray) -> np.ndarray:
    """Norms (n,) of columns from their products; one of columns that are zero."""
    norms = np.sqrt(np.diag(gram))
    return np.where(norms > 0.0, norms, 1.0)

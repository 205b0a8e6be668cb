"""Cross-validation of additional regression columns over blocks of the logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.regression.data import RegressionData

#: Number of blocks of every log. Each block is left out in turn, in all logs at the same time.
BLOCKS_PER_LOG = 6
#: Only this number of samples at the start of a log is used.
MAX_SAMPLES_PER_LOG = 12_000
#: If the error of one output decreases, the errors of other outputs may increase by this fraction.
LOSS_TOLERANCE = 0.01
#: The errors of other outputs may also increase by this fraction of the decrease, if that is more.
LOSS_PER_GAIN = 0.15
#: Singular values of products of unit-norm columns below this fraction of the largest count as
#: zero. For products of columns, this is the square of the corresponding tolerance for columns.
GRAM_RANK_TOLERANCE = 1e-12
#: If no squared pivot of a Cholesky factor is below this value (unit-norm columns), the products
#: are well conditioned and are solved without a singular value decomposition.
MIN_SQUARED_PIVOT = 1e-8
#: A column is not identifiable if less than this fraction of its squared norm is independent of the
#: other columns.
MIN_REMAINDER = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFits:
    """Products of the columns of a fit, for each block and output.

    Let X = [Y f], with the regressor Y of the r base parameters and the force f, and let C be the
    additional columns. A fit, and the misfit of its parameters on any block, only need X^T X, X^T C
    and C^T C. X^T X is stored and reused for all trials of additional columns. Whole
    blocks are held out, not single samples, because neighboring samples are correlated (Stone 1974,
    Cross-validatory choice and assessment of statistical predictions).

    Attributes:
        rows: for every log, X^T (n_kept, r + 1, N) of the n_kept measured outputs, with each output
            divided by its RMS residual.
        used: for every log, weights (n_kept, N): 1 for samples that are used, 0 for other samples.
        blocks: for every log, first sample index and end index (exclusive) of every block
            (BLOCKS_PER_LOG, 2).
        products: X^T X of every block and output (BLOCKS_PER_LOG, n_kept, r + 1, r + 1).
        counts: number of used samples of every block and output (BLOCKS_PER_LOG, n_kept).
        kept: indices of the measured outputs.
        deviations: RMS residual (n_kept,) of the fit, SI, by which the outputs are divided.
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
        """Return the products of logs, with the base parameters and weights of an identification.

        Args:
            parts: the logs.
            result: their identification.
            moving: (N, n_out) for each log, True for samples that are used; None for all samples.
        """
        columns = [*result.base.independent, len(result.base.parameters)]
        kept = parts[0].kept
        rmse = [output.rmse for output in result.training]
        deviations = np.maximum(rmse, np.finfo(float).tiny)
        rows = []
        used = []
        blocks = []
        for number, part in enumerate(parts):
            count = min(len(part), MAX_SAMPLES_PER_LOG)
            if part.present is None:
                is_used = np.ones((count, len(part.outputs)))
            else:
                is_used = part.present[:count].astype(float)
            if moving is not None:
                is_used = is_used * moving[number][:count]
            used.append(is_used[:, kept].T)
            factors = used[-1] / deviations[:, None]
            rows.append(part.unknown_rows(slice(0, count))[:, columns] * factors[:, None])
            edges = np.linspace(0, count, BLOCKS_PER_LOG + 1).astype(int)
            blocks.append(np.stack([edges[:-1], edges[1:]], axis=1))
        products = [_products(row, row, edges) for row, edges in zip(rows, blocks, strict=True)]
        counts = [_counts(is_used, edges) for is_used, edges in zip(used, blocks, strict=True)]
        return cls(
            rows=tuple(rows),
            used=tuple(used),
            blocks=tuple(blocks),
            products=np.sum(products, axis=0),
            counts=np.sum(counts, axis=0),
            kept=kept,
            deviations=deviations,
        )

    def with_columns(self, columns: Sequence[np.ndarray]) -> BlockFits:
        """Return the products with additional columns after the base parameters.

        Args:
            columns: additional columns, see `errors`.
        """
        extended = []
        for rows, used, additional in zip(self.rows, self.used, columns, strict=True):
            weights = (used / self.deviations[:, None])[:, None]
            added = additional[: rows.shape[-1], self.kept].transpose(1, 2, 0) * weights
            extended.append(np.concatenate([rows[:, :-1], added, rows[:, -1:]], axis=1))
        return replace(self, rows=tuple(extended), products=self._grams(columns))

    def errors(self, columns: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Return the RMS misfit of every block for a fit to all other blocks.

        Args:
            columns: additional columns (N, n_out, n) of every log, decimated as the regressor.

        Returns:
            Errors of every block and output (BLOCKS_PER_LOG, n_kept), SI.
        """
        return self._errors(self._grams(columns))

    def values(self) -> np.ndarray:
        """Return the base parameters (r,) fitted to all blocks."""
        return _least_squares(self.products.sum(axis=(0, 1)))

    def both(self, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors and the parameters of a fit with additional columns.

        Args:
            columns: additional columns, see `errors`.

        Returns:
            Errors as from `errors`; parameters (r + n,), the base parameters first, then the
            coefficients of the columns.
        """
        grams = self._grams(columns)
        return self._errors(grams), _least_squares(grams.sum(axis=(0, 1)))

    def predicted(self, columns: Sequence[np.ndarray], values: np.ndarray) -> list[np.ndarray]:
        """Return the forces (n_kept, N) of every log, SI.

        Args:
            columns: additional columns, see `errors`.
            values: parameters as from `both`.
        """
        forces = []
        for rows, additional in zip(self.rows, columns, strict=True):
            base_count = rows.shape[1] - 1
            base_forces = np.einsum("kjn,j->kn", rows[:, :-1], values[:base_count])
            added = additional[: rows.shape[-1], self.kept] @ values[base_count:]
            forces.append(base_forces * self.deviations[:, None] + added.T)
        return forces

    def with_forces(self, forces: Sequence[np.ndarray]) -> BlockFits:
        """Return the products of the same columns with other forces (n_kept, N), SI."""
        replaced_rows = []
        for rows, used, force in zip(self.rows, self.used, forces, strict=True):
            scaled_force = force * used / self.deviations[:, None]
            replaced_rows.append(np.concatenate([rows[:, :-1], scaled_force[:, None]], axis=1))
        products = [
            _products(rows, rows, edges)
            for rows, edges in zip(replaced_rows, self.blocks, strict=True)
        ]
        return replace(self, rows=tuple(replaced_rows), products=np.sum(products, axis=0))

    def _errors(self, grams: np.ndarray) -> np.ndarray:
        """Return the errors of `errors` from the products (BLOCKS_PER_LOG, n_kept, m, m)."""
        block_grams = grams.sum(axis=1)
        solutions = _least_squares_of_each(block_grams.sum(axis=0) - block_grams)
        misfits = np.zeros(self.counts.shape)
        for block, (gram, solution) in enumerate(zip(grams, solutions, strict=True)):
            values = np.append(solution, -1.0)
            squares = np.maximum((gram @ values) @ values, 0.0)
            misfits[block] = np.sqrt(squares / np.maximum(self.counts[block], 1))
        return np.asarray(misfits * self.deviations)

    def explained(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the fraction of the residual power that each column would explain alone.

        Args:
            columns: additional columns, see `errors`.

        Returns:
            Explained power of each column (n,), as a fraction of the smallest residual power of an
            output.
        """
        grams = self._grams(columns).sum(axis=0)
        gram = grams.sum(axis=0)
        count = columns[0].shape[-1]
        base_count = len(gram) - 1 - count
        scale = 1.0 / _norms(gram)
        unit = gram * np.outer(scale, scale)
        # products of the base columns with the additional columns and the force
        products = unit[:base_count, base_count:]
        base = unit[:base_count, :base_count]
        values = np.linalg.lstsq(base, products, rcond=GRAM_RANK_TOLERANCE)[0]
        remainder = unit[base_count:, base_count:] - products.T @ values
        squares = np.diag(remainder)[:count]
        explained = remainder[:count, -1] ** 2 / np.maximum(squares, MIN_REMAINDER)
        gain = np.where(squares > MIN_REMAINDER, explained, 0.0) / scale[-1] ** 2
        base_values = values[:, -1] * scale[:base_count] / scale[-1]
        fitted = np.concatenate([base_values, np.zeros(count), [-1.0]])
        power = np.einsum("i,kij,j->k", fitted, grams, fitted)
        has_residual = power > GRAM_RANK_TOLERANCE * power.sum()
        if not has_residual.any():
            return np.zeros(count)
        return np.asarray(gain / power[has_residual].min())

    @property
    def largest(self) -> np.ndarray:
        """Largest absolute force (n_kept,) of every output, SI."""
        largest = [np.abs(rows[:, -1]).max(axis=1) for rows in self.rows]
        return np.asarray(np.max(largest, axis=0) * self.deviations)

    def carried(self, unit_forces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the force (N,) that an element transmits according to the fit, for every log.

        Args:
            unit_forces: for every log, the forces (N, n_out, 1) of the outputs for a unit force in
                the element.
        """
        values = self.values()
        element_forces = []
        for rows, unit in zip(self.rows, unit_forces, strict=True):
            predicted = np.einsum("kjn,j->nk", rows[:, :-1], values) * self.deviations
            direction = unit[: len(predicted), self.kept, 0]
            squares = np.maximum(np.sum(direction**2, axis=1), np.finfo(float).tiny)
            element_forces.append(np.sum(direction * predicted, axis=1) / squares)
        return element_forces

    def _grams(self, columns: Sequence[np.ndarray] | None) -> np.ndarray:
        """Return the products of all columns of every block and output; the force is the last."""
        if columns is None:
            return self.products
        base_count = self.products.shape[-1] - 1
        count = columns[0].shape[-1]
        grams = np.zeros((*self.products.shape[:2], base_count + count + 1, base_count + count + 1))
        old = [*range(base_count), base_count + count]  # the base columns and the force
        new = slice(base_count, base_count + count)
        grams[:, :, np.array(old)[:, None], old] = self.products
        for rows, used, blocks, additional in zip(
            self.rows, self.used, self.blocks, columns, strict=True
        ):
            weights = (used / self.deviations[:, None])[:, None]
            added = additional[: rows.shape[-1], self.kept].transpose(1, 2, 0) * weights
            cross_products = _products(rows, added, blocks)
            grams[:, :, old, new] += cross_products
            grams[:, :, new, old] += cross_products.transpose(0, 1, 3, 2)
            grams[:, :, new, new] += _products(added, added, blocks)
        return grams


def pooled(errors: np.ndarray) -> np.ndarray:
    """Return the RMS over the blocks (n_kept,) of errors (BLOCKS_PER_LOG, n_kept)."""
    return np.asarray(np.maximum(np.sqrt(np.mean(errors**2, axis=0)), np.finfo(float).tiny))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The improvement of the validation errors by additional columns.

    Attributes:
        output: index, among the measured outputs, of the output that improves most.
        reduction: relative reduction of this output's error over all blocks.
        improved_blocks: number of blocks in which this output's error decreases.
        is_fair: whether no output's error grows by more than the larger of `LOSS_TOLERANCE` and
            `LOSS_PER_GAIN` times `reduction`.
    """

    output: int
    reduction: float
    improved_blocks: int
    is_fair: bool


def gained(errors: np.ndarray, before: np.ndarray) -> Gain:
    """Return the improvement from errors `before` to `errors`, both (BLOCKS_PER_LOG, n_kept)."""
    ratios = pooled(errors) / pooled(before)
    output = int(np.argmin(ratios))
    reduction = 1.0 - float(ratios[output])
    return Gain(
        output=output,
        reduction=reduction,
        improved_blocks=int(np.sum(errors[:, output] < before[:, output])),
        is_fair=bool(ratios.max() <= 1.0 + max(LOSS_TOLERANCE, LOSS_PER_GAIN * reduction)),
    )


def _products(left: np.ndarray, right: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the products of two sets of rows in every block.

    Args:
        left: (n_kept, a, N).
        right: (n_kept, b, N).
        blocks: (BLOCKS_PER_LOG, 2) first index and end index (exclusive) of every block.

    Returns:
        Products (BLOCKS_PER_LOG, n_kept, a, b).
    """
    return np.stack([left[:, :, a:b] @ right[:, :, a:b].transpose(0, 2, 1) for a, b in blocks])


def _counts(is_used: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the number of used samples (BLOCKS_PER_LOG, n_kept) from a mask (n_kept, N)."""
    return np.stack([is_used[:, first:last].sum(axis=1) for first, last in blocks])


def _least_squares(gram: np.ndarray) -> np.ndarray:
    """Return the least-squares solution from products whose last column is the force.

    The columns are scaled to unit norm for the solution.
    """
    norms = _norms(gram)[:-1]
    values, *_ = np.linalg.lstsq(
        gram[:-1, :-1] / np.outer(norms, norms), gram[:-1, -1] / norms, rcond=GRAM_RANK_TOLERANCE
    )
    return np.asarray(values / norms)


def _least_squares_of_each(grams: np.ndarray) -> np.ndarray:
    """Return the solutions (k, n) of `_least_squares` for products (k, n + 1, n + 1).

    Well-conditioned products are solved together, which takes a tenth of the time.
    """
    norms = np.stack([_norms(gram)[:-1] for gram in grams])
    products = grams[:, :-1, :-1] / (norms[:, :, None] * norms[:, None, :])
    try:
        factors = np.linalg.cholesky(products)
        pivots = np.diagonal(factors, axis1=1, axis2=2)
        is_well_conditioned = bool((pivots**2 > MIN_SQUARED_PIVOT).all())
    except np.linalg.LinAlgError:
        is_well_conditioned = False
    if not is_well_conditioned:
        return np.stack([_least_squares(gram) for gram in grams])
    forces = grams[:, :-1, -1] / norms
    return np.asarray(np.linalg.solve(products, forces[..., None])[..., 0] / norms)


def _norms(gram: np.ndarray) -> np.ndarray:
    """Return the norms (n,) of columns from their products; 1 for columns that are zero."""
    norms = np.sqrt(np.diag(gram))
    return np.where(norms > 0.0, norms, 1.0)

"""The border between grid points of different labels, as cuts of the edges of simplices.

Every cell is divided into d! simplices, one for each order of its axes (Kuhn 1960). Their edges
lead from a point v to v + e, with e of zeros and ones. A plane of the grid is divided in the same
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from tauloop.common.records import dataclass

#: Number of bisections of an edge: the cut is accurate to a thousandth of the edge, and lies on the
#: inner side.
BISECTIONS = 10
#: Number of edges that are bisected together.
BORDER_CHUNK = 8192

#: Offset that is added to labels in a sparse matrix, which does not store zeros.
LABEL_OFFSET = 10
#: Function of poses (N, d) and of data of nearby poses (None if there are none). It returns the
#: labels (N,) of the poses and their data, such as coordinates (N, n), for later calls.
Kinds = Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Border:
    """A grid with labels at its points, and the cuts of all edges between different labels.

    Label 0 means inside.

    Attributes:
        axes: values of each axis, at least two.
        labels: labels of the grid points.
        keys: keys (E,) of the cut edges, ascending: the number of the edge's direction (one bit per
            axis, the first axis highest) times the number of points, plus the number of the edge's
            lower point.
        shares: position (E,) of each cut as a fraction of its edge, from the lower point (0) to the
            upper point (1).
    """

    axes: tuple[np.ndarray, ...]
    labels: np.ndarray
    keys: np.ndarray
    shares: np.ndarray

    @property
    def size(self) -> float:
        """Length, area or volume inside, in the product of the axes' units.

        The border in a simplex is taken as flat. For example, a simplex with one vertex inside
        contributes the product of the inner fractions of its edges. The error is proportional to
        the square of the step.
        """
        if not self.axes:
            return float(self.labels.item() == 0)
        dimension = len(self.axes)
        total = 0.0
        for vertices in self._simplices():
            is_inside = self.labels.ravel()[vertices] == 0
            simplex_sizes = self._cell_sizes(vertices[:, 0]) / factorial(dimension)
            inner_fraction = is_inside.all(axis=1).astype(float)
            cut = np.flatnonzero(is_inside.any(axis=1) & ~is_inside.all(axis=1))
            inner_fraction[cut] = self._inner_fractions(vertices[cut], is_inside[cut])
            total += float(inner_fraction @ simplex_sizes)
        return total

    def _cell_sizes(self, points: np.ndarray) -> np.ndarray:
        """Return the length, area or volume (N,) of the cells whose lowest points are given."""
        indices = self._indices(points)
        steps = [np.diff(axis)[index] for axis, index in zip(self.axes, indices, strict=True)]
        return np.asarray(np.prod(steps, axis=0))

    def _simplices(self) -> Iterator[np.ndarray]:
        """Yield the vertices (N, d + 1) of all simplices, one order of the axes at a time."""
        shape = self.labels.shape
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        numbers = (
            np.arange(self.labels.size).reshape(shape)[(slice(None, -1),) * len(shape)].ravel()
        )
        for order in permutations(range(len(shape))):
            yield numbers[:, None] + np.cumsum([0, *(strides[i] for i in order)])

    def _inner_fractions(self, vertices: np.ndarray, is_inside: np.ndarray) -> np.ndarray:
        """Return the inner fractions (N,) of simplices that the border cuts.

        Args:
            vertices: numbers of the vertices (N, d + 1).
            is_inside: whether each vertex is inside (N, d + 1).
        """
        order = np.argsort(~is_inside, axis=1, kind="stable")
        vertices = np.take_along_axis(vertices, order, axis=1)
        count = is_inside.sum(axis=1)
        fractions = np.empty(len(vertices))
        last = vertices.shape[1] - 1
        for k in range(1, last + 1):
            rows = np.flatnonzero(count == k)
            inner, outer = vertices[rows, :k], vertices[rows, k:]
            s = self.share(inner[:, :, None], outer[:, None, :])  # from inside (0) to outside (1)
            if k == 1:
                fractions[rows] = np.prod(s[:, 0], axis=1)
            elif k == last:
                fractions[rows] = 1.0 - np.prod(1.0 - s[:, :, 0], axis=1)
            else:
                # The part of a tetrahedron with the inner vertices a, b and the outer vertices c, d
                # is a wedge of three tetrahedra.
                (ac, ad), (bc, bd) = s.transpose(1, 2, 0)
                fractions[rows] = ac * ad * (1 - bd) + ac * bd * (1 - bc) + bc * bd
        return fractions

    def share(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the positions of the cuts on edges, as fractions of the edges from start to end.

        The two points of each edge are given by their numbers.
        """
        lower, upper = np.minimum(start, end), np.maximum(start, end)
        below, above = (self._indices(points) for points in (lower, upper))
        steps = [high - low for low, high in zip(below, above, strict=True)]
        direction = sum(step << i for i, step in enumerate(reversed(steps)))
        share = self.shares[np.searchsorted(self.keys, direction * self.labels.size + lower)]
        return np.where(start == lower, share, 1.0 - share)

    def section(self, places: Sequence[int]) -> Border:
        """Return the border in a plane of the first two axes, at given indices of the others."""
        index: Any = (..., *places)
        numbers = np.arange(self.labels.size).reshape(self.labels.shape)[index]
        return self._over(self.axes[:2], self.labels[index], numbers)

    def _over(self, axes: Sequence[np.ndarray], labels: np.ndarray, numbers: np.ndarray) -> Border:
        """Return the border over another grid whose points belong to this grid or to its margin.

        Args:
            axes: values of the axes of the other grid.
            labels: labels of its points.
            numbers: numbers of its points in this grid; -1 for points of the margin. Edges to the
                margin are cut at their point of this grid.
        """
        other = bordered(axes, labels)
        ends = numbers.ravel()[other.ends]
        has_both_ends = (ends >= 0).all(axis=1)
        shares = np.where(ends[:, 0] >= 0, 0.0, 1.0)
        shares[has_both_ends] = self.share(*ends[has_both_ends].T)
        return replace(other, shares=shares)

    @property
    def ends(self) -> np.ndarray:
        """Numbers of the lower and upper points (E, 2) of the cut edges."""
        direction, lower = np.divmod(self.keys, self.labels.size)
        shape = self.labels.shape
        strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        steps = sum(
            (direction >> (len(shape) - 1 - i) & 1) * stride for i, stride in enumerate(strides)
        )
        return np.stack([lower, lower + steps], axis=1)

    def places(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates (..., d) of points from their numbers."""
        return np.stack(
            [axis[index] for axis, index in zip(self.axes, self._indices(points), strict=True)],
            axis=-1,
        )

    def _indices(self, points: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the indices of points along the axes from their numbers."""
        # for large arrays (N, 1) NumPy returns wrong indices: github.com/numpy/numpy/issues/31980
        indices = np.unravel_index(np.ravel(points), self.labels.shape)
        return tuple(index.reshape(np.shape(points)) for index in indices)

    @property
    def lines(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The border in a plane as closed lines of points (n, 2), the longest first.

        Each line comes with the labels (n - 1,) on the outer side of its segments; -1 at the edge
        of the grid.
        """
        numbers = np.pad(
            np.arange(self.labels.size).reshape(self.labels.shape), 1, constant_values=-1
        )
        axes = [np.concatenate([axis[:1] - 1.0, axis, axis[-1:] + 1.0]) for axis in self.axes]
        return self._over(axes, np.pad(self.labels, 1, constant_values=-1), numbers)._lines()

    def _lines(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Return the lines (see `lines`) of a grid without inner points at its edge."""
        ends, outer_labels = [], []
        for vertices in self._simplices():
            labels = self.labels.ravel()[vertices]
            count = (labels == 0).sum(axis=1)
            for k in (1, 2):
                rows = np.flatnonzero(count == k)
                order = np.argsort(labels[rows] != 0, axis=1, kind="stable")
                a, b, c = np.take_along_axis(vertices[rows], order, axis=1).T
                pairs = ((a, b), (a, c)) if k == 1 else ((a, c), (b, c))
                ends.append(np.stack([np.stack(pair, axis=1) for pair in pairs], axis=1))
                outer_labels.append(self.labels.ravel()[c])
        edges, labels = np.concatenate(ends), np.concatenate(outer_labels)
        if not len(edges):
            return ()
        cuts, numbers = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
        start, end = (self.places(side) for side in cuts.T)
        points = start + self.share(*cuts.T)[:, None] * (end - start)
        segments = numbers.reshape(-1, 2)
        lines = _chained(points, segments, labels)
        return tuple(sorted(lines, key=lambda line: -_length(line[0])))

    def sampled(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the labels over a finer grid of a plane, with vertices and weights.

        Args:
            x, y: values of the finer grid along the axes, within their ranges.

        Returns:
            Labels (n_x, n_y); the numbers of the vertices of the triangle around each point (n_x,
            n_y, 3); and their barycentric weights (n_x, n_y, 3), limited to the vertices with the
            point's label. The weights add up to one.
        """
        cells = [
            np.clip(np.searchsorted(axis, values, side="right") - 1, 0, len(axis) - 2)
            for axis, values in zip(self.axes, (x, y), strict=True)
        ]
        u, v = (
            np.clip((values - axis[i]) / np.diff(axis)[i], 0.0, 1.0)
            for axis, values, i in zip(self.axes, (x, y), cells, strict=True)
        )
        u, v = np.meshgrid(u, v, indexing="ij")
        width = self.labels.shape[1]
        first = cells[0][:, None] * width + cells[1]
        vertices = np.stack(
            [first, np.where(u >= v, first + width, first + 1), first + width + 1], axis=-1
        )
        weights = np.stack([1.0 - np.maximum(u, v), np.abs(u - v), np.minimum(u, v)], axis=-1)
        labels = self.labels.ravel()[vertices]
        point_labels = labels[..., 0].copy()
        cut = np.flatnonzero((labels != labels[..., :1]).any(axis=-1).ravel())
        point_labels.ravel()[cut] = self._labels_in_triangles(
            *(values.reshape(-1, 3)[cut] for values in (vertices, labels, weights))
        )
        has_label = labels == point_labels[..., None]
        weights = np.where(has_label, np.maximum(weights, 1e-12), 0.0)
        return point_labels, vertices, weights / weights.sum(axis=-1, keepdims=True)

    def _labels_in_triangles(
        self, vertices: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return the labels (N,) of points in triangles whose vertices differ in their labels.

        Args:
            vertices: numbers of the vertices (N, 3).
            labels: labels of the vertices (N, 3).
            weights: barycentric weights of the points (N, 3).
        """
        point_labels = np.empty(len(vertices), dtype=labels.dtype)
        differs_from_next = [labels[:, k] != labels[:, (k + 1) % 3] for k in range(3)]
        has_three = differs_from_next[0] & differs_from_next[1] & differs_from_next[2]
        point_labels[has_three] = labels[has_three, np.argmax(weights[has_three], axis=1)]
        # If only vertex k has another label, the border in the triangle is a straight line.
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            has_equal_others = ~has_three & (labels[:, i] == labels[:, j])
            rows = np.flatnonzero(has_equal_others & differs_from_next[k])
            s = self.share(vertices[rows, k, None], vertices[rows][:, [i, j]])
            is_near = (weights[rows][:, [i, j]] / np.maximum(s, 1e-300)).sum(axis=1) < 1.0
            point_labels[rows] = np.where(is_near, labels[rows, k], labels[rows, i])
        return point_labels


def bordered(
    axes: Sequence[np.ndarray],
    labels: np.ndarray,
    kinds: Kinds | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Border:
    """Return the border between the labels of a grid, with all edges between different labels cut.

    Args:
        axes: values of the axes; axes with a single value are left out.
        labels: labels of the grid points.
        kinds: function that returns the labels of further poses, by which the cuts are located.
            None to cut edges at their middle. With three axes only edges with an inner end are
            bisected.
        progress: called with the number of finished edges and their total.
    """
    border_axes = tuple(np.asarray(axis, dtype=float) for axis in axes if len(axis) > 1)
    labels = labels.reshape([len(axis) for axis in border_axes])
    numbers = np.arange(labels.size).reshape(labels.shape)
    keys, starts, ends = [], [], []
    for direction in range(1, 2**labels.ndim):
        steps = [direction >> (labels.ndim - 1 - i) & 1 for i in range(labels.ndim)]
        low = numbers[tuple(slice(None, -1) if step else slice(None) for step in steps)]
        high = numbers[tuple(slice(1, None) if step else slice(None) for step in steps)]
        is_cut = labels.ravel()[low] != labels.ravel()[high]
        keys.append(direction * labels.size + low[is_cut])
        starts.append(low[is_cut])
        ends.append(high[is_cut])
    no_edges = np.zeros(0, dtype=int)
    key = np.concatenate([*keys, no_edges])
    start = np.concatenate([*starts, no_edges])
    end = np.concatenate([*ends, no_edges])
    border = Border(axes=border_axes, labels=labels, keys=key, shares=np.full(len(key), 0.5))
    if kinds is None or not border_axes:
        return border
    # Bisect from the inner end, or else from the end with the higher label, where the loops close.
    ends_labels = (labels.ravel()[start], labels.ravel()[end])
    start_rank, end_rank = [np.where(label == 0, np.inf, label) for label in ends_labels]
    is_reversed = end_rank > start_rank
    is_bisected = np.isinf(np.maximum(start_rank, end_rank)) | (labels.ndim < 3)
    bisected = np.flatnonzero(is_bisected)
    a = border.places(np.where(is_reversed, end, start))
    b = border.places(np.where(is_reversed, start, end))
    for first in range(0, len(bisected), BORDER_CHUNK):
        rows = bisected[first : first + BORDER_CHUNK]
        border.shares[rows] = _bisected(a[rows], b[rows], kinds)
        if progress is not None:
            progress(min(first + BORDER_CHUNK, len(bisected)), len(bisected))
    border.shares[is_reversed] = 1.0 - border.shares[is_reversed]
    return border


def _bisected(a: np.ndarray, b: np.ndarray, kinds: Kinds) -> np.ndarray:
    """Return the fraction (N,) of the line from poses a to b (N, d) that has the label of a."""
    start_label, near = kinds(a, None)
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        label, state = kinds(a + middle[:, None] * (b - a), near)
        is_same = label == start_label
        low = np.where(is_same, middle, low)
        high = np.where(is_same, high, middle)
        near = np.where(is_same[:, None], state, near)
    return low


def _chained(
    points: np.ndarray, segments: np.ndarray, labels: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the lines of points (P, d) that segments (M, 2) form, and the segments' labels."""
    from scipy import sparse  # imported late: commands that only show a machine do not need it
    from scipy.sparse import csgraph

    shape = (len(points), len(points))
    graph = sparse.coo_array((labels + LABEL_OFFSET, tuple(segments.T)), shape=shape).tocsr()
    graph = graph + graph.T
    _, component_of_point = csgraph.connected_components(graph, directed=False)
    for start in np.unique(component_of_point, return_index=True)[1]:
        order = csgraph.depth_first_order(graph, start, directed=False, return_predecessors=False)
        order = np.append(order, start)
        yield points[order], np.asarray(graph[order[:-1], order[1:]]).ravel() - LABEL_OFFSET


def _length(points: np.ndarray) -> float:
    """Return the length of a line of points (n, d)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())

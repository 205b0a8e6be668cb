"""Elimination order of a graph of derivatives, chosen by trying several orders numerically.

The next vertex is the one that costs the fewest operations and creates the fewest new edges
(Markowitz). The weight of a new edge relative to an operation changes costs by up to a third, and
no weight is best for all machines. So each weight is tried with values of partial derivatives at
some states instead of expressions, and the new values are counted. The cheapest order is returned.

Source: Griewank, Walther 2008, Evaluating Derivatives, chapter 10.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tauloop.compiler.fingerprints import CANCELLED, fingerprint

#: Weights of a new edge, in operations, of the orders to try; and number of products after which no
#: further order is tried (some seconds).
FILLS, ENOUGH = (6, 4, 10, 8), 500_000
#: Number of states at which values are compared.
ORDER_STATES = 8
#: Kinds of edges: one, a number, or an expression; the product of two kinds determines the cost of
#: their product.
UNIT, NUMBER, EXPRESSION = 0, 1, 2

Edges = Mapping[int, Mapping[int, tuple[np.ndarray, int]]]


def elimination_order(
    edges: Edges, known: Sequence[np.ndarray], kept: Collection[int]
) -> list[int]:
    """Return the vertices in the order that creates the fewest new values.

    Args:
        edges: values (M,) at some states and kind of each edge, by its end and its start.
        known: values (M,) of expressions that are computed anyway.
        kept: vertices that are not eliminated.
    """
    values = _Values(known)
    tried = list[_TriedOrder]()
    for fill in FILLS:
        if sum(order.looked_at for order in tried) < ENOUGH:
            tried.append(_TriedOrder(edges, values, kept, fill))
    return min(tried, key=lambda order: order.operations).order


class _Values:
    """Numbers of values at the states, equal for values that agree up to sign and doubling."""

    def __init__(self, known: Sequence[np.ndarray]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self.known = {self.number(values[:ORDER_STATES]) for values in known}

    def number(self, values: np.ndarray) -> int:
        """Return the number of a value."""
        own = fingerprint(values)[0]
        for key in (
            own,
            *(fingerprint(values / factor)[0] for factor in (2.0, 0.5) if own not in self._numbers),
        ):
            if key in self._numbers:
                return self._numbers[key]
        return self._numbers.setdefault(own, len(self._numbers)) if own else -1

    def product(self, first: _NumberedEdge, second: _NumberedEdge) -> int:
        """Return the number of a product."""
        pair = (
            (first.number, second.number)
            if first.number < second.number
            else (second.number, first.number)
        )
        if pair not in self._products or -1 in pair:
            self._products[pair] = self.number(first.values * second.values)
        return self._products[pair]


class _NumberedEdge:
    """A partial derivative with respect to values (M,), kind and number."""

    __slots__ = ("kind", "number", "values")

    def __init__(self, values: np.ndarray, kind: int, number: int) -> None:
        self.values, self.kind, self.number = values, kind, number


class _TriedOrder:
    """An elimination with numbers: its order and its count of operations."""

    def __init__(self, edges: Edges, values: _Values, kept: Collection[int], fill: int) -> None:
        self._before: dict[int, dict[int, _NumberedEdge]] = defaultdict(dict)
        self._behind: dict[int, dict[int, _NumberedEdge]] = defaultdict(dict)
        for end, starts in edges.items():
            for start, (numbers, kind) in starts.items():
                edge = _NumberedEdge(
                    numbers[:ORDER_STATES], kind, values.number(numbers[:ORDER_STATES])
                )
                self._before[end][start] = self._behind[start][end] = edge
        self._values, self._made, self._fill = values, set(values.known), fill
        self.operations, self.looked_at, self.order = 0, 0, list[int]()
        self._run({*self._before, *self._behind} - set(kept))

    def _run(self, waiting: set[int]) -> None:
        scores = {vertex: self._score(vertex) for vertex in waiting}
        queue = [(score, vertex) for vertex, score in scores.items()]
        heapq.heapify(queue)
        while queue:
            score, vertex = heapq.heappop(queue)
            if scores.get(vertex) != score:
                continue  # the score of the vertex has changed meanwhile
            del scores[vertex]
            near = {*self._before[vertex], *self._behind[vertex]}
            near.update(*(self._behind[start] for start in self._before[vertex]))
            near.update(*(self._before[end] for end in self._behind[vertex]))
            self._eliminate(vertex)
            for neighbor in near & scores.keys():
                scores[neighbor] = self._score(neighbor)
                heapq.heappush(queue, (scores[neighbor], neighbor))

    def _score(self, vertex: int) -> int:
        """Return the operations of an elimination, plus the weight of new minus removed edges."""
        before, behind = self._before[vertex], self._behind[vertex]
        operations = joined = 0
        product, made = self._values.product, self._made
        for start, first in before.items():
            ahead = self._behind[start]
            for end, second in behind.items():
                joined += end in ahead
                if first.kind * second.kind > NUMBER:
                    operations += product(first, second) not in made
        self.looked_at += len(before) * len(behind)
        return (
            operations
            + joined
            + self._fill * (len(before) * len(behind) - joined - len(before) - len(behind))
        )

    def _eliminate(self, vertex: int) -> None:
        self.order.append(vertex)
        for start, first in self._before[vertex].items():
            for end, second in self._behind[vertex].items():
                number = self._values.product(first, second)
                if first.kind * second.kind > NUMBER:
                    self._count(number)
                kind = max(first.kind, second.kind)
                self._join(start, end, _NumberedEdge(first.values * second.values, kind, number))
        for start in self._before.pop(vertex):
            del self._behind[start][vertex]
        for end in self._behind.pop(vertex, ()):
            del self._before[end][vertex]

    def _count(self, number: int) -> None:
        if number not in self._made:
            self.operations += 1
        if number >= 0:
            self._made.add(number)

    def _join(self, start: int, end: int, edge: _NumberedEdge) -> None:
        other = self._before[end].get(start)
        if other is not None:
            total = other.values + edge.values
            if len(total) and (np.abs(total) <= CANCELLED * np.abs(edge.values)).all():
                del self._before[end][start], self._behind[start][end]
                return
            kind = EXPRESSION if EXPRESSION in (edge.kind, other.kind) else NUMBER
            edge = _NumberedEdge(total, kind, self._values.number(total))
            if kind == EXPRESSION:
                self._count(edge.number)
        self._before[end][start] = self._behind[start][end] = edge

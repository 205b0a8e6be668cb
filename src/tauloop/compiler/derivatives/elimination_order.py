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

#: Weights of a new edge, in operations, of the orders to try.
FILLS = (6, 4, 10, 8)
#: Number of compared products after which no further order is tried (some seconds).
MAX_PRODUCTS = 500_000
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
        if sum(order.compared_products for order in tried) < MAX_PRODUCTS:
            tried.append(_TriedOrder(edges, values, kept, fill))
    return min(tried, key=lambda order: order.operations).order


class _Values:
    """Numbering of values (M,) at the states.

    Values that agree up to a sign and a factor of two have the same number.
    """

    def __init__(self, known: Sequence[np.ndarray]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self.known = {self.number(values[:ORDER_STATES]) for values in known}

    def number(self, values: np.ndarray) -> int:
        """Return the number of a value; -1 for a value without a fingerprint."""
        key = fingerprint(values)[0]
        if key in self._numbers:
            return self._numbers[key]
        for factor in (2.0, 0.5):
            multiple = fingerprint(values / factor)[0]
            if multiple in self._numbers:
                return self._numbers[multiple]
        if not key:
            return -1
        return self._numbers.setdefault(key, len(self._numbers))

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
    """A partial derivative: values (M,) at the states, kind of edge, and number of the values."""

    __slots__ = ("kind", "number", "values")

    def __init__(self, values: np.ndarray, kind: int, number: int) -> None:
        self.values, self.kind, self.number = values, kind, number


class _TriedOrder:
    """An elimination with numbers: its order and its count of operations."""

    def __init__(self, edges: Edges, values: _Values, kept: Collection[int], fill: int) -> None:
        self._predecessors: dict[int, dict[int, _NumberedEdge]] = defaultdict(dict)
        self._successors: dict[int, dict[int, _NumberedEdge]] = defaultdict(dict)
        for end, starts in edges.items():
            for start, (numbers, kind) in starts.items():
                edge = _NumberedEdge(
                    numbers[:ORDER_STATES], kind, values.number(numbers[:ORDER_STATES])
                )
                self._predecessors[end][start] = self._successors[start][end] = edge
        self._values, self._made, self._fill = values, set(values.known), fill
        self.operations = 0
        self.compared_products = 0
        self.order = list[int]()
        self._run({*self._predecessors, *self._successors} - set(kept))

    def _run(self, waiting: set[int]) -> None:
        scores = {vertex: self._score(vertex) for vertex in waiting}
        queue = [(score, vertex) for vertex, score in scores.items()]
        heapq.heapify(queue)
        while queue:
            score, vertex = heapq.heappop(queue)
            if scores.get(vertex) != score:
                continue  # the score of the vertex has changed meanwhile
            del scores[vertex]
            near = {*self._predecessors[vertex], *self._successors[vertex]}
            near.update(*(self._successors[start] for start in self._predecessors[vertex]))
            near.update(*(self._predecessors[end] for end in self._successors[vertex]))
            self._eliminate(vertex)
            for neighbor in near & scores.keys():
                scores[neighbor] = self._score(neighbor)
                heapq.heappush(queue, (scores[neighbor], neighbor))

    def _score(self, vertex: int) -> int:
        """Return the operations of an elimination, plus the weight of added minus removed edges."""
        predecessors, successors = self._predecessors[vertex], self._successors[vertex]
        operations = joined = 0
        product, made = self._values.product, self._made
        for start, first in predecessors.items():
            ends = self._successors[start]
            for end, second in successors.items():
                joined += end in ends
                if first.kind * second.kind > NUMBER:
                    operations += product(first, second) not in made
        n_products = len(predecessors) * len(successors)
        self.compared_products += n_products
        new_edges = n_products - joined - len(predecessors) - len(successors)
        return operations + joined + self._fill * new_edges

    def _eliminate(self, vertex: int) -> None:
        self.order.append(vertex)
        for start, first in self._predecessors[vertex].items():
            for end, second in self._successors[vertex].items():
                number = self._values.product(first, second)
                if first.kind * second.kind > NUMBER:
                    self._count(number)
                kind = max(first.kind, second.kind)
                self._join(start, end, _NumberedEdge(first.values * second.values, kind, number))
        for start in self._predecessors.pop(vertex):
            del self._successors[start][vertex]
        for end in self._successors.pop(vertex, ()):
            del self._predecessors[end][vertex]

    def _count(self, number: int) -> None:
        if number not in self._made:
            self.operations += 1
        if number >= 0:
            self._made.add(number)

    def _join(self, start: int, end: int, edge: _NumberedEdge) -> None:
        other = self._predecessors[end].get(start)
        if other is not None:
            total = other.values + edge.values
            if len(total) and (np.abs(total) <= CANCELLED * np.abs(edge.values)).all():
                del self._predecessors[end][start], self._successors[start][end]
                return
            kind = EXPRESSION if EXPRESSION in (edge.kind, other.kind) else NUMBER
            edge = _NumberedEdge(total, kind, self._values.number(total))
            if kind == EXPRESSION:
                self._count(edge.number)
        self._predecessors[end][start] = self._successors[start][end] = edge

"""Jacobians of expressions by vertex elimination in their graph, in an order of low cost.

Every intermediate value is a vertex, and every partial derivative is an edge. Eliminating a vertex
k sets w_ij += w_kj w_ik for all predecessors i and successors j. The remaining edges from sources
to sinks are the Jacobian. Any order is exact, but the costs of orders differ by factors. The next
vertex is the one that costs the fewest operations and creates the fewest new edges (fill). So a leg
is differentiated with respect to the motion of its ends, not with respect to every coordinate of
the platform.

Partial derivatives that agree at random states count as the same expression, regardless of their
origin. This finds dq''/da = dq'/dv = dq/dx, dq''/dv = 2 dq'/dx and the symmetry of mass matrices;
some of these relations are true only for closed loops.

Values that equations determine get their edges from these equations (implicit functions), not from
the operations of the solution.

Source: Griewank, Walther 2008, Evaluating Derivatives, chapters 9 and 10 (elimination, Markowitz),
15.1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

import casadi as ca
import numpy as np

from tauloop.compiler.derivatives.elimination_order import (
    EXPRESSION,
    NUMBER,
    UNIT,
    elimination_order,
)
from tauloop.compiler.fingerprints import CANCELLED, fingerprint
from tauloop.equations.operators import read_instructions

#: Maximum number of rounds that join equivalent vertices.
ROUNDS = 6
#: Largest relative difference of values that count as equal; equal fingerprints are not sufficient.
VALUE_TOLERANCE = 1e-12


class _Edge:
    """A partial derivative, its values (M,) at some states, and the cost of a product with it."""

    __slots__ = ("kind", "numbers", "weight")

    def __init__(self, weight: ca.SX, numbers: np.ndarray) -> None:
        self.weight, self.numbers = weight, numbers
        if not weight.is_constant():
            self.kind = EXPRESSION
        else:
            self.kind = UNIT if abs(float(weight)) == 1 else NUMBER


class _Known:
    """Expressions identified by their values at some states."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[ca.SX, float, np.ndarray]] = {}

    def shared(self, weight: ca.SX, numbers: np.ndarray) -> ca.SX:
        """Return an expression in terms of a stored one that is equal, or half or twice as large.

        If there is none, store the expression and return it.
        """
        if weight.is_constant() or weight.is_symbolic():
            return weight
        for factor in (1.0, 2.0, 0.5):
            key, sign = fingerprint(numbers / factor)
            if key in self._known:
                known, other, values = self._known[key]
                if (
                    np.abs(sign * other / factor * numbers - values)
                    <= VALUE_TOLERANCE * np.abs(values)
                ).all():
                    return ca.SX((sign * other * factor) * known)
        self.add(weight, numbers)
        return weight

    def values(self) -> list[np.ndarray]:
        """Return values of all expressions (M,)."""
        return [numbers for _, _, numbers in self._known.values()]

    def add(self, weight: ca.SX, numbers: np.ndarray) -> None:
        """Store an expression unless an equal expression is known."""
        key, sign = fingerprint(numbers)
        if key and not weight.is_constant():
            self._known.setdefault(key, (weight, sign, numbers))


Operations = dict[int, tuple[int, list[int]]]


def expression_graph(
    symbols: ca.SX, expressions: Sequence[ca.SX]
) -> tuple[list[ca.SX], Operations, list[list[int]]]:
    """Return the graph of expressions.

    Returns:
        Value of each vertex; operation code and arguments of each vertex that is an operation; and
        the vertices of each expression's entries.
    """
    function = ca.Function(
        "graph", [symbols], ca.cse([ca.SX(expression) for expression in expressions])
    )
    entries = ca.vertsplit(symbols)
    vertex_of: dict[int, int] = {}
    values: list[ca.SX] = []
    operations: Operations = {}
    ends = [[-1] * expression.numel() for expression in expressions]
    for k, (code, inputs, outputs) in enumerate(read_instructions(function)):
        if code == ca.OP_OUTPUT:
            ends[outputs[0]][outputs[1]] = vertex_of[inputs[0]]
            continue
        if code == ca.OP_INPUT:
            value = entries[inputs[1]]
        elif code == ca.OP_CONST:
            value = ca.SX(function.instruction_constant(k))
        else:
            arguments = [vertex_of[i] for i in inputs]
            value = _value(code, [values[i] for i in arguments])
            operations[len(values)] = code, arguments
        vertex_of[outputs[0]] = len(values)
        values.append(value)
    return values, operations, ends


class DerivativeGraph:
    """Graph of expressions in symbols, with additional edges defined by equations."""

    def __init__(
        self,
        symbols: ca.SX,
        expressions: Sequence[ca.SX],
        sampled: Callable[[ca.SX], np.ndarray],
        known: Iterable[int] = (),
        computed: Sequence[ca.SX] = (),
    ) -> None:
        """Build the graph of expressions.

        Args:
            symbols: column of all symbols.
            expressions: dense columns.
            sampled: values (M, n) of columns at some states.
            known: indices of expressions whose derivatives are set explicitly, entry by entry.
            computed: expressions that the program computes anyway, which derivatives can reuse.
        """
        self._predecessors: dict[int, dict[int, _Edge]] = defaultdict(dict)
        self._successors: dict[int, dict[int, _Edge]] = defaultdict(dict)
        self._sampled, self._known = sampled, _Known()
        for value, numbers in zip(
            computed, sampled(ca.vertcat(ca.SX(0, 1), *computed)).T, strict=True
        ):
            self._known.add(value, numbers)
        self._values, operations, self.vertices = expression_graph(symbols, expressions)
        self._count = len(self._values)
        names = {symbol.__hash__() for symbol in ca.vertsplit(symbols)}
        hashes = ((value.__hash__(), vertex) for vertex, value in enumerate(self._values))
        self._symbols = {name: vertex for name, vertex in hashes if name in names}
        self._waiting: list[tuple[int, int, ca.SX]] = []
        explicit = {vertex for i in known for vertex in self.vertices[i]}
        for vertex, (code, arguments) in operations.items():
            if vertex not in explicit:
                slopes = _slopes(code, self._values[vertex], [self._values[i] for i in arguments])
                for argument, slope in zip(arguments, slopes, strict=True):
                    if not self._values[argument].is_constant():
                        self.connect(argument, vertex, slope)

    def new(self) -> int:
        """Return a new vertex without an expression: a source, a sink, or a sum."""
        self._count += 1
        return self._count - 1

    def symbol(self, symbol: ca.SX) -> int | None:
        """Return the vertex of a symbol; None if nothing depends on it."""
        return self._symbols.get(symbol.__hash__())

    def value(self, vertex: int) -> ca.SX:
        """Return the expression at a vertex."""
        return self._values[vertex]

    def connect(self, start: int | None, end: int | None, weight: ca.SX | float) -> None:
        """Add the partial derivative of `end` with respect to `start`, if both vertices exist."""
        weight = ca.SX(weight)
        if start is not None and end is not None and not weight.is_zero():
            self._waiting.append((start, end, weight))

    def _store_waiting(self) -> None:
        """Store the added partial derivatives, with their values at the states."""
        if self._waiting:
            numbers = self._sampled(ca.vertcat(*(weight for *_, weight in self._waiting))).T
            for (start, end, weight), values in zip(self._waiting, numbers, strict=True):
                self._join(start, end, self._known.shared(weight, values), values)
            self._waiting = []

    def _join(self, start: int, end: int, weight: ca.SX, numbers: np.ndarray) -> None:
        """Add a partial derivative; a sum that is zero at all states is removed."""
        edge = self._predecessors[end].get(start)
        if edge is not None:
            total = edge.numbers + numbers
            if len(total) and (np.abs(total) <= CANCELLED * np.abs(numbers)).all():
                self._disconnect(start, end)
                return
            weight, numbers = self._known.shared(edge.weight + weight, total), total
        self._predecessors[end][start] = self._successors[start][end] = _Edge(weight, numbers)

    def _disconnect(self, start: int, end: int) -> None:
        del self._predecessors[end][start], self._successors[start][end]

    def rows(self, ends: Sequence[int], starts: Sequence[int]) -> ca.SX:
        """Return partial derivatives (n, m) of the vertices `ends` with respect to `starts`."""
        self._store_waiting()
        rows = ca.SX(len(ends), len(starts))
        for i, end in enumerate(ends):
            for j, start in enumerate(starts):
                if start in self._predecessors[end]:
                    rows[i, j] = self._predecessors[end][start].weight
        return rows

    def starts(self, ends: Iterable[int]) -> list[int]:
        """Return the vertices on which `ends` depend, in ascending order."""
        return sorted({start for end in ends for start in self._predecessors[end]})

    def forget(self, vertices: Iterable[int]) -> None:
        """Remove vertices with their edges."""
        for vertex in vertices:
            for start in list(self._predecessors[vertex]):
                self._disconnect(start, vertex)
            for end in list(self._successors[vertex]):
                self._disconnect(vertex, end)
            del self._predecessors[vertex], self._successors[vertex]

    def join_equivalent(self, kept: Collection[int]) -> None:
        """Replace vertices with the same effect on all successors by their sum."""
        self._store_waiting()
        for _ in range(ROUNDS):
            self._eliminate_summands(kept)
            classes = defaultdict(list)
            for vertex in sorted(self._successors):
                edges = self._successors[vertex]
                if vertex not in kept and len(edges) > 1 and self._predecessors[vertex]:
                    marks = [(end, *fingerprint(edges[end].numbers)) for end in sorted(edges)]
                    first_sign = marks[0][2]
                    if all(key for _, key, _ in marks):
                        effect = tuple((end, key, sign * first_sign) for end, key, sign in marks)
                        classes[effect].append((vertex, first_sign))
            equivalent = [members for members in classes.values() if len(members) > 1]
            if not equivalent:
                return
            for members in equivalent:
                self._add_up(members)

    def _add_up(self, members: Sequence[tuple[int, float]]) -> None:
        """Insert the sum of vertices, each with its sign, between them and their successors."""
        joint = self.new()
        first, first_sign = members[0]
        for end, edge in list(self._successors[first].items()):
            self._join(joint, end, first_sign * edge.weight, first_sign * edge.numbers)
        for vertex, sign in members:
            ones = np.ones(0)
            for end in list(self._successors[vertex]):
                ones = np.ones(len(self._successors[vertex][end].numbers))
                self._disconnect(vertex, end)
            self._join(vertex, joint, ca.SX(sign), sign * ones)
            self._predecessors[joint][
                vertex
            ].kind = EXPRESSION  # so that elimination does not undo this

    def _eliminate_summands(self, kept: Collection[int]) -> None:
        """Eliminate vertices whose only successor is a sum or difference that contains them."""
        stack = sorted(self._alive(kept))
        while stack:
            vertex = stack.pop()
            edges = list(self._successors[vertex].values())
            if self._predecessors[vertex] and len(edges) == 1 and edges[0].kind == UNIT:
                stack += sorted(self._predecessors[vertex].keys() - set(kept))
                self._eliminate(vertex)

    def eliminate(self, kept: Collection[int]) -> None:
        """Eliminate all vertices except `kept`: sources, sinks, and those of waiting equations."""
        self._store_waiting()
        self._alive(kept)
        edges = {}
        for end, starts in self._predecessors.items():
            edges[end] = {start: (edge.numbers, edge.kind) for start, edge in starts.items()}
        for vertex in elimination_order(edges, self._known.values(), kept):
            self._eliminate(vertex)

    def _alive(self, kept: Collection[int]) -> set[int]:
        """Return the vertices on paths between sources and sinks; remove the others."""
        waiting = {*self._predecessors, *self._successors} - set(kept)
        stack = list(waiting)
        while stack:
            vertex = stack.pop()
            if vertex in waiting and not (self._predecessors[vertex] and self._successors[vertex]):
                stack += {*self._predecessors[vertex], *self._successors[vertex]} & waiting
                self.forget([vertex])
                waiting.discard(vertex)
        return waiting

    def _eliminate(self, vertex: int) -> None:
        for start, first in self._predecessors[vertex].items():
            for end, second in self._successors[vertex].items():
                numbers = second.numbers * first.numbers
                self._join(
                    start, end, self._known.shared(second.weight * first.weight, numbers), numbers
                )
        self.forget([vertex])


def _value(code: int, arguments: Sequence[ca.SX]) -> ca.SX:
    return ca.SX.unary(code, *arguments) if len(arguments) == 1 else ca.SX.binary(code, *arguments)


def _slopes(code: int, value: ca.SX, arguments: Sequence[ca.SX]) -> tuple[ca.SX | float, ...]:
    """Return the partial derivatives of an operation, with as few operations as possible."""
    if code in _NUMBERS:
        return _NUMBERS[code]
    x = arguments[0]
    if code == ca.OP_MUL:
        return arguments[1], x
    if code == ca.OP_DIV:
        inverse = 1 / arguments[1]
        return inverse, -(value * inverse)
    if code == ca.OP_SQ:
        return (2 * x,)
    if code == ca.OP_SQRT:
        return (0.5 / value,)
    symbols = [ca.SX.sym("x") for _ in arguments]
    slopes = [ca.jacobian(_value(code, symbols), symbol) for symbol in symbols]
    return tuple(ca.substitute(slopes, symbols, list(arguments)))


_NUMBERS: dict[int, tuple[float, ...]] = {
    ca.OP_ADD: (1.0, 1.0),
    ca.OP_SUB: (1.0, -1.0),
    ca.OP_NEG: (-1.0,),
    ca.OP_TWICE: (2.0,),
    ca.OP_ASSIGN: (1.0,),
}

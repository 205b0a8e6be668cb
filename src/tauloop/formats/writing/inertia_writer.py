"""Inertias about the mass center, recovered from parameters about a frame's origin."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.mechanism.expression import ZERO, Call, Expression, divide, multiply, subtract
from tauloop.mechanism.inertia import about_origin
from tauloop.mechanism.model import Inertia, SlenderPart, Vector


def along_the_rod(part: SlenderPart) -> tuple[Expression, Expression, Expression]:
    """Return mass m, center distance s and central moment I of a slender part.

    Its parameters are h = m s and J = I + h s. The original expressions of s and I are recovered if
    h and J have this form; otherwise s = h / m and I = J - h s.
    """
    m, h, J = part.parameters
    s = (
        h.arguments[1]
        if isinstance(h, Call) and h.operation == "*" and h.arguments[0] == m
        else divide(h, m)
    )
    parallel_axis_term = multiply(h, s)
    if J == parallel_axis_term:
        return m, s, ZERO
    if isinstance(J, Call) and J.operation == "+" and J.arguments[1] == parallel_axis_term:
        return m, s, J.arguments[0]
    return m, s, subtract(J, parallel_axis_term)


def centered(inertia: Inertia) -> tuple[Vector, Sequence[Expression]] | None:
    """Return mass center and central moments of an inertia from `about_origin`, else None.

    The moments about the origin are then sums and differences with the parallel-axis terms last.
    """
    m = inertia.mass
    center: list[Expression] = []
    for h in inertia.first_moment:
        if h == ZERO:
            center.append(ZERO)
        elif isinstance(h, Call) and h.operation == "*" and h.arguments[0] == m:
            center.append(h.arguments[1])
        else:
            return None
    x, y, z = center
    terms = ((y, y), (z, z)), ((x, y),), ((x, x), (z, z)), ((x, z),), ((y, z),), ((x, x), (y, y))
    moments = []
    for moment, pairs in zip(inertia.second_moment, terms, strict=True):
        remainder = moment
        for pair in reversed(pairs):
            term = multiply(m, *pair)
            if term == ZERO:
                continue
            if remainder == term and len(pairs) == 2:
                remainder = ZERO
            elif (
                isinstance(remainder, Call)
                and remainder.operation == "neg"
                and remainder.arguments[0] == term
            ):
                remainder = ZERO
            elif (
                isinstance(remainder, Call)
                and remainder.operation in "+-"
                and remainder.arguments[-1] == term
            ):
                remainder = remainder.arguments[0]
        moments.append(remainder)
    return ((x, y, z), moments) if about_origin(m, (x, y, z), moments) == inertia else None

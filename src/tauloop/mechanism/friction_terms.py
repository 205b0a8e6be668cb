"""Which terms of a friction law go together, whatever file they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tauloop.mechanism.expression import Expression

#: Terms of friction that stand together, ...
_TOGETHER = (
    ("static", "coulomb"),
    ("static", "stribeck"),
    ("stribeck", "static"),
    ("viscous_asymmetry", "viscous"),
    ("coulomb_asymmetry", "coulomb"),
)
#: ... and those that are not larger than another.
_NOT_ABOVE = (
    ("coulomb", "static", "static friction is never below Coulomb's"),
    ("viscous_asymmetry", "viscous", "one way friction would push the motion on"),
    ("coulomb_asymmetry", "coulomb", "one way friction would push the motion on"),
)


def friction_faults(
    terms: Mapping[str, Expression | None], nominal: Callable[[Expression], float]
) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the terms of a friction law together: the term, what, and the remedy.

    Args:
        terms: what is given, by its names in `Friction`; None where a value could not be read.
        nominal: value of an expression, SI.
    """
    for key, other in _TOGETHER:
        if key in terms and other not in terms:
            yield key, f"{key} stands without {other}", f"add {other}"
    for key, other, why in _NOT_ABOVE:
        small, large = terms.get(key), terms.get(other)
        if small is not None and large is not None and abs(nominal(small)) > nominal(large):
            sizes = f"{key} is {abs(nominal(small)):g}, and {other} {nominal(large):g} (SI)"
            yield key, f"{sizes}: {why}", "correct one of the two"

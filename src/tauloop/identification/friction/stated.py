"""Friction beside the machine file's that options ask for, as columns of the regression data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauloop.common.errors import IdentificationError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.friction.columns import columns_along
from tauloop.identification.friction.element_motion import ElementMotion, elements, require_elements
from tauloop.identification.friction.presliding import (
    BETTER,
    PreslidingChoice,
    choose_presliding,
    presliding_columns,
)
from tauloop.identification.options import TermOptions
from tauloop.identification.regression.columns import with_columns
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.values import si_value
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFriction:
    """Friction beside the machine file's.

    Attributes:
        asymmetric: elements whose friction differs from one direction to the other.
        speeds: Stribeck speed, rad/s or m/s, by element.
        lengths: way after a reversal over which friction turns round, rad or m, by element.
        searched: elements whose way validation is to find.
    """

    asymmetric: tuple[str, ...]
    speeds: Mapping[str, float]
    lengths: Mapping[str, float]
    searched: tuple[str, ...]

    @property
    def slides(self) -> bool:
        """Whether there is presliding friction."""
        return bool(self.lengths or self.searched)

    def __bool__(self) -> bool:
        return bool(self.asymmetric or self.speeds or self.slides)

    def beside(
        self, parts: Sequence[RegressionData], motions: Sequence[ElementMotion]
    ) -> list[RegressionData]:
        """Regression data of all logs with the columns of asymmetric and Stribeck friction."""
        if not (self.asymmetric or self.speeds):
            return list(parts)
        columns = (columns_along(motion, self.asymmetric, self.speeds) for motion in motions)
        return [with_columns(part, *new) for part, new in zip(parts, columns, strict=True)]

    def presliding(
        self,
        parts: Sequence[RegressionData],
        motions: Sequence[ElementMotion],
        *,
        fitted: int,
        share: float,
    ) -> tuple[list[RegressionData], PreslidingChoice | None]:
        """Regression data of all logs with columns of presliding friction, and what their lengths rest on.

        Args:
            parts, motions: of logs that are fitted, and then one to judge by.
            fitted: how many are fitted; validation rests on them alone.
            share: part of each log before its held-out part.
        """
        if not self.slides:
            return list(parts), None
        choice = choose_presliding(
            parts[:fitted], motions[:fitted], self.searched, stated=self.lengths, share=share
        )
        if not choice.lengths:
            return list(parts), choice
        columns = (presliding_columns(motion, choice.lengths, choice.staying) for motion in motions)
        return [with_columns(part, *new) for part, new in zip(parts, columns, strict=True)], choice


def stated_friction(model: Model, terms: TermOptions) -> StatedFriction:
    """The friction that options ask for on a machine.

    Raises:
        InputError: a speed or length has another unit than the element's.
        IdentificationError: a name is no element, or a length is not positive; all problems.
    """
    for names in ((*terms.asymmetric, *terms.stribeck), tuple(terms.presliding)):
        if names:
            require_elements(model, names)
    turns = elements(model)
    speeds = {
        name: si_value(f"stribeck {name}", value, "rad/s" if turns[name] else "m/s")
        for name, value in terms.stribeck.items()
    }
    lengths = {
        name: si_value(f"presliding {name}", value, "rad" if turns[name] else "m")
        for name, value in terms.presliding.items()
        if value != ""
    }
    IdentificationError.raise_if_any(
        Problem(f"presliding {name}", f"{length:g} is no length", "above zero, or none")
        for name, length in lengths.items()
        if length <= 0.0
    )
    searched = tuple(name for name in terms.presliding if name not in lengths)
    return StatedFriction(
        asymmetric=terms.asymmetric, speeds=speeds, lengths=lengths, searched=searched
    )


def presliding_notes(choice: PreslidingChoice, model: Model) -> tuple[str, ...]:
    """What was chosen, in words."""
    turns = elements(model)
    notes = [
        f"friction of {name} turns round over {length:.3g} {'rad' if turns[name] else 'm'} after a reversal"
        + (", as given" if name in choice.stated else "")
        + (", and stays at rest" if name in choice.staying else "")
        for name, length in choice.lengths.items()
    ]
    notes += [
        f"{name}: no length of presliding friction lessens the validation error of an output by {100 * BETTER:g} % and "
        "in every part of the logs, so it has none"
        for name in choice.without
    ]
    if choice.lengths:
        before, after = choice.errors
        notes.append(
            f"validation error {before:.3g} % without presliding friction, {after:.3g} % with"
        )
    return tuple(notes)

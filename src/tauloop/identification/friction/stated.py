"""Columns of the regression data for friction that is given as options.

This friction is added to that of the machine file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.errors import IdentificationError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.friction.columns import columns_along
from tauloop.identification.friction.element_motion import ElementMotion, elements, require_elements
from tauloop.identification.friction.presliding import presliding_columns
from tauloop.identification.friction.presliding_lengths import (
    MIN_PRESLIDING_GAIN,
    PreslidingChoice,
    RepeatedMeasurement,
    choose_presliding,
)
from tauloop.identification.options import TermOptions
from tauloop.identification.regression.columns import with_columns
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.values import si_value
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFriction:
    """Friction that options add to that of the machine file.

    Attributes:
        asymmetric: elements whose friction is different in the two directions.
        speeds: Stribeck velocity, rad/s or m/s, by element.
        lengths: presliding length, rad or m, by element: the distance after a velocity reversal
            over which friction reverses.
        searched: elements whose presliding length is chosen by validation.
    """

    asymmetric: tuple[str, ...]
    speeds: Mapping[str, float]
    lengths: Mapping[str, float]
    searched: tuple[str, ...]

    @property
    def has_presliding(self) -> bool:
        """Whether there is presliding friction."""
        return bool(self.lengths or self.searched)

    def __bool__(self) -> bool:
        """Return whether there is any friction."""
        return bool(self.asymmetric or self.speeds or self.has_presliding)

    def add_columns(
        self, parts: Sequence[RegressionData], motions: Sequence[ElementMotion]
    ) -> list[RegressionData]:
        """Return the data of all logs with columns of asymmetric and Stribeck friction."""
        if not (self.asymmetric or self.speeds):
            return list(parts)
        columns = (columns_along(motion, self.asymmetric, self.speeds) for motion in motions)
        return [with_columns(part, *new) for part, new in zip(parts, columns, strict=True)]

    def _with_columns(
        self, part: RegressionData, motion: ElementMotion
    ) -> tuple[RegressionData, ElementMotion]:
        """Return the data of one log with asymmetric and Stribeck columns, and its motion."""
        return self.add_columns([part], [motion])[0], motion

    def add_presliding(
        self,
        parts: Sequence[RegressionData],
        motions: Sequence[ElementMotion],
        *,
        repeated: Sequence[RepeatedMeasurement] = (),
        fitted: int,
        share: float,
    ) -> tuple[list[RegressionData], PreslidingChoice | None]:
        """Return the data of all logs with columns of presliding friction, and the chosen lengths.

        Args:
            parts, motions: regression data and motions of the fitted logs, followed by those of the
                validation log if there is one.
            repeated: simulated measurements of the fitted logs, with which the lengths are
                corrected; without asymmetric and Stribeck columns.
            fitted: number of fitted logs; other logs are not used for the choice of lengths.
            share: fraction of each log before its held-out part.
        """
        if not self.has_presliding:
            return list(parts), None
        again = [
            RepeatedMeasurement(
                exact=self._with_columns(*entry.exact), measured=self._with_columns(*entry.measured)
            )
            for entry in repeated
        ]
        choice = choose_presliding(
            parts[:fitted],
            motions[:fitted],
            self.searched,
            stated=self.lengths,
            share=share,
            again=again,
        )
        if not choice.lengths:
            return list(parts), choice
        unknown: tuple[Mapping[str, float], ...] = ({},) * (len(motions) - fitted)
        columns = (
            presliding_columns(motion, choice.lengths, choice.staying, starts)
            for motion, starts in zip(motions, (*choice.starts, *unknown), strict=True)
        )
        return [with_columns(part, *new) for part, new in zip(parts, columns, strict=True)], choice


def stated_friction(model: Model, terms: TermOptions) -> StatedFriction:
    """Return the friction that options add to a machine.

    Raises:
        InputError: a speed or length has another unit than the element's.
        IdentificationError: a name is not an element, or a length is not positive; lists all
            problems.
    """
    for names in ((*terms.asymmetric, *terms.stribeck), tuple(terms.presliding)):
        if names:
            require_elements(model, names)
    is_rotational = elements(model)
    speeds = {
        name: si_value(f"stribeck {name}", value, "rad/s" if is_rotational[name] else "m/s")
        for name, value in terms.stribeck.items()
    }
    lengths = {
        name: si_value(f"presliding {name}", value, "rad" if is_rotational[name] else "m")
        for name, value in terms.presliding.items()
        if value != ""
    }
    IdentificationError.raise_if_any(
        Problem(
            f"presliding {name}",
            f"the length {length:g} is not positive",
            "give a positive length, or omit it so that it is chosen by validation",
        )
        for name, length in lengths.items()
        if length <= 0.0
    )
    searched = tuple(name for name in terms.presliding if name not in lengths)
    return StatedFriction(
        asymmetric=terms.asymmetric, speeds=speeds, lengths=lengths, searched=searched
    )


def presliding_notes(choice: PreslidingChoice, model: Model) -> tuple[str, ...]:
    """Return notes on the chosen presliding lengths."""
    is_rotational = elements(model)
    notes = []
    for name, length in choice.lengths.items():
        unit = "rad" if is_rotational[name] else "m"
        shown_length = f"{length:.3g}"
        if np.isfinite(choice.deviations.get(name, np.inf)):
            shown_length += f" +- {choice.deviations[name]:.2g}"
        note = f"friction of {name} reverses over {shown_length} {unit} after a reversal"
        if name in choice.stated:
            note += ", as given"
        if name in choice.staying:
            note += ", and acts at rest"
        notes.append(note)
    notes += [
        f"{name}: no length of presliding friction reduces the validation error of an output by "
        f"{100 * MIN_PRESLIDING_GAIN:g} % and in every part of the logs, so it has none"
        for name in choice.without
    ]
    if choice.lengths:
        before, after = choice.errors
        notes.append(
            f"validation error {before:.3g} % without presliding friction, {after:.3g} % with"
        )
    return tuple(notes)

"""Options of ``tauloop identify`` for friction beside the machine file's: asymmetric, Stribeck's, presliding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauloop.cli.assigned import quantity
from tauloop.cli.identify_logs import MeasuredLog
from tauloop.errors import IdentificationError, InputError, Problem, Problems
from tauloop.identification import RegressionData, with_columns
from tauloop.identification.friction.columns import friction_columns
from tauloop.identification.friction.element_motion import element_motion, elements, require_elements
from tauloop.identification.friction.presliding import BETTER, PreslidingChoice, choose_presliding, presliding_columns
from tauloop.mechanism.units import ANGLE, ANGULAR_SPEED, LENGTH, SPEED
from tauloop.model import Model


def stribeck_texts(asymmetric: Sequence[str], stribeck: Sequence[str], beside: Mapping[str, bool]) -> dict[str, str]:
    """Text of the Stribeck speed by element, of options that may stand beside the others.

    Raises:
        InputError: an option that cannot be read, or that has no meaning beside others; all problems.
    """
    problems = Problems()
    found: dict[str, str] = {}
    for text in stribeck:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value) or name in found:
            what = f"{name!r} is given twice" if name in found else f"{text!r} is not NAME=SPEED"
            problems.add("--stribeck", what, "give such as 'elbow=0.2 rad/s'")
        found[name] = value
    twice = sorted({name for name in asymmetric if list(asymmetric).count(name) > 1})
    problems += [
        Problem(where="--asymmetric", what=f"{name!r} is given twice", remedy="give it once") for name in twice
    ]
    for option, given in (("--asymmetric", asymmetric), ("--stribeck", stribeck)):
        problems += [
            Problem(where=option, what=f"has no meaning beside {other}", remedy="leave one of them out")
            for other, is_given in beside.items()
            if given and is_given
        ]
    InputError.raise_if_any(problems)
    return found


def presliding_texts(presliding: Sequence[str], beside: Mapping[str, bool]) -> dict[str, str]:
    """Text of the length by element, empty where validation shall find it.

    Raises:
        InputError: an element is named twice, or the option has no meaning beside others; all problems.
    """
    found: dict[str, str] = {}
    problems = Problems()
    for text in presliding:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or name in found:
            what = f"{name!r} is given twice" if name else f"{text!r} names no element"
            problems.add("--presliding", what, "give such as 'elbow' or 'elbow=0.01 rad'")
        found[name] = value
    problems += [
        Problem(where="--presliding", what=f"has no meaning beside {other}", remedy="leave one of them out")
        for other, is_given in beside.items()
        if presliding and is_given
    ]
    InputError.raise_if_any(problems)
    return found


def with_presliding(
    parts: Sequence[RegressionData],
    logs: Sequence[MeasuredLog],
    model: Model,
    texts: Mapping[str, str],
    output: str,
    *,
    fitted: int,
    share: float,
) -> tuple[list[RegressionData], PreslidingChoice | None]:
    """Regression data of all logs with columns of presliding friction, and what their lengths rest on.

    Args:
        parts, logs: those that are fitted, and then one to judge by.
        model: the machine.
        texts: of `presliding_texts`.
        output: as for `regression_data`.
        fitted: how many logs are fitted; validation rests on them alone.
        share: part of each log before its held-out part.

    Raises:
        InputError: a length has another unit than the element's motion.
        IdentificationError: a name is no element, or a length is not positive; all problems.
    """
    if not texts:
        return list(parts), None
    require_elements(model, tuple(texts))
    turns = elements(model)
    given = {
        name: quantity(f"--presliding {name}", text, ANGLE if turns[name] else LENGTH)
        for name, text in texts.items()
        if text
    }
    if any(length <= 0.0 for length in given.values()):
        raise IdentificationError(
            Problem(where=f"--presliding {name}", what=f"{length:g} is no length", remedy="above zero, or none")
            for name, length in given.items()
            if length <= 0.0
        )
    motions = [element_motion(model, one.log, one.preparation, output=output) for one in logs]
    wanted = [name for name in texts if name not in given]
    choice = choose_presliding(parts[:fitted], motions[:fitted], wanted, given=given, share=share)
    if not choice.lengths:
        return list(parts), choice
    columns = (presliding_columns(motion, choice.lengths, choice.staying) for motion in motions)
    return [with_columns(part, *new) for part, new in zip(parts, columns, strict=True)], choice


def presliding_notes(choice: PreslidingChoice, model: Model) -> tuple[str, ...]:
    """What was chosen, in words."""
    turns = elements(model)
    found = [
        f"friction of {name} turns round over {length:.3g} {'rad' if turns[name] else 'm'} after a reversal"
        + (", as given" if name in choice.given else "")
        + (", and stays at rest" if name in choice.staying else "")
        for name, length in choice.lengths.items()
    ]
    found += [
        f"{name}: no length of presliding friction lessens the validation error of an output by {100 * BETTER:g} % and "
        "in every part of the logs, so it has none"
        for name in choice.without
    ]
    if choice.lengths:
        found.append(
            f"validation error {choice.errors[0]:.3g} % without presliding friction, {choice.errors[1]:.3g} % with"
        )
    return tuple(found)


def with_friction(
    parts: Sequence[RegressionData],
    logs: Sequence[MeasuredLog],
    model: Model,
    asymmetric: Sequence[str],
    stribeck: Mapping[str, str],
    output: str,
) -> list[RegressionData]:
    """Regression data of all logs with the columns of such friction.

    Raises:
        InputError: a speed has another unit than the element's.
        IdentificationError: a name is no element, or a speed is not positive.
    """
    if not (asymmetric or stribeck):
        return list(parts)
    require_elements(model, [*asymmetric, *stribeck])
    turns = elements(model)
    speeds = {
        name: quantity(f"--stribeck {name}", text, ANGULAR_SPEED if turns[name] else SPEED)
        for name, text in stribeck.items()
    }
    return [
        with_columns(
            part,
            *friction_columns(model, one.log, one.preparation, asymmetric=asymmetric, stribeck=speeds, output=output),
        )
        for part, one in zip(parts, logs, strict=True)
    ]

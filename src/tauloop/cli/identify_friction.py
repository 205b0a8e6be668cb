"""Options of ``tauloop identify`` for friction that the machine file cannot say: asymmetric, and Stribeck's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauloop.cli.assigned import quantity
from tauloop.cli.identify_logs import MeasuredLog
from tauloop.errors import InputError, Problem
from tauloop.functions import Model
from tauloop.identify import RegressionData, with_columns
from tauloop.identify.friction_columns import elements, friction_columns, require_elements
from tauloop.mechanism.units import ANGULAR_SPEED, SPEED


def stribeck_texts(asymmetric: Sequence[str], stribeck: Sequence[str], beside: Mapping[str, bool]) -> dict[str, str]:
    """Text of the Stribeck speed by element, of options that may stand beside the others.

    Raises:
        InputError: an option that cannot be read, or that has no meaning beside others; all problems.
    """
    problems = []
    found: dict[str, str] = {}
    for text in stribeck:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value) or name in found:
            what = f"{name!r} is given twice" if name in found else f"{text!r} is not NAME=SPEED"
            problems.append(Problem(where="--stribeck", what=what, remedy="give such as 'elbow=0.2 rad/s'"))
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
    if problems:
        raise InputError(problems)
    return found


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

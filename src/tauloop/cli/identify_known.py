"""Options of ``tauloop identify`` for what is known: parameters with a value, a payload in some logs, unknown gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from tauloop.cli.assigned import quantity
from tauloop.cli.output import table
from tauloop.errors import InputError, Problem, Problems
from tauloop.identification import RegressionData
from tauloop.identification.parameters.known import (
    DriveGains,
    drive_gains,
    known_parameters,
    known_rests,
    scaled,
    with_payload,
)
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.mechanism.units import parse_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the command line says of the parameters.

    Attributes:
        values: text of the value by name of the parameter.
        payloads: body by the file name of the log in which it carries a payload.
        gains: whether the drives' gains are unknown.
    """

    values: dict[str, str]
    payloads: dict[str, str]
    gains: bool

    @property
    def body(self) -> str | None:
        """The body on which the payload sits."""
        return next(iter(self.payloads.values()), None)


def known(values: Sequence[str], payloads: Sequence[str], gains: bool, logs: Sequence[Path], **beside: Any) -> Known:
    """Read the options.

    Args:
        values: NAME=VALUE.
        payloads: LOG=BODY.
        gains: whether gains are unknown.
        logs: all logs of the command.
        beside: other options that are given; those that have no meaning beside these are not None.

    Raises:
        InputError: an option that cannot be read, or that has no meaning beside others; all problems.
    """
    problems = Problems()
    named = {path.name: path for path in logs}
    read: list[dict[str, str]] = []
    for option, texts, form in (
        ("--known", [part for text in values for part in text.split(",")], "NAME=VALUE, such as 'tip_mass=0.3 kg'"),
        ("--payload", payloads, "LOG=BODY, such as loaded.csv=forearm"),
    ):
        found: dict[str, str] = {}
        for text in texts:
            name, equals, value = (part.strip() for part in text.partition("="))
            if not (name and equals and value) or name in found:
                what = f"{name!r} is given twice" if name in found else f"{text!r} is not {form.split(',')[0]}"
                problems.add(option, what, f"give {form}")
            found[name] = value
        read.append(found)
    problems += [
        Problem(where="--payload", what=f"{name!r} is none of the logs", remedy=f"choose among {listing(named)}")
        for name in read[1]
        if name not in named
    ]
    if len(set(read[1].values())) > 1:
        what = f"sits on {listing(sorted(set(read[1].values())))}"
        problems.add("--payload", what, "name one body")
    for option, given in (("--payload", bool(payloads)), ("--gains", gains)):
        problems += [
            Problem(where=option, what=f"has no meaning beside {other}", remedy="leave one of them out")
            for other, value in beside.items()
            if given and value
        ]
    InputError.raise_if_any(problems)
    return Known(values=read[0], payloads=read[1], gains=gains)


def known_leaves(mechanism: Mechanism, options: Known) -> dict[str, float]:
    """Values, SI, of the leaf parameters of the machine file among the known parameters.

    Raises:
        InputError: a unit is another than the parameter's.
    """
    leaves = {parameter.name: parameter for parameter in mechanism.parameters}
    return {name: _value(name, text, leaves[name].unit) for name, text in options.values.items() if name in leaves}


def with_known(
    parts: Sequence[RegressionData], names: Sequence[str], options: Known, taken: Sequence[str]
) -> list[RegressionData]:
    """Regression data of all logs with the payload's columns, and without the unknowns that are known.

    Args:
        parts: of the logs.
        names: their files.
        options: of the command line.
        taken: known leaf parameters, which the machine has already.

    Raises:
        InputError: a name is no parameter, or a unit is another than the parameter's; all problems.
    """
    found = list(parts)
    if options.body is not None:
        found = with_payload(found, options.body, [name in options.payloads for name in names])
    units = dict(zip(found[0].unknowns, found[0].unknown_units, strict=True))
    wanted = {name: text for name, text in options.values.items() if name not in taken}
    springs = {name: name.removesuffix(".rest") for name in wanted if f"{name.removesuffix('.rest')}.preload" in units}
    springs = {name: element for name, element in springs.items() if name != element}
    if springs:
        coordinate = {element: "rad" if "rad" in units[f"{element}.stiffness"] else "m" for element in springs.values()}
        rests = {element: _value(name, wanted.pop(name), coordinate[element]) for name, element in springs.items()}
        found = [known_rests(part, rests) for part in found]
    InputError.raise_if_any(
        Problem(
            where="--known",
            what=f"{name!r} is no parameter of this machine",
            remedy=suggestion(name, units) or f"choose among {listing(units)}",
        )
        for name in wanted
        if name not in units
    )
    values = {name: _value(name, text, units[name]) for name, text in wanted.items()}
    return [known_parameters(part, values) for part in found] if values else found


def with_gains(parts: Sequence[RegressionData], training: RegressionData) -> tuple[list[RegressionData], DriveGains]:
    """Regression data of all logs with the forces multiplied by the gains that the training data tell."""
    gains = drive_gains(training)
    return [scaled(part, gains) for part in parts], gains


def gains_table(gains: DriveGains) -> Table:
    """The gains with their standard deviations."""
    rows = table("Gains", "drive", "gain", "std. dev.", numeric=(1, 2))
    for name, value, deviation in zip(gains.outputs, gains.values, gains.standard_deviations, strict=True):
        rows.add_row(name, f"{value:.5g}", f"{deviation:.2g}")
    return rows


def _value(name: str, text: str, unit: str) -> float:
    return quantity(f"--known {name}", text, parse_unit(unit or "1").dimension)

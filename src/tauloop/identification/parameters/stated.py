"""Application of options for known parameters and payloads to regression data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tauloop.common.errors import InputError
from tauloop.identification.options import TermOptions
from tauloop.identification.parameters.known import known_parameters, known_rests, with_payload
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.values import si_value
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names


def known_leaves(mechanism: Mechanism, known: Mapping[str, float | str]) -> dict[str, float]:
    """Return the values, SI, of the known parameters that are independent in the machine file.

    Raises:
        InputError: a value has the wrong dimension.
    """
    units = {parameter.name: parameter.unit for parameter in mechanism.parameters}
    return {
        name: _value(name, value, units[name]) for name, value in known.items() if name in units
    }


def with_stated(
    parts: Sequence[RegressionData],
    names: Sequence[str],
    terms: TermOptions,
    known_in_machine: Collection[str],
) -> list[RegressionData]:
    """Return regression data with the payload's columns and without unknowns that are known.

    Args:
        parts: regression data of the logs.
        names: names of the logs.
        terms: known parameters and payloads.
        known_in_machine: names of known parameters that the machine already contains with these
            values.

    Raises:
        InputError: a name is not a parameter, or a value has the wrong dimension; lists all
            problems.
    """
    changed = list(parts)
    for body in set(terms.payload_body.values()):
        changed = with_payload(changed, body, [name in terms.payload_body for name in names])
    units = dict(zip(changed[0].unknowns, changed[0].unknown_units, strict=True))
    known = {name: value for name, value in terms.known.items() if name not in known_in_machine}
    rests = {}
    for name in [name for name in known if name.endswith(".rest")]:
        element = name.removesuffix(".rest")
        if f"{element}.preload" in units:
            unit = "rad" if "rad" in units[f"{element}.stiffness"] else "m"
            rests[element] = _value(name, known.pop(name), unit)
    changed = [known_rests(part, rests) for part in changed] if rests else changed
    InputError.raise_if_any(
        unknown_names(known, units, "{!r} is not a parameter of this machine", "known")
    )
    values = {name: _value(name, value, units[name]) for name, value in known.items()}
    return [known_parameters(part, values) for part in changed] if values else changed


def require_logs(payload: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise an error if a payload belongs to a log that does not exist."""
    InputError.raise_if_any(unknown_names(payload, names, "{!r} is not one of the logs", "payload"))


def _value(name: str, value: float | str, unit: str) -> float:
    """Return a known value, SI."""
    return si_value(f"known {name}", value, unit)

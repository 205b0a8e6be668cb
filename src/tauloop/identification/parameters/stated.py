"""What options say is known of the parameters, and the payload that some logs carry."""

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
    """Values, SI, of the leaf parameters of the machine file among the known parameters.

    Raises:
        InputError: a unit is another than the parameter's.
    """
    units = {parameter.name: parameter.unit for parameter in mechanism.parameters}
    return {
        name: _value(name, value, units[name]) for name, value in known.items() if name in units
    }


def with_stated(
    parts: Sequence[RegressionData],
    names: Sequence[str],
    terms: TermOptions,
    taken: Collection[str],
) -> list[RegressionData]:
    """Regression data of all logs with the payload's columns, and without the unknowns that are known.

    Args:
        parts: of the logs.
        names: of the logs.
        terms: what is known.
        taken: known leaf parameters, which the machine has already.

    Raises:
        InputError: a name is no parameter, or a unit is another than the parameter's; all problems.
    """
    changed = list(parts)
    for body in set(terms.payload.values()):
        changed = with_payload(changed, body, [name in terms.payload for name in names])
    units = dict(zip(changed[0].unknowns, changed[0].unknown_units, strict=True))
    wanted = {name: value for name, value in terms.known.items() if name not in taken}
    springs = {name: name.removesuffix(".rest") for name in wanted if name.endswith(".rest")}
    rests = {
        element: _value(
            name, wanted.pop(name), "rad" if "rad" in units[f"{element}.stiffness"] else "m"
        )
        for name, element in springs.items()
        if f"{element}.preload" in units
    }
    changed = [known_rests(part, rests) for part in changed] if rests else changed
    InputError.raise_if_any(
        unknown_names(wanted, units, "{!r} is no parameter of this machine", "known")
    )
    values = {name: _value(name, value, units[name]) for name, value in wanted.items()}
    return [known_parameters(part, values) for part in changed] if values else changed


def require_logs(payload: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse payloads in logs that are not there."""
    InputError.raise_if_any(unknown_names(payload, names, "{!r} is none of the logs", "payload"))


def _value(name: str, value: float | str, unit: str) -> float:
    return si_value(f"known {name}", value, unit)

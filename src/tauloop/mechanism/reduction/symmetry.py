"""Symmetry: parameters that are equal in all legs are replaced by one shared parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tauloop.mechanism.expression import GROUPS, Leaf, Parameter, ParameterTable, with_leaves
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.reduction.steps import Step

#: Parameter names of a repeated leg: leg, number, rest.
_INSTANCE = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z_])?)(\d+)\.(.+)", re.ASCII)


def _are_equal(parameters: Sequence[Parameter]) -> bool:
    return len({(p.value, p.unit, p.group) for p in parameters}) == 1


def share_parameters(
    mechanism: Mechanism, groups: Sequence[str] = GROUPS
) -> tuple[Mechanism, Step]:
    """Replace parameters that are equal in all repeated legs by one shared parameter.

    ``leg1.link.mass``, ``leg2.link.mass`` become ``leg.link.mass``. Forces at nominal values do not
    change, but the parameters of single legs can no longer be varied.

    Args:
        mechanism: the machine.
        groups: parameter groups that are shared, such as only "inertia".

    Returns:
        The changed machine, and the step with the shared parameters.
    """
    families: dict[str, list[Parameter]] = {}
    for parameter in mechanism.parameters:
        match = _INSTANCE.fullmatch(parameter.name)
        if match and parameter.group in groups:
            families.setdefault(f"{match[1].rstrip('_')}.{match[3]}", []).append(parameter)
    existing = set(mechanism.parameters.names)
    shared = {
        name: members
        for name, members in families.items()
        if name not in existing and len(members) > 1 and _are_equal(members)
    }
    new_name = {member.name: name for name, members in shared.items() for member in members}

    table: dict[str, Parameter] = {}
    for parameter in mechanism.parameters:
        name = new_name.get(parameter.name, parameter.name)
        if name not in table:
            table[name] = replace(
                parameter,
                name=name,
                lower=max(p.lower for p in shared.get(name, [parameter])),
                upper=min(p.upper for p in shared.get(name, [parameter])),
            )
    result = replace(
        with_leaves(mechanism, {old: Leaf(new) for old, new in new_name.items()}),
        parameters=ParameterTable(tuple(table.values())),
    )
    step = Step(
        name="share parameters",
        removed=tuple(new_name),
        kept=tuple(shared),
        preserved=("all forces at nominal values",) if shared else (),
        lost=tuple(f"an individual value of {name}" for name in new_name),
    )
    return result, step

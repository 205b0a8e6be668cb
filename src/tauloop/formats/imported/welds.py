"""Merging of welded links into one rigid body with ten inertial parameters.

Other tools represent a tool, flange or cover by a link on a fixed joint. Each link would have ten
parameters, but motions determine only their sums. The parameters of a link that is welded to the
base have no effect.
"""

from __future__ import annotations

from dataclasses import replace

from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.linkage import Linkage
from tauloop.formats.imported.rod_inertia import source_of
from tauloop.mechanism.expression import Parameter, ParameterTable, leaves, steps_from
from tauloop.mechanism.model import BASE, Body, Inertia, Mechanism


def with_merged_welds(mechanism: Mechanism) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the machine with one inertia per welded link, and notes on the merged bodies.

    One body of each link gets the total inertia. The others remain as massless bodies, so that
    frames keep their names and positions. The new inertia is the sum at the nominal parameters.
    """
    # a weld that closes a loop is not merged, because the user may ask for its force
    linkage = Linkage(
        replace(mechanism, joints=tuple(joint for joint in mechanism.joints if not joint.is_cut))
    )
    welds = (joint for joint in linkage.mechanism.joints if joint.kind == "fixed")
    fixed_bodies = steps_from(BASE, (weld.bodies for weld in welds))
    changed: dict[str, Inertia | None] = {}
    new_parameters: list[Parameter] = []
    notes: list[str] = []
    for link in linkage.links():
        bodies_with_inertia = [name for name in link if mechanism.body(name).inertia is not None]
        if len(bodies_with_inertia) < 2:
            continue
        carrier = _innermost(mechanism, link)
        others = [name for name in bodies_with_inertia if name != carrier]
        ordered = (carrier, *(name for name in link if name != carrier))
        changed |= dict.fromkeys(others)
        leaves = Leaves(
            source=source_of(mechanism, bodies_with_inertia),
            status="chosen",
            parameters=new_parameters,
        )
        changed[carrier] = leaves.inertia(carrier, linkage.inertia(ordered))
        notes.append(
            f"{carrier} includes the inertia of the bodies welded to it: {', '.join(others)}"
        )
    welded_to_base = [
        body.name
        for body in mechanism.bodies
        if body.name in fixed_bodies and body.inertia is not None
    ]
    if welded_to_base:
        changed |= dict.fromkeys(welded_to_base)
        notes.append(
            f"{', '.join(welded_to_base)}: welded to the base, so the inertia has no effect"
        )
    if not changed:
        return mechanism, ()
    bodies = tuple(
        replace(body, inertia=changed[body.name]) if body.name in changed else body
        for body in mechanism.bodies
    )
    return replace(
        mechanism, bodies=bodies, parameters=_table(mechanism, bodies, new_parameters)
    ), tuple(notes)


def _innermost(mechanism: Mechanism, link: tuple[str, ...]) -> str:
    """Return the body of a link that is not the child of a weld."""
    children = {
        joint.child.body for joint in mechanism.joints if joint.kind == "fixed" and not joint.is_cut
    }
    return next((name for name in link if name not in children), link[0])


def _table(
    mechanism: Mechanism, bodies: tuple[Body, ...], new_parameters: list[Parameter]
) -> ParameterTable:
    """Return the parameters that are still used, and the new ones.

    New parameters replace those of the same name or are appended.
    """
    by_name = {parameter.name: parameter for parameter in new_parameters}
    pairs = zip(mechanism.bodies, bodies, strict=True)
    removed = leaves(tuple(old.inertia for old, body in pairs if old.inertia != body.inertia))
    used = leaves(bodies)
    table = [
        by_name.pop(parameter.name, parameter)
        for parameter in mechanism.parameters
        if parameter.name in used or parameter.name not in removed
    ]
    return ParameterTable((*table, *by_name.values()))

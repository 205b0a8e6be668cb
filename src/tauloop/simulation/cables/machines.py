"""The equivalent machines of a cable machine during a simulation.

An elastic cable becomes a telescopic rod with an additional motor, named `NAME.stretch`: the
coordinate is the stretch, and the motor force is minus the tension. The inertia, friction and gear
of a driven winch act on a coordinate `NAME.wound`, the released length. An inelastic cable is a rod
while it is taut and is removed while it is slack; its winch then rotates freely if it has inertia,
friction or a spring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.mechanism.expression import ONE, Constant
from tauloop.mechanism.model import (
    BASE,
    Actuator,
    Body,
    Freedom,
    Joint,
    Mechanism,
    Placement,
    Rod,
    Telescope,
)

#: Suffix of the actuator that exerts the force of an elastic cable.
STRETCH_SUFFIX = ".stretch"
#: Suffix of the coordinate of a winch: the length that it releases.
WOUND_SUFFIX = ".wound"
#: Suffix of the massless body of a winch.
DRUM_SUFFIX = ".drum"


@dataclass(frozen=True, slots=True, kw_only=True)
class CableMachine:
    """An equivalent machine of a cable machine.

    Attributes:
        mechanism: the machine, without bounds of tension.
        stretched: names of elastic cables; their motors are the last actuators, in this order.
        taut, slack: names of taut and slack inelastic cables.
        bare: names of inelastic cables with a bare winch, by the winch's name. A bare winch only
            exerts a force; it has no inertia, friction or spring.
    """

    mechanism: Mechanism
    stretched: tuple[str, ...]
    taut: tuple[str, ...]
    slack: tuple[str, ...]
    bare: Mapping[str, str]


def cable_machine(
    mechanism: Mechanism, slack: frozenset[str], held: Mapping[str, float] | None
) -> CableMachine:
    """Return the equivalent machine with the given slack cables.

    Args:
        mechanism: the cable machine.
        slack: names of slack cables.
        held: lengths of inelastic cables with locked winches, by name; None if forces drive all
            winches.

    Raises:
        InputError: a cable cannot be simulated. The message states the reason.
    """
    bounds = mechanism.cables
    builder = _CableBuilder(mechanism)
    _require_possible(mechanism, held is not None)
    stretched = tuple(name for name, bound in bounds.items() if bound.stiffness is not None)
    bare = _bare_winches(mechanism) if held is None else {}
    inelastic = [name for name in bounds if name not in stretched and name not in bare.values()]
    for rod in mechanism.rods:
        if rod.name in stretched:
            builder.add_elastic(rod, is_driven=held is None)
        elif rod.name in bare.values():
            builder.rods.append(replace(rod, tension=None))
        elif rod.name in slack:
            builder.add_slack(rod, is_driven=held is None)
        else:
            builder.add_taut(rod, held)
    return CableMachine(
        mechanism=builder.mechanism(),
        stretched=stretched,
        taut=tuple(name for name in inelastic if name not in slack),
        slack=tuple(name for name in inelastic if name in slack),
        bare=bare,
    )


class _CableBuilder:
    """Builder of an equivalent machine."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self.rods: list[Rod] = []
        self._bodies = list(mechanism.bodies)
        self._joints = list(mechanism.joints)
        self._actuators = list(mechanism.actuators)
        self._stretch_motors: list[Actuator] = []

    def add_elastic(self, rod: Rod, *, is_driven: bool) -> None:
        """Add a force between the ends, and a coordinate of the winch if a force drives it."""
        drives: tuple[tuple[str, Constant], ...] = ((rod.name, ONE),)
        if rod.telescope is None:
            length = 1.0 if rod.length is None else self._mechanism.value(rod.length)
            telescope = Telescope(reference=length)
        else:
            freedom = replace(rod.telescope.freedom, friction=None, spring=None, inertia=None)
            telescope = Telescope(reference=rod.telescope.reference, freedom=freedom)
            if is_driven:
                wound = rod.name + WOUND_SUFFIX
                self._add_winch(wound, rod.telescope)
                drives = (*drives, (wound, Constant(-1.0)))
                self._actuators = [
                    _with_coordinate(actuator, rod.name, wound) for actuator in self._actuators
                ]
            else:
                self._remove_actuators(rod.name)
        self.rods.append(replace(rod, length=None, telescope=telescope, tension=None))
        self._stretch_motors.append(
            Actuator(name=rod.name + STRETCH_SUFFIX, drives=drives, is_rotary=False)
        )

    def add_slack(self, rod: Rod, *, is_driven: bool) -> None:
        """Add only the winch of a slack inelastic cable."""
        if rod.telescope is not None and is_driven:
            self._add_winch(rod.name, rod.telescope)
        elif rod.telescope is not None:
            self._remove_actuators(rod.name)

    def add_taut(self, rod: Rod, held: Mapping[str, float] | None) -> None:
        """Add a rod. A cable with a locked winch becomes a rod of fixed length."""
        if rod.tension is not None and rod.telescope is not None and held is not None:
            self._remove_actuators(rod.name)
            rod = replace(rod, telescope=None, length=Constant(held[rod.name]))
        self.rods.append(replace(rod, tension=None))

    def _add_winch(self, name: str, telescope: Telescope) -> None:
        """Add a massless slide whose coordinate is the length released by a winch."""
        drum = f"{name}{DRUM_SUFFIX}"
        self._bodies.append(Body(name=drum))
        freedom = replace(telescope.freedom, lower=Freedom().lower, upper=Freedom().upper)
        self._joints.append(
            Joint(
                name=name,
                kind="prismatic",
                parent=Placement(body=BASE),
                child=Placement(body=drum),
                axes=("z",),
                reference=(telescope.reference,),
                freedoms=(freedom,),
            )
        )

    def _remove_actuators(self, name: str) -> None:
        self._actuators = [
            actuator for actuator in self._actuators if name not in dict(actuator.drives)
        ]

    def mechanism(self) -> Mechanism:
        """Return the machine."""
        return replace(
            self._mechanism,
            bodies=tuple(self._bodies),
            joints=tuple(self._joints),
            rods=tuple(self.rods),
            actuators=(*self._actuators, *self._stretch_motors),
        )


def _with_coordinate(actuator: Actuator, old: str, new: str) -> Actuator:
    """Return the actuator with a driven coordinate replaced."""
    drives = tuple((new if name == old else name, ratio) for name, ratio in actuator.drives)
    return replace(actuator, drives=drives)


def _bare_winches(mechanism: Mechanism) -> dict[str, str]:
    """Return the inelastic cables with a bare winch, by the winch's name (`CableMachine.bare`)."""
    bare = {}
    for rod in mechanism.rods:
        drivers = [
            actuator for actuator in mechanism.actuators if rod.name in dict(actuator.drives)
        ]
        if (
            rod.tension is None
            or rod.tension.stiffness is not None
            or rod.telescope is None
            or len(drivers) != 1
        ):
            continue
        (winch,), freedom = drivers, rod.telescope.freedom
        elements = (
            winch.inertia,
            winch.friction,
            winch.drive,
            freedom.inertia,
            freedom.friction,
            freedom.spring,
        )
        if len(winch.drives) == 1 and all(element is None for element in elements):
            bare[winch.name] = rod.name
    return bare


def _require_possible(mechanism: Mechanism, is_held: bool) -> None:
    """Reject cables that cannot be simulated.

    Raises:
        InputError: cables cannot be simulated. The message lists all of them.
    """
    bare, problems = _bare_winches(mechanism), []
    for rod in mechanism.rods:
        if rod.tension is None:
            continue
        drivers = [
            actuator for actuator in mechanism.actuators if rod.name in dict(actuator.drives)
        ]
        is_inelastic = rod.tension.stiffness is None
        if is_inelastic and (rod.lower is not None or rod.upper is not None):
            what = "has mass but no stiffness, so its motion while it is slack is undefined"
            problems.append(
                (rod.name, what, "write `model: massless`, or give the cable a stiffness")
            )
        if is_held and any(len(driver.drives) > 1 for driver in drivers):
            what = "its winch also drives other coordinates, so it cannot be locked at a length"
            problems.append((rod.name, what, "give the forces of the winches"))
        if not is_held and rod.telescope is not None and not is_inelastic:
            inertias = [rod.telescope.freedom.inertia, *(driver.inertia for driver in drivers)]
            if all(inertia is None for inertia in inertias):
                what = "a force acts on a winch without inertia, so its speed is undefined"
                problems.append(
                    (
                        rod.name,
                        what,
                        "give the winch an inertia, or omit its force: the winch is then locked",
                    )
                )
        if (
            is_inelastic
            and not is_held
            and rod.telescope is not None
            and rod.name not in bare.values()
            and not drivers
        ):
            problems.append(
                (
                    rod.name,
                    "is telescopic, but no actuator winds it",
                    "give it an actuator or a length",
                )
            )
    if problems:
        raise InputError(
            Problem(where=where, what=what, remedy=remedy) for where, what, remedy in problems
        )

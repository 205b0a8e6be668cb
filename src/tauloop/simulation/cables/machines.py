"""The machines that a cable machine is while it is simulated: elastic cables as forces, slack ones taken away.

A cable that stretches becomes a telescopic rod that a motor of its own drives, named
`NAME.stretch`: what moves it is the stretch, and what it exerts is minus the tension. A driven
winch keeps its inertia, friction and gear on a coordinate `NAME.wound`, the length that it has let
out. A cable that does not stretch is a rod while it is taut, and nothing while it is slack; its
winch, where that has inertia, friction or a spring, then turns alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.mechanism.bodies import cables
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

#: Endings of names of what stands for a cable.
STRETCH, WOUND, DRUM = ".stretch", ".wound", ".drum"


@dataclass(frozen=True, slots=True, kw_only=True)
class CableMachine:
    """One of the machines.

    Attributes:
        mechanism: it, without any bounds of tension.
        stretched: cables that stretch; their motors come last, in this order.
        taut, slack: cables that do not stretch, and hold or do not hold their ends.
        bare: cables that do not stretch whose winch is nothing but a force, by the name of that
            actuator.
    """

    mechanism: Mechanism
    stretched: tuple[str, ...]
    taut: tuple[str, ...]
    slack: tuple[str, ...]
    bare: Mapping[str, str]


def cable_machine(
    mechanism: Mechanism, slack: frozenset[str], held: Mapping[str, float] | None
) -> CableMachine:
    """The machine with some cables slack.

    Args:
        mechanism: the cable machine.
        slack: cables that are.
        held: lengths at which winches of cables that do not stretch are held, by their names; None
            where forces drive all winches.

    Raises:
        InputError: a cable cannot be simulated, with the reason.
    """
    bounds, builder = cables(mechanism), _CableBuilder(mechanism)
    _require_possible(mechanism, held is not None)
    stretched = tuple(name for name, bound in bounds.items() if bound.stiffness is not None)
    bare = _bare(mechanism) if held is None else {}
    stiff = [name for name in bounds if name not in stretched and name not in bare.values()]
    for rod in mechanism.rods:
        if rod.name in stretched:
            builder.stretches(rod, is_driven=held is None)
        elif rod.name in bare.values():
            builder.rods.append(replace(rod, tension=None))
        elif rod.name in slack:
            builder.hangs(rod, is_driven=held is None)
        else:
            builder.holds(rod, held)
    return CableMachine(
        mechanism=builder.made(),
        stretched=stretched,
        taut=tuple(name for name in stiff if name not in slack),
        slack=tuple(name for name in stiff if name in slack),
        bare=bare,
    )


class _CableBuilder:
    """Collects the parts of the new machine."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self.rods: list[Rod] = []
        self._bodies, self._joints = list(mechanism.bodies), list(mechanism.joints)
        self._actuators, self._own = list(mechanism.actuators), list[Actuator]()

    def stretches(self, rod: Rod, *, is_driven: bool) -> None:
        """A force between the ends, and the winch on a coordinate of its own where a force drives it."""
        drives: tuple[tuple[str, Constant], ...] = ((rod.name, ONE),)
        if rod.telescope is None:
            length = 1.0 if rod.length is None else self._mechanism.value(rod.length)
            telescope = Telescope(reference=length)
        else:
            own = replace(rod.telescope.freedom, friction=None, spring=None, inertia=None)
            telescope = Telescope(reference=rod.telescope.reference, freedom=own)
            if is_driven:
                self._wind(rod.name + WOUND, rod.telescope)
                drives = (*drives, (rod.name + WOUND, Constant(-1.0)))
                self._actuators = [
                    _moved(actuator, rod.name, rod.name + WOUND) for actuator in self._actuators
                ]
            else:
                self._undrive(rod.name)
        self.rods.append(replace(rod, length=None, telescope=telescope, tension=None))
        self._own.append(Actuator(name=rod.name + STRETCH, drives=drives, turns=False))

    def hangs(self, rod: Rod, *, is_driven: bool) -> None:
        """A slack cable that does not stretch: gone, but for its winch."""
        if rod.telescope is not None and is_driven:
            self._wind(rod.name, rod.telescope)
        elif rod.telescope is not None:
            self._undrive(rod.name)

    def holds(self, rod: Rod, held: Mapping[str, float] | None) -> None:
        """A rod; a cable whose winch is held has the length that it is held at."""
        if rod.tension is not None and rod.telescope is not None and held is not None:
            self._undrive(rod.name)
            rod = replace(rod, telescope=None, length=Constant(held[rod.name]))
        self.rods.append(replace(rod, tension=None))

    def _wind(self, name: str, telescope: Telescope) -> None:
        """A massless slide whose coordinate is the length that a winch has let out."""
        drum = f"{name}{DRUM}"
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

    def _undrive(self, name: str) -> None:
        self._actuators = [
            actuator for actuator in self._actuators if name not in dict(actuator.drives)
        ]

    def made(self) -> Mechanism:
        """The machine."""
        return replace(
            self._mechanism,
            bodies=tuple(self._bodies),
            joints=tuple(self._joints),
            rods=tuple(self.rods),
            actuators=(*self._actuators, *self._own),
        )


def _moved(actuator: Actuator, old: str, new: str) -> Actuator:
    """The actuator on another coordinate."""
    drives = tuple((new if name == old else name, ratio) for name, ratio in actuator.drives)
    return replace(actuator, drives=drives)


def _bare(mechanism: Mechanism) -> dict[str, str]:
    """Cables that do not stretch and hang on nothing but the force of one actuator, by its name."""
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
        parts = (
            winch.inertia,
            winch.friction,
            winch.drive,
            freedom.inertia,
            freedom.friction,
            freedom.spring,
        )
        if len(winch.drives) == 1 and all(part is None for part in parts):
            bare[winch.name] = rod.name
    return bare


def _require_possible(mechanism: Mechanism, is_held: bool) -> None:
    """Refuse cables that cannot be simulated.

    Raises:
        InputError: all of them.
    """
    bare, problems = _bare(mechanism), []
    for rod in mechanism.rods:
        if rod.tension is None:
            continue
        drivers = [
            actuator for actuator in mechanism.actuators if rod.name in dict(actuator.drives)
        ]
        is_stiff = rod.tension.stiffness is None
        if is_stiff and (rod.lower is not None or rod.upper is not None):
            what = (
                "has mass and does not stretch, so that nothing says how it falls while it is slack"
            )
            problems.append((rod.name, what, "write model: massless, or give it a stiffness"))
        if is_held and any(len(driver.drives) > 1 for driver in drivers):
            what = "its winch drives other coordinates too, so that it cannot be held at a length"
            problems.append((rod.name, what, "give the forces of the winches"))
        if not is_held and rod.telescope is not None and not is_stiff:
            inertias = [rod.telescope.freedom.inertia, *(driver.inertia for driver in drivers)]
            if all(inertia is None for inertia in inertias):
                what = "a force on a winch without inertia: nothing says how fast it winds"
                problems.append(
                    (
                        rod.name,
                        what,
                        "give the winch an inertia, or leave its force out: it is held",
                    )
                )
        if (
            is_stiff
            and not is_held
            and rod.telescope is not None
            and rod.name not in bare.values()
            and not drivers
        ):
            problems.append(
                (rod.name, "is telescopic, but nothing winds it", "give it an actuator or a length")
            )
    if problems:
        raise InputError(
            Problem(where=where, what=what, remedy=remedy) for where, what, remedy in problems
        )

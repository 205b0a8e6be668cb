"""Cables and other massless rods of a `Mechanism` as spatial tendons, for `mjcf.writer`.

MuJoCo rejects rigid links without mass. A tendon between two sites has the same length, and the
force of its actuator acts along the same line. Rods that one motor, friction element or coupling
combines become branches of one tendon. Each branch follows a pulley whose divisor is the inverse of
the rod's factor. Rods with other relations to joints remain links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from tauloop.common.records import dataclass
from tauloop.mechanism.expression import Expression, add
from tauloop.mechanism.model import (
    BASE,
    Coupling,
    Freedom,
    Friction,
    Joint,
    Mechanism,
    Rod,
    Spring,
)

#: Terms of a linear combination: names of rods or joints, each with its factor.
Terms = Sequence[tuple[str, Expression]]


@dataclass(slots=True, kw_only=True)
class TendonPath:
    """A spatial tendon.

    Attributes:
        name: name of the tendon.
        lines: the straight lines of the tendon, as rods with the factors of their lengths.
        elements: spring, friction and limits that act on the tendon's length.
    """

    name: str
    lines: tuple[tuple[Rod, float], ...]
    elements: Freedom = field(default_factory=Freedom)


@dataclass(slots=True, kw_only=True)
class TendonPaths:
    """A machine in which tendons represent massless rods.

    Attributes:
        mechanism: the machine without these rods, and without the follower joints, whose
            coordinates are only sums of rod lengths.
        paths: the tendons, by name.
        gears: name of the tendon and gear ratio of each actuator on a tendon, by actuator.
        follower_bodies: massless bodies of the removed follower joints.
    """

    mechanism: Mechanism
    paths: dict[str, TendonPath] = field(default_factory=dict)
    gears: dict[str, tuple[str, float]] = field(default_factory=dict)
    follower_bodies: tuple[str, ...] = ()

    def is_replaced(self, link: str) -> bool:
        """Return whether a tendon replaces a link: a rod, a part of one, or a follower body."""
        rods = {rod.name for path in self.paths.values() for rod, _ in path.lines}
        rods.update(self.follower_bodies)
        return link in rods or link.removesuffix(".lower").removesuffix(".upper") in rods


def tendon_paths(mechanism: Mechanism) -> TendonPaths:
    """Return the machine with massless rods as tendons, where MJCF can represent them."""
    followers = _followers(mechanism)
    rods = _tendon_rods(mechanism, followers)
    followers = {
        name: (coupling, terms)
        for name, (coupling, terms) in followers.items()
        if _names(terms) <= rods.keys()
    }
    bodies = tuple(mechanism.joint(name).child.body for name in followers)
    result = TendonPaths(mechanism=_without(mechanism, rods, followers), follower_bodies=bodies)
    builder = _Builder(mechanism, rods, result)
    for joint, (coupling, terms) in followers.items():
        builder.follower(mechanism.joint(joint), coupling, terms)
    for actuator in mechanism.actuators:
        terms = _rod_terms(actuator.drives, followers)
        if _names(terms) <= rods.keys():
            builder.motor(actuator.name, actuator.drives, followers)
    for loss in mechanism.losses:
        if _names(loss.terms) <= rods.keys():
            builder.loss(loss.name, loss.terms, loss.friction)
    used_rods = {rod.name for path in result.paths.values() for rod, _ in path.lines}
    for name, rod in rods.items():
        has_elements = rod.telescope is not None and rod.telescope.freedom != Freedom()
        if name not in used_rods or has_elements:
            builder.line(rod)
    return result


class _Builder:
    """Adds tendons to `TendonPaths`."""

    def __init__(self, mechanism: Mechanism, rods: Mapping[str, Rod], result: TendonPaths) -> None:
        self._value = mechanism.value
        self._rods = rods
        self._result = result

    def line(self, rod: Rod) -> str:
        """Add the tendon of one rod; return its name."""
        elements = Freedom() if rod.telescope is None else rod.telescope.freedom
        self._result.paths[rod.name] = TendonPath(
            name=rod.name, lines=((rod, 1.0),), elements=elements
        )
        return rod.name

    def follower(self, joint: Joint, coupling: Coupling, terms: Terms) -> None:
        """Add the tendon whose length minus the coupling's offset is the coordinate of a joint."""
        (elements,) = joint.freedoms
        offset = self._value(coupling.offset)
        spring = elements.spring
        if spring is not None:
            spring = Spring(stiffness=spring.stiffness, rest=add(spring.rest, coupling.offset))
        elements = replace(
            elements, spring=spring, lower=elements.lower + offset, upper=elements.upper + offset
        )
        name = self._name(terms, joint.name)
        self._result.paths[name] = TendonPath(
            name=name, lines=self._lines(terms), elements=elements
        )

    def motor(
        self, name: str, drives: Terms, followers: Mapping[str, tuple[Coupling, Terms]]
    ) -> None:
        """Add the tendon that a motor drives, and its gear."""
        first, ratio = drives[0]
        gear = self._value(ratio)
        if first in followers:
            tendon = self._name(followers[first][1], first)
        elif len(drives) == 1:
            tendon = self.line(self._rods[first])
        else:
            lines = tuple((rod, factor / gear) for rod, factor in self._lines(drives))
            tendon = self._name(drives, f"{name}.gear")
            self._result.paths.setdefault(tendon, TendonPath(name=tendon, lines=lines))
        self._result.gears[name] = (tendon, gear)

    def loss(self, name: str, terms: Terms, friction: Friction) -> None:
        """Add the tendon on whose length friction acts."""
        lines = tuple((rod, abs(factor)) for rod, factor in self._lines(terms))
        path = TendonPath(name=name, lines=lines, elements=Freedom(friction=friction))
        self._result.paths[name] = path

    def _lines(self, terms: Terms) -> tuple[tuple[Rod, float], ...]:
        return tuple((self._rods[name], self._value(ratio)) for name, ratio in terms)

    def _name(self, terms: Terms, fallback: str) -> str:
        """Return NAME for rods NAME_1, NAME_2 and so on, which is how the reader numbers them."""
        names = [name for name, _ in terms]
        stem = names[0].removesuffix("_1")
        numbered = [f"{stem}_{k}" for k in range(1, len(terms) + 1)]
        return stem if stem and names == numbered else fallback


def _followers(mechanism: Mechanism) -> dict[str, tuple[Coupling, Terms]]:
    """Return joints of massless bodies whose coordinates s are only sums of rod lengths L_i.

    Returns:
        By name of the joint: the coupling -s + sum of r_i L_i = offset, and the terms r_i L_i.
    """
    followers: dict[str, tuple[Coupling, Terms]] = {}
    for coupling in mechanism.couplings:
        joints = [
            joint
            for joint in mechanism.joints
            if joint.kind == "prismatic" and joint.name in _names(coupling.terms)
        ]
        if len(joints) != 1 or coupling.curves:
            continue
        (joint,) = joints
        ratio = mechanism.value(dict(coupling.terms)[joint.name])
        terms = tuple(term for term in coupling.terms if term[0] != joint.name)
        if ratio == -1.0 and _joins_bare_body(mechanism, joint):
            followers[joint.name] = (coupling, terms)
    return followers


def _joins_bare_body(mechanism: Mechanism, joint: Joint) -> bool:
    """Return whether a joint connects the base to a massless body without other connections."""
    body = joint.child.body
    ends = [end.body for rod in mechanism.rods for end in (rod.start, rod.end)]
    joined_bodies = [
        name for other in mechanism.joints if other is not joint for name in other.bodies
    ]
    return (
        joint.parent.body == BASE
        and mechanism.body(body).inertia is None
        and body not in (*ends, *joined_bodies, mechanism.platform.body)
    )


def _tendon_rods(
    mechanism: Mechanism, followers: Mapping[str, tuple[Coupling, Terms]]
) -> dict[str, Rod]:
    """Return the rods that tendons represent, by name."""
    rods = {rod.name: rod for rod in mechanism.rods if _is_line(rod)}
    named_rods = {*mechanism.platform.independent, *mechanism.unstated_motors}
    blocked = rods.keys() & named_rods
    follower_couplings = {coupling.name for coupling, _ in followers.values()}
    for coupling in mechanism.couplings:
        if coupling.name not in follower_couplings:
            blocked |= _names(coupling.terms) | {name for name, _ in coupling.curves}
    groups = [terms for _, terms in followers.values()]
    groups += [loss.terms for loss in mechanism.losses]
    groups += [_rod_terms(actuator.drives, followers) for actuator in mechanism.actuators]
    while True:
        remaining = rods.keys() - blocked
        unsuitable = [terms for terms in groups if not _is_tendon(mechanism, terms, remaining)]
        newly_blocked = {name for terms in unsuitable for name in _names(terms)} & remaining
        if not newly_blocked:
            return {name: rods[name] for name in rods if name in remaining}
        # A rod that must remain a link makes the other combinations with this rod unsuitable.
        blocked |= newly_blocked


def _is_line(rod: Rod) -> bool:
    """Return whether a rod is a straight, massless line that is telescopic or a cable."""
    is_massless = rod.lower is None and rod.upper is None
    has_variable_length = rod.telescope is not None or rod.tension is not None
    return is_massless and has_variable_length and rod.drum is None


def _is_tendon(mechanism: Mechanism, terms: Terms, rods: set[str]) -> bool:
    """Return whether a combination only contains these rods, with nonzero factors of equal sign."""
    factors = [mechanism.value(factor) for _, factor in terms]
    is_nonzero = all(factor != 0.0 for factor in factors)
    signs = {factor > 0.0 for factor in factors}
    return _names(terms) <= rods and len(signs) == 1 and is_nonzero


def _rod_terms(terms: Terms, followers: Mapping[str, tuple[Coupling, Terms]]) -> Terms:
    """Return the terms of the rods that a single follower joint combines; otherwise these terms."""
    names = _names(terms)
    if len(names) == 1 and names <= followers.keys():
        return followers[names.pop()][1]
    return terms


def _names(terms: Terms) -> set[str]:
    return {name for name, _ in terms}


def _without(
    mechanism: Mechanism,
    rods: Mapping[str, Rod],
    followers: Mapping[str, tuple[Coupling, Terms]],
) -> Mechanism:
    """Return the machine without the rods and joints that tendons replace."""
    removed = {coupling.name for coupling, _ in followers.values()}
    bodies = {mechanism.joint(name).child.body for name in followers}
    return replace(
        mechanism,
        rods=tuple(rod for rod in mechanism.rods if rod.name not in rods),
        bodies=tuple(body for body in mechanism.bodies if body.name not in bodies),
        joints=tuple(joint for joint in mechanism.joints if joint.name not in followers),
        couplings=tuple(c for c in mechanism.couplings if c.name not in removed),
    )

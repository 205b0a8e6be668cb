"""Telescopic legs among the bodies of an imported machine: two links on a slide, each with a ball or universal joint.

Leg and slide become one telescopic `Rod` with the name of the slide, whose motor then drives its length. The slide must
lie on the line between the two joint centres. Spins are treated as those of rods of fixed length: the leg between a
universal and a ball joint is a full rod, an axisymmetric one between two balls a slender one that does not spin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tauloop.formats.linkage import Linkage, axis_of
from tauloop.formats.options import RodRecognition
from tauloop.formats.rod_ends import SAME_DIRECTION, SAME_POINT, End, end_of, orientation
from tauloop.formats.rod_inertia import AboutLine, RodParameters, about_line, source_of
from tauloop.mechanism.expression import Constant, add, negate
from tauloop.mechanism.model import (
    Actuator,
    Freedom,
    Inertia,
    Joint,
    Parameter,
    Rod,
    SlenderPart,
    Telescope,
    Vector,
)
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A telescopic leg.

    Attributes:
        slide: the joint between its two links.
        lower, upper: the links at A and at B; A is the end with a universal joint where there is one.
        A, B: the ends.
        sense: +1 where the slide's coordinate grows with the length, -1 where it shrinks.
        length: at the start, m.
        line: unit vector from A to B in the first body of each link.
        turn: axes (3, 3) of the first body of the upper link in that of the lower one.
    """

    slide: Joint
    lower: tuple[str, ...]
    upper: tuple[str, ...]
    A: End
    B: End
    sense: float
    length: float
    line: tuple[np.ndarray, np.ndarray]
    turn: np.ndarray


def legs(linkage: Linkage, notes: list[str]) -> list[Leg]:
    """Pairs of links on a slide with a ball or universal joint at either end; why others are none is noted."""
    found: list[Leg] = []
    for slide in linkage.mechanism.joints:
        if slide.kind != "prismatic" or slide.is_cut:
            continue
        pair = [link for link in linkage.links() if slide.parent.body in link or slide.child.body in link]
        ends = [end for link in pair if (end := _far_end(linkage, link, slide)) is not None]
        if len(pair) != 2 or len(ends) != 2:
            continue
        if ends[0].kind == ends[1].kind == "universal":
            notes.append(f"{slide.name} stays a slide: universal joints at both ends force the spins of its links")
        elif slide.name in linkage.mechanism.combined:
            notes.append(f"{slide.name} stays a slide: a coupling or loss acts on it")
        elif (leg := _leg(linkage, slide, pair, ends)) is None:
            notes.append(f"{slide.name} stays a slide: it does not lie on the line between the joint centres")
        else:
            found.append(leg)
    return found


def _far_end(linkage: Linkage, link: Sequence[str], slide: Joint) -> End | None:
    """The end of a link on a slide that carries nothing else."""
    others = [joint for joint in linkage.joints_out_of(link) if joint is not slide]
    if linkage.is_needed(link) or len(others) != 1:
        return None
    return end_of(linkage, link, others[0])


def _leg(linkage: Linkage, slide: Joint, pair: Sequence[tuple[str, ...]], ends: Sequence[End]) -> Leg | None:
    if ends[1].kind == "universal":
        pair, ends = pair[::-1], ends[::-1]
    (lower, upper), (A, B) = pair, ends
    across = linkage.world[lower[0]].inverse() @ linkage.world[upper[0]]
    d = across.position + across.rotation @ B.point - A.point
    side = slide.parent if slide.parent.body in lower else slide.child
    axis = linkage.pose_in(lower, side.body).rotation @ axis_of(linkage.mechanism, slide, side)
    length = float(np.linalg.norm(d))
    least = SAME_POINT * linkage.length
    if length < least or np.linalg.norm(d - (d @ axis) * axis) > least:
        return None
    z = axis * np.sign(d @ axis)
    return Leg(
        slide=slide,
        lower=lower,
        upper=upper,
        A=A,
        B=B,
        # the child moves along the axis
        sense=float(np.sign(d @ axis)) * (1.0 if slide.child.body in upper else -1.0),
        length=length,
        line=(z, across.rotation.T @ z),
        turn=across.rotation,
    )


def telescopic_rod(
    linkage: Linkage, leg: Leg, options: RodRecognition, notes: list[str]
) -> tuple[Rod, list[Parameter]] | None:
    """The rod with its leaf parameters; None where the leg must stay two bodies, which is noted."""
    name, freedom = leg.slide.name, _along(leg)
    if freedom.lower <= 0.0 and np.isfinite(freedom.lower):
        notes.append(f"{name} stays a slide: at its limit the two joint centres are {freedom.lower:.3g} m apart")
        return None
    (m_1, c_1, about_1), (m_2, c_2, about_2) = (linkage.inertia(link) for link in (leg.lower, leg.upper))
    z, z_up = leg.line
    lines = (
        about_line(m_1, c_1 - leg.A.point, about_1, z, leg.length),
        about_line(m_2, c_2 - leg.B.point, about_2, -z_up, leg.length),
    )
    made = [
        RodParameters(name=name, source=source_of(linkage.mechanism, link), part=part)
        for part, link in (("lower", leg.lower), ("upper", leg.upper))
    ]
    spin: Literal["universal", "none"] = "none"
    first_axis: Vector | None = None
    parts: list[SlenderPart | Inertia | None]
    if leg.A.kind == "universal" and not all(line.is_thin for line in lines):
        if abs(float(leg.A.second_axis @ z)) > SAME_DIRECTION:
            notes.append(f"{name} stays a slide: the second axis of its universal joint is not across it")
            return None
        y = leg.A.second_axis * orientation(linkage, leg.lower, leg.A, z)
        R = np.column_stack([np.cross(y, z), y, z]).T
        R_up = R @ leg.turn
        parts = [
            made[0].full(m_1, R @ (c_1 - leg.A.point), R @ about_1 @ R.T) if _is_solid(m_1, about_1) else None,
            made[1].full(m_2, R_up @ (c_2 - leg.B.point), R_up @ about_2 @ R_up.T) if _is_solid(m_2, about_2) else None,
        ]
        h, spin = leg.A.first_axis, "universal"
        first_axis = (Constant(float(h[0])), Constant(float(h[1])), Constant(float(h[2])))
        notes.append(f"{name} is a full telescopic rod between a universal and a ball joint")
    else:
        if (why := _why_not_slender(lines, options)) is not None:
            notes.append(f"{name} stays a slide: {why}")
            return None
        parts = [
            maker.slender(mass, line.center, line.across) if mass > 0.0 else None
            for maker, mass, line in zip(made, (m_1, m_2), lines, strict=True)
        ]
        axial = lines[0].axial + lines[1].axial
        unused = f", so that its axial inertia of {axial:.3g} kg m^2 plays no part" if axial else ""
        locked = "; its spin is locked" if leg.A.kind == "ball" else ""
        notes.append(f"{name} is a slender telescopic rod{locked}{unused}")
    shift = leg.length - leg.sense * (leg.slide.reference[0] if leg.slide.reference else 0.0)
    counted = "the coordinate" if leg.sense > 0.0 else "less the coordinate"
    notes.append(f"{name} is now a length: {shift:.6g} m and {counted} of the file; its motor counts it")
    rod = Rod(
        name=name,
        start=leg.A.outside,
        end=leg.B.outside,
        telescope=Telescope(reference=leg.length, freedom=freedom),
        lower=parts[0],
        upper=parts[1],
        spin=spin,
        first_axis=first_axis,
    )
    return rod, [parameter for maker in made for parameter in maker.parameters]


def _is_solid(mass: float, about: np.ndarray) -> bool:
    return mass > 0.0 or bool(about.any())


def _why_not_slender(lines: Sequence[AboutLine], options: RodRecognition) -> str | None:
    if not all(line.is_symmetric for line in lines):
        return "between its two ball joints it is not axisymmetric"
    if not all(line.is_thin for line in lines) and not options.lock_spins:
        return f"it may spin about its line, with {sum(line.axial for line in lines):.3g} kg m^2"
    return None


def _along(leg: Leg) -> Freedom:
    """What acts on the slide, on the length l = sense q + shift."""
    (freedom,) = leg.slide.freedoms or (Freedom(),)
    shift = leg.length - leg.sense * (leg.slide.reference[0] if leg.slide.reference else 0.0)
    spring, friction = freedom.spring, freedom.friction
    if leg.sense < 0.0:
        freedom = replace(freedom, lower=-freedom.upper, upper=-freedom.lower)
        spring = None if spring is None else replace(spring, rest=negate(spring.rest))
        friction = friction and friction.reversed
    spring = None if spring is None else replace(spring, rest=add(spring.rest, Constant(shift)))
    return replace(freedom, lower=freedom.lower + shift, upper=freedom.upper + shift, spring=spring, friction=friction)


def driving(actuator: Actuator, shrinking: set[str]) -> Actuator:
    """The actuator with its ratios turned round where a length shrinks as the slide's coordinate grows."""
    drives = tuple((name, negate(ratio) if name in shrinking else ratio) for name, ratio in actuator.drives)
    return replace(actuator, drives=drives)

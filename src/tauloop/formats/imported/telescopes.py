"""Telescopic legs of an imported machine: two links on a slide with ball or universal joints.

Leg and slide become one telescopic `Rod` with the name of the slide. The motor of the slide then
drives the length. The slide must lie on the line between the two joint centers. Spins are treated
as for rods of fixed length: a leg between a universal and a ball joint is a rod with full inertia
tensor; an axisymmetric leg between two ball joints is a slender rod that does not spin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.linkage import Linkage, axis_of
from tauloop.formats.imported.rod_ends import POINT_TOLERANCE, End, end_of
from tauloop.formats.imported.rod_inertia import RodPart, rod_inertias
from tauloop.formats.options import RodRecognition
from tauloop.mechanism.expression import (
    ZERO,
    Constant,
    Expression,
    Parameter,
    add,
    multiply,
    negate,
)
from tauloop.mechanism.model import Actuator, Freedom, Joint, Rod, Telescope


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """A telescopic leg.

    Attributes:
        slide: the joint between its two links.
        lower, upper: the links at A and at B; a universal joint is at A.
        A, B: the two ends.
        sense: +1 if the slide's coordinate grows with the length, -1 if it shrinks.
        length: length at the start, m.
        line: unit vector (3,) from A to B in the frame of each link's first body.
        rotation: axes (3, 3) of the upper link's first body in the frame of the lower link's first
            body.
    """

    slide: Joint
    lower: tuple[str, ...]
    upper: tuple[str, ...]
    A: End
    B: End
    sense: float
    length: float
    line: tuple[np.ndarray, np.ndarray]
    rotation: np.ndarray

    @property
    def shift(self) -> float:
        """Length at the slide's zero coordinate, m."""
        start = self.slide.reference[0] if self.slide.reference else 0.0
        return self.length - self.sense * start


def legs(linkage: Linkage, notes: list[str]) -> list[Leg]:
    """Return the pairs of links on a slide with a ball or universal joint at each end.

    Notes state why other slides are not converted.
    """
    converted: list[Leg] = []
    for slide, pair, ends in telescopes(linkage):
        if ends[0].kind == ends[1].kind == "universal":
            notes.append(
                f"{slide.name} remains a slide: "
                "universal joints at both ends determine the spins of its links"
            )
        elif slide.name in linkage.mechanism.combined:
            notes.append(f"{slide.name} remains a slide: a coupling or loss acts on it")
        elif (leg := _leg(linkage, slide, pair, ends)) is None:
            notes.append(
                f"{slide.name} remains a slide: it does not lie on the line between the joint centers"
            )
        else:
            converted.append(leg)
    return converted


def telescopes(
    linkage: Linkage,
) -> Iterator[tuple[Joint, list[tuple[str, ...]], list[End]]]:
    """Yield (slide, links, far ends) for slides between links with ball or universal joints."""
    for slide in linkage.mechanism.joints:
        if slide.kind != "prismatic" or slide.is_cut:
            continue
        pair = [
            link
            for link in linkage.links()
            if slide.parent.body in link or slide.child.body in link
        ]
        far_ends = [_far_end(linkage, link, slide) for link in pair]
        ends = [end for end in far_ends if end is not None]
        if len(pair) == len(ends) == 2:
            yield slide, pair, ends


def _far_end(linkage: Linkage, link: Sequence[str], slide: Joint) -> End | None:
    """Return the far end of a link on a slide; None if the link has other joints."""
    others = [joint for joint in linkage.joints_out_of(link) if joint is not slide]
    if linkage.is_needed(link) or len(others) != 1:
        return None
    return end_of(linkage, link, others[0])


def _leg(
    linkage: Linkage, slide: Joint, pair: Sequence[tuple[str, ...]], ends: Sequence[End]
) -> Leg | None:
    if ends[1].kind == "universal":
        pair, ends = pair[::-1], ends[::-1]
    (lower, upper), (A, B) = pair, ends
    X_lower_upper = linkage.world[lower[0]].inverse() @ linkage.world[upper[0]]
    d = X_lower_upper.position + X_lower_upper.rotation @ B.point - A.point
    side = slide.parent if slide.parent.body in lower else slide.child
    axis = linkage.pose_in(lower, side.body).rotation @ axis_of(linkage.mechanism, slide, side)
    length = float(np.linalg.norm(d))
    tolerance = POINT_TOLERANCE * linkage.length
    if length < tolerance or np.linalg.norm(d - (d @ axis) * axis) > tolerance:
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
        line=(z, X_lower_upper.rotation.T @ z),
        rotation=X_lower_upper.rotation,
    )


def telescopic_rod(
    linkage: Linkage, leg: Leg, options: RodRecognition, notes: list[str]
) -> tuple[Rod, list[Parameter]] | None:
    """Return the rod with its parameters; None (with a note) if the leg must remain two bodies."""
    name, freedom = leg.slide.name, _length_freedom(leg)
    if freedom.lower <= 0.0 and np.isfinite(freedom.lower):
        notes.append(
            f"{name} remains a slide: "
            f"at its limit the distance between its joint centers is {freedom.lower:.3g} m"
        )
        return None
    z, z_up = leg.line
    parts = [
        RodPart(name="lower", link=leg.lower, end=leg.A.point, line=z, rotation=np.eye(3)),
        RodPart(name="upper", link=leg.upper, end=leg.B.point, line=-z_up, rotation=leg.rotation),
    ]
    inertias = rod_inertias(
        linkage,
        name,
        parts,
        leg.A,
        leg.length,
        options,
        notes,
        unconverted="slide",
        adjective="telescopic ",
    )
    if inertias is None:
        return None
    shift = leg.shift
    sign = "+" if leg.sense > 0.0 else "-"
    has_motor_offset = any(
        actuator.offset != ZERO and name in dict(actuator.drives)
        for actuator in linkage.mechanism.actuators
    )
    motor = "motor offset unchanged" if has_motor_offset else "its motor measures this length"
    notes.append(
        f"{name}: its coordinate is now the rod length = {shift:.6g} m {sign} joint coordinate; "
        f"{motor}"
    )
    rod = Rod(
        name=name,
        start=leg.A.outside,
        end=leg.B.outside,
        telescope=Telescope(reference=leg.length, freedom=freedom),
        lower=inertias.parts[0],
        upper=inertias.parts[1],
        spin=inertias.spin,
        first_axis=inertias.first_axis,
    )
    return rod, [parameter for leaves in inertias.leaves for parameter in leaves.parameters]


def _length_freedom(leg: Leg) -> Freedom:
    """Return the `Freedom` of the slide for the length l = sense q + shift."""
    (freedom,) = leg.slide.freedoms or (Freedom(),)
    shift = leg.shift
    spring, friction = freedom.spring, freedom.friction
    if leg.sense < 0.0:
        freedom = replace(freedom, lower=-freedom.upper, upper=-freedom.lower)
        spring = None if spring is None else replace(spring, rest=negate(spring.rest))
        friction = friction and friction.reversed
    spring = None if spring is None else replace(spring, rest=add(spring.rest, Constant(shift)))
    return replace(
        freedom,
        lower=freedom.lower + shift,
        upper=freedom.upper + shift,
        spring=spring,
        friction=friction,
    )


def driving(actuator: Actuator, legs: Mapping[str, Leg]) -> Actuator:
    """Return the actuator after its slides were replaced by lengths l = sense q + shift.

    A motor without an offset then measures the length (times its ratio). An offset defines the
    motor's zero on the slide, which is preserved: ratio q = sense ratio (l - shift).
    """
    drives: list[tuple[str, Expression]] = []
    offset = actuator.offset
    for name, ratio in actuator.drives:
        leg = legs.get(name)
        if leg is not None:
            ratio = negate(ratio) if leg.sense < 0.0 else ratio
            if actuator.offset != ZERO:
                offset = add(offset, multiply(ratio, Constant(-leg.shift)))
        drives.append((name, ratio))
    return replace(actuator, drives=tuple(drives), offset=offset)

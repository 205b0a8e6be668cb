"""LuGre friction in place of Coulomb friction at drive-line loads, to avoid stick events."""

from __future__ import annotations

from dataclasses import replace

from tauloop.common.errors import InputError
from tauloop.drives.machine.lines import on_the_load
from tauloop.mechanism.drive_line import DriveLine, LineFriction, LineInertia, LuGre
from tauloop.mechanism.expression import ONE, ZERO, Constant, Expression, add, divide, multiply
from tauloop.mechanism.model import Friction as MachineFriction, Mechanism

#: Ratio of damping to stiffness of the bristles, s: the bristles are well damped, and damping does
#: not dominate their force.
BRISTLE_TIME = 1e-3


def without_dry_friction(mechanism: Mechanism) -> tuple[Mechanism, tuple[Expression, ...]]:
    """Return the machine without Coulomb friction at its actuators, and the removed friction.

    The friction of coordinates that exactly one actuator drives is removed too. An actuator's
    position is p = r q, so the friction c of a coordinate q is c / |r| at the actuator.

    Returns:
        The machine, and the removed friction at each actuator, N or N m. Coulomb friction of
        passive degrees of freedom is kept.
    """
    driven = [name for actuator in mechanism.actuators for name, _ in actuator.drives]
    alone = {
        a.drives[0][0]
        for a in mechanism.actuators
        if len(a.drives) == 1 and driven.count(a.drives[0][0]) == 1
    }
    freedoms = mechanism.freedoms
    levels = []
    for actuator in mechanism.actuators:
        total = _coulomb(actuator.friction)
        coordinate, ratio = actuator.drives[0]
        if coordinate in alone and coordinate in freedoms:
            total = add(
                total, divide(_coulomb(freedoms[coordinate].friction), _size(mechanism, ratio))
            )
        levels.append(total)
    smooth = mechanism.with_freedoms(
        lambda name, freedom: (
            replace(freedom, friction=_smooth(freedom.friction)) if name in alone else freedom
        )
    )
    bare = replace(
        smooth,
        actuators=tuple(replace(a, friction=_smooth(a.friction)) for a in mechanism.actuators),
    )
    return bare, tuple(levels)


def with_bristles(
    mechanism: Mechanism, line: DriveLine, coulomb: Expression, presliding: float
) -> DriveLine:
    """Return the line with LuGre friction in place of the Coulomb friction of load and machine.

    Args:
        mechanism: the machine whose parameters the line uses.
        line: the drive line.
        coulomb: Coulomb friction of the machine at the load, N or N m.
        presliding: displacement of the load at which the bristles start to slide, m or rad.

    Raises:
        InputError: the load already has LuGre friction, or `presliding` is not positive.
    """
    if not presliding > 0:
        raise InputError.of(
            "presliding",
            f"must be positive, got {presliding:g}",
            "give a positive length or angle, such as 1e-5",
        )
    ratios, stuck = line.ratios(), on_the_load(line)

    def bristly(item: LineInertia) -> LineInertia:
        law = item.friction
        extra = coulomb if item.name == line.performance.of else ZERO
        dry = isinstance(law, LineFriction) and law.coulomb is not None
        if item.name not in stuck or not (dry or mechanism.value(extra) > 0):
            return item
        if isinstance(law, LuGre):
            what = "has LuGre friction, and the machine has Coulomb friction there"
            remedy = (
                "add the machine's Coulomb friction to the LuGre law of the drive line, and remove "
                "it from the machine file"
            )
            raise InputError.of(f"{line.name}.drive.inertias.{item.name}.lugre", what, remedy)
        level = add(law.coulomb or ZERO, extra) if law else extra
        static = add(law.static, extra) if law and law.static is not None else level
        bend = multiply(Constant(presliding), _size(mechanism, ratios[item.name]))
        stiffness = divide(level, bend)
        bristles = LuGre(
            stiffness=stiffness,
            damping=multiply(Constant(BRISTLE_TIME), stiffness),
            viscous=(law.viscous if law else None) or ZERO,
            coulomb=level,
            static=static,
            stribeck=(law.stribeck if law else None) or ONE,
        )
        return replace(item, friction=bristles)

    return replace(line, inertias=tuple(bristly(item) for item in line.inertias))


def _coulomb(friction: MachineFriction | None) -> Expression:
    return (friction.coulomb if friction is not None else None) or ZERO


def _size(mechanism: Mechanism, ratio: Expression) -> Expression:
    return ratio if mechanism.value(ratio) > 0 else multiply(Constant(-1.0), ratio)


def _smooth(friction: MachineFriction | None) -> MachineFriction | None:
    return friction and replace(friction, coulomb=None)

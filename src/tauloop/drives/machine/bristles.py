"""LuGre friction in place of Coulomb friction at drive-line loads, to avoid stick events."""

from __future__ import annotations

from dataclasses import replace

from tauloop.common.errors import InputError
from tauloop.drives.machine.lines import on_the_load
from tauloop.mechanism.drive_line import DriveLine, LineFriction, LineInertia, LuGre
from tauloop.mechanism.expression import ONE, ZERO, Constant, Expression, add, divide, multiply
from tauloop.mechanism.model import Freedom, Friction as MachineFriction, Mechanism

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
    single_drive = {
        a.drives[0][0]
        for a in mechanism.actuators
        if len(a.drives) == 1 and driven.count(a.drives[0][0]) == 1
    }
    freedoms = mechanism.freedoms
    removed = []
    for actuator in mechanism.actuators:
        total = _coulomb(actuator.friction)
        coordinate, ratio = actuator.drives[0]
        if coordinate in single_drive and coordinate in freedoms:
            friction = _coulomb(freedoms[coordinate].friction)
            total = add(total, divide(friction, _magnitude(mechanism, ratio)))
        removed.append(total)

    def smoothed(name: str, freedom: Freedom) -> Freedom:
        if name not in single_drive:
            return freedom
        return replace(freedom, friction=_without_coulomb(freedom.friction))

    smooth = replace(
        mechanism.with_freedoms(smoothed),
        actuators=tuple(
            replace(a, friction=_without_coulomb(a.friction)) for a in mechanism.actuators
        ),
    )
    return smooth, tuple(removed)


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
    ratios = line.ratios()
    load_inertias = on_the_load(line)

    def with_lugre(item: LineInertia) -> LineInertia:
        law = item.friction
        machine_friction = coulomb if item.name == line.performance.of else ZERO
        is_dry = isinstance(law, LineFriction) and law.coulomb is not None
        is_dry = is_dry or mechanism.value(machine_friction) > 0
        if item.name not in load_inertias or not is_dry:
            return item
        if isinstance(law, LuGre):
            what = "has LuGre friction, and the machine has Coulomb friction there"
            remedy = (
                "add the machine's Coulomb friction to the LuGre law of the drive line, and remove "
                "it from the machine file"
            )
            raise InputError.of(f"{line.name}.drive.inertias.{item.name}.lugre", what, remedy)
        sliding = add(law.coulomb or ZERO, machine_friction) if law else machine_friction
        static = sliding
        if law and law.static is not None:
            static = add(law.static, machine_friction)
        deflection = multiply(Constant(presliding), _magnitude(mechanism, ratios[item.name]))
        stiffness = divide(sliding, deflection)
        bristles = LuGre(
            stiffness=stiffness,
            damping=multiply(Constant(BRISTLE_TIME), stiffness),
            viscous=(law.viscous if law else None) or ZERO,
            coulomb=sliding,
            static=static,
            stribeck=(law.stribeck if law else None) or ONE,
        )
        return replace(item, friction=bristles)

    return replace(line, inertias=tuple(with_lugre(item) for item in line.inertias))


def _coulomb(friction: MachineFriction | None) -> Expression:
    return (friction.coulomb if friction is not None else None) or ZERO


def _magnitude(mechanism: Mechanism, ratio: Expression) -> Expression:
    """Return the absolute value of a ratio."""
    return ratio if mechanism.value(ratio) > 0 else multiply(Constant(-1.0), ratio)


def _without_coulomb(friction: MachineFriction | None) -> MachineFriction | None:
    return friction and replace(friction, coulomb=None)

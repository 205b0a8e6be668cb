"""Drive lines (drivetrains) of a machine's actuators: simplified and rigid variants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError
from tauloop.mechanism.drive_line import (
    Compliance,
    Connection,
    Control,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    Encoder,
    ExactBacklash,
    LineFriction,
    LineInertia,
    Motor,
    Performance,
    Pid,
    Shaft,
    SingleDrive,
)
from tauloop.mechanism.expression import (
    ONE,
    ZERO,
    Constant,
    Expression,
    ParameterTable,
    add,
    leaves,
    multiply,
)
from tauloop.mechanism.model import Actuator, Friction as MachineFriction, Mechanism


def require_lines(mechanism: Mechanism) -> None:
    """Reject a machine without drive lines.

    Raises:
        InputError: no actuator has a drive line.
    """
    if not any(actuator.drive for actuator in mechanism.actuators):
        what = f"no actuator of {mechanism.name} has a drive line"
        raise InputError.of("actuators", what, "add `drive` to its actuators (docs/drives.md)")


def with_one_motor(line: DriveLine) -> DriveLine:
    """Return the line without its slave motor; the master gets the whole output of the control.

    The inertias and connections between the slave and the load are removed as well. A line with one
    motor is returned unchanged.

    Raises:
        InputError: the master or an encoder of the control is on an inertia to remove.
    """
    drive = line.control.drive
    if not isinstance(drive, DualDrive):
        return line
    load = line.performance.of
    on = {motor.name: motor.on for motor in line.motors}
    off_load_connections = (
        connection
        for connection in line.connections
        if load not in (connection.first, connection.second)
    )
    branch = set(_paths(off_load_connections, on[drive.slave])) - {load}
    used = (line.control.encoder, line.control.speed_encoder)
    lost = [
        encoder.name for encoder in line.encoders if encoder.on in branch and encoder.name in used
    ]
    if on[drive.master] in branch:
        lost.append(drive.master)
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        what = f"{' and '.join(lost)} {verb} on the branch that ends with the slave {drive.slave}"
        raise InputError.of(
            line.name,
            what,
            "connect the master to the load without the slave's branch, and put the encoders of "
            "the control on the master's side or on the load",
        )
    return replace(
        line,
        inertias=tuple(inertia for inertia in line.inertias if inertia.name not in branch),
        connections=tuple(
            connection
            for connection in line.connections
            if not {connection.first, connection.second} & branch
        ),
        motors=tuple(m for m in line.motors if m.on not in branch and m.name != drive.slave),
        encoders=tuple(encoder for encoder in line.encoders if encoder.on not in branch),
        control=replace(line.control, drive=SingleDrive(motor=drive.master)),
    )


#: Setups of the motors of a line. "as-written": as in its file; "preloaded": the slave always pulls
#: against the master; "one": without the slave.
MOTORS = ("as-written", "preloaded", "one")


def with_motors(line: DriveLine, motors: str) -> DriveLine:
    """Return the line with its motors in one of the setups `MOTORS`, without unused parameters.

    Raises:
        InputError: there is no slave that could pull against the master, or as in `with_one_motor`.
    """
    drive = line.control.drive
    if motors == "as-written":
        return line
    if motors == "one":
        changed = with_one_motor(line)
    elif isinstance(drive, DualDrive):
        # without switching thresholds the preload is permanent
        control = replace(line.control, drive=replace(drive, switch_min=None, switch_max=None))
        changed = replace(line, control=control)
    else:
        raise InputError.of(
            "motors",
            f"{line.name} has no second motor that could pull against the first",
            "leave this option out",
        )
    unused = leaves(line) - leaves(changed)
    used = tuple(parameter for parameter in line.parameters if parameter.name not in unused)
    return replace(changed, parameters=ParameterTable(used))


def without_backlash(line: DriveLine) -> DriveLine:
    """Return the line without backlash: its contacts become shafts, which push and pull."""

    def without_gap(compliance: Compliance | None) -> Compliance | None:
        if compliance is None:
            return None
        return Shaft(stiffness=compliance.stiffness, damping=compliance.damping)

    return replace(
        line,
        connections=tuple(
            replace(connection, compliance=without_gap(connection.compliance))
            for connection in line.connections
        ),
    )


def rigid_without_dry_friction(line: DriveLine) -> DriveLine:
    """Return the line with rigid connections and without dry friction."""

    def without_dry_friction(inertia: LineInertia) -> LineInertia:
        law = inertia.friction
        if not isinstance(law, LineFriction):
            return inertia
        return replace(
            inertia, friction=LineFriction(viscous=law.viscous) if law.viscous is not None else None
        )

    return replace(
        line,
        inertias=tuple(without_dry_friction(inertia) for inertia in line.inertias),
        connections=tuple(replace(connection, compliance=None) for connection in line.connections),
    )


def with_lines(mechanism: Mechanism, lines: Iterable[DriveLine | None]) -> Mechanism:
    """Return the machine with other drive lines on its actuators, in their order."""
    pairs = zip(mechanism.actuators, lines, strict=True)
    return replace(
        mechanism, actuators=tuple(replace(actuator, drive=line) for actuator, line in pairs)
    )


def direct_line(
    actuator: Actuator, is_angular: bool, mass: float, bandwidth: float, period: float
) -> DriveLine:
    """Return the drive line of a motor that acts directly on the machine.

    It is used for an actuator without a drive line. The position loop has the gain w/2, the inner
    speed loop the gain 2 w mass; both poles of the loop are at -w if the machine behaves like this
    mass.

    Args:
        actuator: actuator that the motor replaces.
        is_angular: whether the actuator is rotary.
        mass: inertia that it moves, kg or kg m^2.
        bandwidth: bandwidth w, rad/s.
        period: sample time of the control, s.
    """
    name = actuator.name

    def proportional(gain: float) -> Pid:
        return Pid(
            gain=Constant(gain),
            integral_time=None,
            derivative_time=None,
            filter=ONE,
            limit=None,
            tracking_time=None,
        )

    return DriveLine(
        name=name,
        inertias=(LineInertia(name="load", is_rotary=is_angular, value=ZERO),),
        connections=(),
        motors=(
            Motor(
                name="motor",
                on="load",
                torque=None if np.isinf(actuator.force) else Constant(actuator.force),
            ),
        ),
        encoders=(Encoder(name="encoder", on="load"),),
        control=Control(
            encoder="encoder",
            position=proportional(bandwidth / 2),
            speed_encoder="encoder",
            speed=proportional(2 * bandwidth * mass),
            drive=SingleDrive(motor="motor"),
            sample_time=Constant(period),
        ),
        performance=Performance(of="load", band=None),
    )


def encoder_ratios(
    mechanism: Mechanism, lines: Iterable[DriveLine]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gear ratios of the encoders: their motion per motion of the actuator.

    Returns:
        Ratios of the encoders of the position loops (n_u,), and of the speed loops (n_u,). A line
        without a speed loop has the ratio of its position loop in both.
    """
    pairs = []
    for line in lines:
        on = {encoder.name: encoder.on for encoder in line.encoders}
        ratios = {name: mechanism.value(ratio) for name, ratio in line.ratios().items()}
        names = (line.control.encoder, line.control.speed_encoder or line.control.encoder)
        pairs.append([ratios[on[name]] for name in names])
    position, speed = np.array(pairs).T
    return position, speed


def on_the_load(line: DriveLine) -> tuple[str, ...]:
    """Return the names of the load and of the inertias that are rigidly connected to it."""
    rigid = (connection for connection in line.connections if connection.compliance is None)
    return tuple(_paths(rigid, line.performance.of))


def load_side_machine(mechanism: Mechanism) -> Mechanism:
    """Return the machine without drive lines, with the inertias that move rigidly with it."""
    return _with_reflected(
        mechanism, {a.name: on_the_load(a.drive) for a in mechanism.actuators if a.drive}, ()
    )


def rigid_machine(mechanism: Mechanism, *, with_dry: bool = True) -> Mechanism:
    """Return the machine with rigid drive lines, as inertia and friction of its actuators.

    An inertia that moves by r per unit of the actuator adds r^2 J, r^2 viscous and |r| coulomb.

    Args:
        mechanism: the machine.
        with_dry: whether to include Coulomb friction, which jumps where a motion reverses.
    """
    inertias: dict[str, tuple[str, ...]] = {}
    for actuator in mechanism.actuators:
        if actuator.drive:
            inertias[actuator.name] = tuple(inertia.name for inertia in actuator.drive.inertias)
    friction = ("viscous", "coulomb") if with_dry else ("viscous",)
    return _with_reflected(mechanism, inertias, friction)


def _with_reflected(
    mechanism: Mechanism, names: dict[str, tuple[str, ...]], friction: tuple[str, ...]
) -> Mechanism:
    actuators = []
    for actuator in mechanism.actuators:
        line = actuator.drive
        if line is None:
            actuators.append(actuator)
            continue
        ratios = line.ratios()
        inertia: Expression = actuator.inertia or ZERO
        actuator_friction = actuator.friction or MachineFriction()
        viscous = actuator_friction.viscous or ZERO
        coulomb = actuator_friction.coulomb or ZERO
        for item in line.inertias:
            if item.name not in names[actuator.name]:
                continue
            ratio = ratios[item.name]
            inertia = add(inertia, multiply(item.value, ratio, ratio))
            law = item.friction
            if "viscous" in friction and law is not None and law.viscous is not None:
                viscous = add(viscous, multiply(law.viscous, ratio, ratio))
            if "coulomb" in friction and law is not None and law.coulomb is not None:
                magnitude = ratio if mechanism.value(ratio) > 0 else multiply(Constant(-1.0), ratio)
                coulomb = add(coulomb, multiply(law.coulomb, magnitude))
        losses = replace(
            actuator_friction, viscous=_none_if_zero(viscous), coulomb=_none_if_zero(coulomb)
        )
        actuators.append(
            replace(
                actuator,
                inertia=_none_if_zero(inertia),
                friction=losses if losses != MachineFriction() else None,
                drive=None,
            )
        )
    return replace(mechanism, actuators=tuple(actuators))


def _none_if_zero(expression: Expression) -> Expression | None:
    return None if expression == ZERO else expression


def backlash_at_the_load(mechanism: Mechanism) -> dict[str, float]:
    """Return the backlash between (master) motor and load by actuator, m or rad at the load."""
    backlash = {}
    for actuator in mechanism.actuators:
        line = actuator.drive
        if line is None:
            continue
        ratios = {name: mechanism.value(ratio) for name, ratio in line.ratios().items()}
        drive = line.control.drive
        master = drive.master if isinstance(drive, DualDrive) else drive.motor
        motor_inertia = next(motor.on for motor in line.motors if motor.name == master)
        total = 0.0
        for connection in _paths(line.connections, motor_inertia).get(line.performance.of, ()):
            if isinstance(connection.compliance, ElasticBacklash | ExactBacklash):
                total += mechanism.value(connection.compliance.gap) / abs(ratios[connection.second])
        backlash[actuator.name] = total
    return backlash


def _paths(connections: Iterable[Connection], start: str) -> dict[str, tuple[Connection, ...]]:
    """Return the path (connections) from `start` to every inertia that it is connected to.

    The paths are in the order of their lengths (breadth-first search), beginning with `start`.
    """
    connections = tuple(connections)
    queue = [start]
    paths: dict[str, tuple[Connection, ...]] = {start: ()}
    for inertia in queue:  # the loop appends to this list
        for connection in connections:
            ends = (connection.first, connection.second)
            if inertia not in ends:
                continue
            for neighbor in ends:
                if neighbor not in paths:
                    paths[neighbor] = (*paths[inertia], connection)
                    queue.append(neighbor)
    return paths

"""A drive line as data: inertias, transmissions, compliances, motors, encoders and a control law.

Source: Canudas de Wit, Olsson, Åström and Lischinsky 1995, A new model for control of systems with
friction, for LuGre friction.
"""

from __future__ import annotations

from dataclasses import field

from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.expression import ONE, Expression, ParameterTable, divide, multiply


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFriction:
    """Friction of an inertia against the frame.

    F = (coulomb + (static - coulomb) exp(-(v/stribeck)^2)) sign(v) + viscous v with the velocity v.
    At rest the friction balances forces up to `static`.

    Attributes:
        viscous: viscous coefficient, N s/m or N m s/rad.
        coulomb: sliding friction, N or N m; None without dry friction.
        static: largest friction at rest; `coulomb` if None.
        stribeck: velocity at which the excess of sliding friction over `coulomb` has fallen to
            1 / e of `static` - `coulomb`.
    """

    viscous: Expression | None = None
    coulomb: Expression | None = None
    static: Expression | None = None
    stribeck: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LuGre:
    """Dynamic friction with presliding hysteresis (LuGre model).

    Source: Canudas de Wit, Olsson, Astrom, Lischinsky 1995, eqs. 1 to 6.

    Attributes:
        stiffness: stiffness of the bristles, sigma_0, N/m or N m/rad.
        damping: damping of the bristles, sigma_1, N s/m or N m s/rad.
        viscous: viscous coefficient, sigma_2, N s/m or N m s/rad.
        coulomb, static, stribeck: parameters of g(v) = coulomb + (static - coulomb)
            exp(-(v/stribeck)^2).
    """

    stiffness: Expression
    damping: Expression
    viscous: Expression
    coulomb: Expression
    static: Expression
    stribeck: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class LineInertia:
    """A body with one degree of freedom.

    Attributes:
        name: name in the file.
        is_rotary: whether the body rotates (rad, kg m^2) or translates (m, kg).
        value: moment of inertia or mass.
        friction: friction against the frame.
    """

    name: str
    is_rotary: bool
    value: Expression
    friction: LineFriction | LuGre | None = None

    turns = old_attribute("turns", "is_rotary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaft:
    """A spring and damper: force = stiffness D + damping dD/dt, with the deflection D."""

    stiffness: Expression
    damping: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticBacklash:
    """Backlash whose contacts are springs and dampers that only push (Modelica: ElastoBacklash)."""

    gap: Expression
    stiffness: Expression
    damping: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactBacklash:
    """A damped elastic shaft with a gap whose position is a state (Nordin, Galic, Gutman 1997)."""

    gap: Expression
    stiffness: Expression
    damping: Expression


Compliance = Shaft | ElasticBacklash | ExactBacklash


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Connection of two inertias: a transmission, then a compliance or a rigid joint.

    The deflection, measured at the second inertia, is D = ratio q_first - q_second. A force F on
    the second inertia is -ratio F on the first.

    Attributes:
        name: name in the file.
        first, second: names of the inertias.
        ratio: displacement of the second inertia per displacement of the first (gear: 1 /
            reduction; rack and pinion: the pinion's radius; ball screw: lead / (2 pi)).
        compliance: compliance between the inertias; None for a rigid connection.
    """

    name: str
    first: str
    second: str
    ratio: Expression
    compliance: Compliance | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Motor:
    """A motor that delivers the commanded torque within its limits.

    Above the rated speed the available torque falls linearly to zero at the speed limit.

    Attributes:
        name: name in the file.
        on: inertia that the motor drives.
        torque: largest torque or force; None if unlimited.
        rated_speed: speed up to which the full torque is available; None if `speed` is None.
        speed: speed at which the available torque is zero; None if unlimited.
    """

    name: str
    on: str
    torque: Expression | None = None
    rated_speed: Expression | None = None
    speed: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A measurement of position, on the motor or on the load side.

    Attributes:
        name: name in the file.
        on: inertia whose position the encoder measures.
        resolution: size of one count; None for a perfect encoder. A resolution requires a sampled
            control.
    """

    name: str
    on: str
    resolution: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pid:
    """PID with a filtered derivative: y = gain (1 + 1/(T_i s) + T_d s / (1 + s T_d / N)) u.

    Attributes:
        gain: K, the gain.
        integral_time: T_i, s; None without integral part.
        derivative_time: T_d, s; None without derivative part.
        filter: N, the filter coefficient of the derivative.
        limit: largest output; None if unlimited.
        tracking_time: anti-windup time constant with which the integral follows a limited output,
            s; given with `limit`.
    """

    gain: Expression
    integral_time: Expression | None
    derivative_time: Expression | None
    filter: Expression
    limit: Expression | None
    tracking_time: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleDrive:
    """One motor receives the whole output of the control."""

    motor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DualDrive:
    """Two motors on one load: the slave first helps to drive, then pulls against the master.

    Attributes:
        master, slave: the motors.
        torque_share: the slave's fraction of the output while both drive.
        preload: torque with which the slave pulls against the master.
        feed_forward_share: fraction of the preload that is added to the master's command.
        switch_min: relative error e_min below which the slave only pulls against the master.
        switch_max: relative error e_max above which the slave only drives. Both thresholds are None
            if the slave always pulls against the master (constant preload).
    """

    master: str
    slave: str
    torque_share: Expression
    preload: Expression
    feed_forward_share: Expression
    switch_min: Expression | None
    switch_max: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Position control with an optional inner speed loop.

    Attributes:
        encoder: encoder of the position loop.
        position: law of the position loop; its output is a torque, or a speed if there is a speed
            loop.
        speed_encoder, speed: encoder and law of the speed loop; None without it.
        drive: distribution of the output to the motors.
        sample_time: sampling period of the control, s; None for a continuous control.
    """

    encoder: str
    position: Pid
    speed_encoder: str | None
    speed: Pid | None
    drive: SingleDrive | DualDrive
    sample_time: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """The position to which the criteria refer, and the band in which it counts as settled.

    Attributes:
        of: name of the inertia with this position; on a machine, the load, which the machine
            replaces.
        band: half width of the settling band; None on a machine, where paths are evaluated, not
            steps.
    """

    of: str
    band: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveLine(ReprMixin):
    """A drive line with its control: in a file of its own, or on an actuator of a machine.

    On a machine, values are expressions of the machine's independent parameters. The inertia
    `performance.of` is then the load. Its position is that of the actuator. Its mass is zero,
    because the machine provides mass and friction.

    Attributes:
        name, description: name and description of the file or of the actuator.
        parameters: independent parameters; empty on a machine, whose table contains them.
        inertias, connections, motors, encoders: the elements.
        control: control law.
        performance: position that the criteria evaluate, and its settling band.
        file: name of the file.
    """

    name: str
    description: str = ""
    parameters: ParameterTable = field(default_factory=ParameterTable)
    inertias: tuple[LineInertia, ...]
    connections: tuple[Connection, ...]
    motors: tuple[Motor, ...]
    encoders: tuple[Encoder, ...]
    control: Control
    performance: Performance
    file: str = ""

    def inertia(self, name: str) -> LineInertia:
        """Return the inertia with this name."""
        return next(item for item in self.inertias if item.name == name)

    def ratios(self) -> dict[str, Expression]:
        """Return displacements per displacement of `performance.of`, for a rigid drive line.

        Only inertias that are connected to `performance.of` are included.
        """
        factors: dict[str, Expression] = {self.performance.of: ONE}
        pending = [self.performance.of]
        while pending:
            current = pending.pop()
            for connection in self.connections:
                # the displacement of the second inertia is ratio times that of the first
                if connection.second == current and connection.first not in factors:
                    factors[connection.first] = divide(factors[current], connection.ratio)
                    pending.append(connection.first)
                elif connection.first == current and connection.second not in factors:
                    factors[connection.second] = multiply(factors[current], connection.ratio)
                    pending.append(connection.second)
        return factors

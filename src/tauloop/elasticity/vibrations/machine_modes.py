"""Modes of a machine under its loads, with an automatic number of link modes, and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, InputError, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array, BeamMotion
from tauloop.elasticity.frame.modes import VibrationModes, natural_modes
from tauloop.elasticity.machine.loads import MachineLoads, loaded_stiffness
from tauloop.elasticity.machine.poses import (
    gravity_vector,
    mass_problems,
    require_elastic_data,
)
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.vibrations.servo_control import ServoLaw, cascade, line_law, read_gains
from tauloop.elasticity.vibrations.servo_modes import (
    ServoModes,
    ServoPlant,
    modal_rates,
    servo_modes,
    servo_plant,
    servo_rows,
)
from tauloop.mechanism.description.units import FREQUENCY, PRESSURE, quantity
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Modes of links are included up to this multiple of the highest frequency. The usual factor is 2.
#: It gives an error of 0.4 % in the tenth mode of a four-bar, the factor 4 gives 0.1 %.
LINK_MODE_FACTOR = 4.0
#: Maximum number of rounds in which the number of link modes is adapted to the highest frequency.
MAX_ROUNDS = 4
#: Largest residual of an eigenvalue equation, relative to its terms.
MAX_EIGENVALUE_RESIDUAL = 1e-6
#: Largest relative change of a frequency due to one more mode of each link and plane.
MAX_MODE_CHANGE = 1e-3
#: Largest relative change of a frequency due to shear that may be neglected.
MAX_SHEAR_CHANGE = 0.01
#: Largest relative change of a frequency due to the weight that may be neglected.
MAX_WEIGHT_CHANGE = 0.01
#: States of the motors: held by the stiffness of their drives, free, or position-controlled.
MOTOR_STATES = ("locked", "free", "servo")
#: Largest real part of a pole, relative to the slowest mode, that may be a rounding error.
GROWTH_TOLERANCE = 1e-9
#: A rigid-body mode counts as uncontrolled if the motion of the controlled motors, relative to the
#: largest, is below this value.
UNCONTROLLED_TOLERANCE = 1e-9


def read_bandwidth(text: str) -> float:
    """Return a bandwidth in rad/s; text in Hz is multiplied by 2 pi."""
    width = quantity("bandwidth", text, FREQUENCY)
    return 2.0 * np.pi * width if text.strip().endswith("Hz") else width


@dataclass(frozen=True, slots=True, kw_only=True)
class VibrationOptions(Options):
    """Number of modes, motors, and the theory of beams.

    Attributes:
        count: number of frequencies.
        link_modes: modes of each link and bending plane; default: all below four times the highest
            frequency, at least one.
        motor_state: state of the motors: locked: held by the stiffness of their drives; free: free
            to turn; servo: held by their position loops.
        shear: include shear deformation and rotary inertia of beams (Timoshenko).
        damping: damping ratio of the modes for frequency responses; default: the damping in the
            machine file.
        loaded: include the geometric stiffness of all loads; the given poses are then equilibrium
            poses of the loaded machine.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame); with `loaded`.
        weightless: neglect the weight of the machine.
        response_frequencies: frequencies of responses (Hz), as a range such as '1..200' or as a
            list; responses need a damping.
        cutting_coefficient: specific cutting force (per area of the chip) for stability lobes, such
            as '700 N/mm^2'.
        teeth: number of teeth of a milling cutter, which cuts a slot; 0 for turning.
        cutting_direction: feed direction in milling, with the spindle axis z; in turning, the
            direction in which the tool moves to make the chip thinner: x, y, z or a vector such as
            1,0,1.
        servo_gains: gains of position loops (1/s), gains of speed loops (N s/m, N m s/rad) and
            their integral times, such as '*.position=50,motor.speed=2e4'.
        bandwidth: bandwidth of the position loops without gains, such as '20 Hz' or 100 (rad/s): an
            error of the rigid machine decays as exp(-w t) without overshoot.

    Examples:
        >>> import tauloop as tl
        >>> tl.VibrationOptions(count=6, motor_state="free").motor_state
        'free'
    """

    count: int = option(10, least=1)
    link_modes: int | None = option(None, least=0)
    motor_state: str = option("locked", choices=MOTOR_STATES)
    shear: bool = option(False)
    damping: float | None = option(None, above=0)
    loaded: bool = option(False)
    wrench: str | Mapping[str, str | float] | tuple[float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    weightless: bool = option(False)
    servo_gains: str | Mapping[str, str | float | Mapping[str, str | float]] | None = option(
        None, read=str, metavar="NAME=VALUE"
    )
    response_frequencies: str | tuple[float, ...] | None = option(None, read=str, metavar="RANGE")
    cutting_coefficient: float | None = option(None, above=0, below=np.inf, unit=PRESSURE)
    teeth: int = option(0, least=0)
    cutting_direction: str | tuple[float, ...] = option("x", read=str, metavar="DIRECTION")
    bandwidth: float | None = option(
        None, read=read_bandwidth, metavar="FREQUENCY", above=0.0, below=np.inf
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineModes:
    """Modes of a machine at N poses.

    Attributes:
        settings: options of the structure.
        built: structure of the machine.
        assembled: the same structure in minimal coordinates.
        geometric: (N, n, n) geometric stiffness due to its loads; None without loads.
        modes: modes of the machine; if motors are controlled, with the real parts of the shapes.
        servo: modes of closed position loops; None if motors are not controlled.
    """

    settings: StructureOptions
    built: MachineStructure
    assembled: AssembledStructure
    geometric: Array | None
    modes: VibrationModes
    servo: ServoModes | None = None

    @property
    def stiffness(self) -> Array:
        """Stiffness (N, n, n) including the geometric stiffness of the loads."""
        K = self.assembled.stiffness
        return K if self.geometric is None else K + self.geometric


def machine_modes(
    model: Model, q: Array, options: VibrationOptions, loads: MachineLoads | None
) -> MachineModes:
    """Return the modes of a machine; the number of link modes is adapted to the highest frequency.

    Args:
        model: the machine.
        q: (N, n_q) coordinates.
        options: number of modes, motors and theory.
        loads: loads whose geometric stiffness is included; None to neglect it.

    Raises:
        InputError: the machine has no elastic data, or the file does not state the distribution of
            a mass.
    """
    is_free = options.motor_state == "free"
    laws = servo_laws(model, options)
    settings = StructureOptions(
        are_motors_held=not is_free, modes=options.link_modes, has_shear=options.shear, laws=laws
    )
    result = _modes(model, q, settings, options, loads)
    for _ in range(MAX_ROUNDS):
        max_frequency = LINK_MODE_FACTOR * float(result.modes.frequencies.max(initial=0.0))
        has_all = result.modes.frequencies.shape[1] == options.count
        if options.link_modes is not None or (has_all and max_frequency <= settings.max_frequency):
            break
        refined = replace(settings, max_frequency=max(max_frequency, 2.0 * settings.max_frequency))
        refined_counts = link_mode_counts(machine_structure(model, q[:1], refined))
        if refined_counts == link_mode_counts(result.built):
            break
        settings = refined
        result = _modes(model, q, settings, options, loads)
    return result


def _modes(
    model: Model,
    q: Array,
    settings: StructureOptions,
    options: VibrationOptions,
    loads: MachineLoads | None,
    *,
    is_estimate: bool = False,
) -> MachineModes:
    """Return the modes of a machine with a fixed number of link modes.

    Args:
        model: the machine.
        q: (N, n_q) coordinates.
        settings: options of the structure, including the number of link modes.
        options: number of modes, and damping.
        loads: loads whose geometric stiffness is included; None to neglect it.
        is_estimate: see `loaded_stiffness`.

    Raises:
        InputError: the machine has no elastic data, or the file does not state the distribution of
            a mass.
    """
    built = machine_structure(model, q, settings)
    are_motors_held = settings.are_motors_held
    if settings.laws is None:
        require_elastic_data(model.mechanism, built, are_motors_held=are_motors_held)
    InputError.raise_if_any(mass_problems(built, model.mechanism.file))
    assembled = assemble(built.structure)
    geometric = None
    if loads is not None:
        geometric = loaded_stiffness(built, assembled, loads, is_estimate=is_estimate)
    servo = None
    if settings.laws is None:
        modes = natural_modes(
            assembled, options.count, geometric=geometric, may_be_free=not are_motors_held
        )
    else:
        require_controlled(assembled, built)
        plant = servo_plant(assembled, built.lengths, built.drives, geometric)
        rates = _rates(model.mechanism, options, plant)
        servo = servo_modes(plant, options.count, rates)
        modes = VibrationModes(frequencies=servo.frequencies, shapes=servo.shapes.real, free=0)
    return MachineModes(
        settings=settings,
        built=built,
        assembled=assembled,
        geometric=geometric,
        modes=modes,
        servo=servo,
    )


def servo_laws(model: Model, options: VibrationOptions) -> dict[str, ServoLaw] | None:
    """Return the control laws by actuator; None if motors are not controlled.

    Raises:
        InputError: gains are missing or wrong, or given for motors that are not controlled.
    """
    mechanism = model.mechanism
    if options.motor_state != "servo":
        for name, value in (("servo_gains", options.servo_gains), ("bandwidth", options.bandwidth)):
            if value is not None:
                what = f"motors are {options.motor_state}, not controlled"
                raise InputError.of(name, what, f"set `motor_state` to servo, or omit `{name}`")
        return None
    gains = read_gains(mechanism, options.servo_gains)
    laws: dict[str, ServoLaw] = {}
    masses = np.zeros(len(mechanism.actuators))
    if options.bandwidth is not None:
        q = model.assembly.q
        at = model.actuator_position(q)
        masses = np.diagonal(np.atleast_2d(model.actuators.mass_matrix(at, start=q)))
    problems = Problems()
    for actuator, mass in zip(mechanism.actuators, masses, strict=True):
        motor_gains = dict(gains.get(actuator.name, {}))
        if actuator.drive is not None:
            laws[actuator.name] = line_law(actuator.drive.control, mechanism.value)
            continue
        if options.bandwidth is not None:
            motor_gains.setdefault("position", 0.5 * options.bandwidth)
            motor_gains.setdefault("speed", 2.0 * options.bandwidth * float(mass))
        missing = [gain for gain in ("position", "speed") if gain not in motor_gains]
        if missing:
            what = f"the motor is controlled, but its gains are missing: {', '.join(missing)}"
            remedy = (
                f"give servo_gains such as {actuator.name}.position=50,{actuator.name}.speed=2e4, "
                "a `bandwidth`, or a drive line with `control` in the file"
            )
            problems.add(f"actuators.{actuator.name}", what, remedy)
            continue
        laws[actuator.name] = cascade(
            motor_gains["position"], motor_gains["speed"], motor_gains.get("integral_time")
        )
    InputError.raise_if_any(problems)
    return laws


def _rates(mechanism: Mechanism, options: VibrationOptions, plant: ServoPlant) -> Array | None:
    """Return 2 ζ ω (N, m) of the modes with free motors; None without a damping."""
    if options.damping is not None:
        return modal_rates(plant, options.damping)
    if mechanism.damping is None:
        return None
    ratios, loss_factor = stated_damping(mechanism, plant.squared.shape[1])
    if ratios is None:
        ratios = np.array([0.5 * float(loss_factor or 0.0)])
    return modal_rates(plant, ratios)


def stated_damping(mechanism: Mechanism, count: int) -> tuple[Array | None, float | None]:
    """Return the damping ratios (count,) of a machine file, or its loss factor.

    Raises:
        InputError: the file states no damping.
    """
    stated = mechanism.damping
    if stated is None:
        what = "neither the machine file nor the call states a damping"
        remedy = "give `damping: {ratio: 0.02}` in the file, or damping=0.02 in the call"
        raise InputError.of("damping", what, remedy, file=mechanism.file)
    if stated.loss_factor is not None:
        return None, mechanism.value(stated.loss_factor)
    ratios = [mechanism.value(ratio) for ratio in stated.ratios]
    ratios += [ratios[-1]] * max(count - len(ratios), 0)
    return np.array(ratios[:count]), None


def require_controlled(assembled: AssembledStructure, built: MachineStructure) -> None:
    """Check that every rigid-body mode moves a controlled motor.

    Raises:
        AssemblyError: a rigid-body mode moves no controlled motor.
    """
    free = assembled.mechanisms
    if not free.shape[-1]:
        return
    rows, _, _ = servo_rows(assembled, built.lengths, built.drives)
    motor_motions = rows @ free / np.linalg.norm(rows, axis=-1)[..., None]
    motors, modes = motor_motions.shape[1:]
    sigma = np.linalg.svd(motor_motions, compute_uv=False)
    if motors < modes or np.any(sigma[:, -1] < UNCONTROLLED_TOLERANCE * sigma[:, 0]):
        assembled.require_no_mechanism()


def link_mode_counts(built: MachineStructure) -> dict[str, tuple[int, int]]:
    """Return the number of modes of each elastic link in its two bending planes."""
    counts = {}
    for element in built.structure.elements:
        if element.beam is not None:
            modes = element.beam.mode_counts
            counts[element.name] = (modes[BeamMotion.BEND_XY], modes[BeamMotion.BEND_XZ])
    return counts


def mode_diagnostics(
    model: Model,
    q: Array,
    options: VibrationOptions,
    result: MachineModes,
    loads: MachineLoads | None,
) -> Iterator[Diagnostic]:
    """Yield diagnostics: the residual, and the effects of weight, link modes and shear.

    Each neglected effect is measured by the change of the frequencies at the first pose.

    Args:
        model: the machine.
        q: (N, n_q) coordinates.
        options: number of modes, motors and theory.
        result: modes of the machine.
        loads: see `machine_modes`.
    """
    modes, settings = result.modes, result.settings
    if result.servo is None:
        yield _residual(result)
    else:
        yield loop_stability(result.servo)
    reference = modes.frequencies[0, modes.free :]

    def largest_change(compared: VibrationModes) -> float:
        values = compared.frequencies[0, compared.free :]
        shared = min(len(values), len(reference))
        return float(np.nanmax(np.abs(values[:shared] / reference[:shared] - 1.0), initial=0.0))

    def change(other: StructureOptions) -> float:
        try:
            return largest_change(_modes(model, q[:1], other, options, loads).modes)
        except AssemblyError:
            # The machine buckles, so that a frequency is zero and its relative change is 1.
            return 1.0

    if loads is None and not modes.free:
        weight = MachineLoads(gravity=gravity_vector(model.mechanism), wrench=np.zeros(6))
        with_weight = _modes(model, q[:1], settings, options, weight, is_estimate=True)
        yield diagnostic(
            "largest change of a natural frequency due to weight",
            largest_change(with_weight.modes),
            at_most=MAX_WEIGHT_CHANGE,
            advice="set `loaded` to include the weight",
        )
    counts = link_mode_counts(result.built).values()
    link_modes = max((max(pair) for pair in counts), default=0)
    if link_modes:
        yield diagnostic(
            "change of a frequency by one more mode of each link",
            change(replace(settings, modes=link_modes + 1)),
            at_most=MAX_MODE_CHANGE,
            advice="increase `link_modes`, or omit it for an automatic choice",
        )
    if not settings.has_shear and link_modes:
        yield diagnostic(
            "change of a frequency by shear of the links",
            change(replace(settings, has_shear=True)),
            at_most=MAX_SHEAR_CHANGE,
            advice="set `shear` to include it",
        )


def loop_stability(servo: ServoModes) -> Diagnostic:
    """Return a diagnostic of the growth rate of the closed loops' fastest growing motion."""
    slowest = np.nanmin(np.abs(servo.poles), initial=np.inf)
    rounding = GROWTH_TOLERANCE * (slowest if np.isfinite(slowest) else 1.0)
    growth = float(servo.growth.max())
    return diagnostic(
        "growth rate of the position control loops, 1/s",
        growth if growth > rounding else min(growth, 0.0),
        at_most=0.0,
        advice="the loops are unstable: reduce the gains of the speed loops, or add damping",
    )


def _residual(result: MachineModes) -> Diagnostic:
    """Return a diagnostic of the residual of K x = ω² M x, relative to the inertial term."""
    modes = result.modes
    elastic = modes.shapes[:, :, modes.free :]
    squared = (modes.angular[:, None, modes.free :]) ** 2
    inertial = result.assembled.mass @ elastic * squared
    residual = np.linalg.norm(result.stiffness @ elastic - inertial, axis=1)
    scale = np.linalg.norm(inertial, axis=1)
    return diagnostic(
        "residual of the eigenvalue equations",
        (residual / scale).max(initial=0.0),
        at_most=MAX_EIGENVALUE_RESIDUAL,
        advice="check stiffnesses and masses that differ by many orders of magnitude",
    )

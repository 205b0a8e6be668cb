"""Modes of a machine with enough modes of its links, under its loads, and checks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.elasticity.assembled import AssembledStructure, assemble
from tauloop.elasticity.beams import Array, BeamMotion
from tauloop.elasticity.machine_loads import MachineLoads, loaded_stiffness
from tauloop.elasticity.machine_poses import (
    gravity_vector,
    mass_problems,
    require_elastic_data,
)
from tauloop.elasticity.machine_structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.modes import VibrationModes, natural_modes
from tauloop.elasticity.preload import preload_stiffness
from tauloop.elasticity.statics import gravity_load
from tauloop.model import Model

#: Modes of links are included up to this multiple of the highest frequency. Twice is the usual
#: choice; between clamped ends it leaves 0.4 % in the tenth mode of a four-bar, four times 0.1 %.
LINK_MODE_FACTOR = 4.0
#: Rounds in which the modes of links follow the highest frequency.
MAX_ROUNDS = 4
#: Largest residual of an eigenvalue equation, relative to its terms.
MAX_RESIDUAL = 1e-6
#: Largest relative change of a frequency by one more mode of each link and plane.
MAX_MODE_CHANGE = 1e-3
#: Largest relative change of a frequency by shear that may be left out.
MAX_SHEAR_CHANGE = 0.01
#: Largest relative change of a frequency by the weight that may be left out.
MAX_WEIGHT_CHANGE = 0.01
#: What motors do: held by the stiffness of their drives, or free to turn.
MOTOR_STATES = ("locked", "free")


@dataclass(frozen=True, slots=True, kw_only=True)
class VibrationOptions(Options):
    """Number of modes, motors, and the theory of beams.

    Attributes:
        count: number of frequencies.
        link_modes: modes of each link and bending plane; default: all below four times the highest
            frequency, at least one.
        motor_state: locked: held by the stiffness of their drives; free: free to turn.
        shear: include shear and rotary inertia of beams (Timoshenko).
        damping: damping ratio of the modes for frequency responses; default: that of the machine
            file.
        loaded: include the geometric stiffness of weight and wrench; the poses are then those of the
            loaded machine.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame); with `loaded`.
        weightless: leave the weight of the machine out.

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineModes:
    """Modes of a machine at N poses.

    Attributes:
        settings: how the machine became a structure.
        built: the machine.
        assembled: its structure in minimal coordinates.
        geometric: (N, n, n) geometric stiffness of its loads; None without loads.
        modes: its modes.
    """

    settings: StructureOptions
    built: MachineStructure
    assembled: AssembledStructure
    geometric: Array | None
    modes: VibrationModes

    @property
    def stiffness(self) -> Array:
        """Stiffness (N, n, n) with that of the loads."""
        K = self.assembled.stiffness
        return K if self.geometric is None else K + self.geometric


def machine_modes(
    model: Model, q: Array, options: VibrationOptions, loads: MachineLoads | None
) -> MachineModes:
    """Return the modes of a machine, with the modes of links that the highest frequency needs.

    Args:
        model: the machine.
        q: (N, n_q) coordinates.
        options: number of modes, motors and theory.
        loads: loads whose geometric stiffness is included; None for none.

    Raises:
        InputError: the machine has no elastic data, or the file does not state where a mass is.
    """
    is_free = options.motor_state == "free"
    settings = StructureOptions(
        are_motors_held=not is_free, modes=options.link_modes, has_shear=options.shear
    )
    result = _modes(model, q, settings, options.count, loads)
    for _ in range(MAX_ROUNDS):
        below = LINK_MODE_FACTOR * float(result.modes.frequencies.max(initial=0.0))
        has_all = result.modes.frequencies.shape[1] == options.count
        if options.link_modes is not None or (has_all and below <= settings.below):
            break
        wanted = replace(settings, below=max(below, 2.0 * settings.below))
        if link_mode_counts(machine_structure(model, q[:1], wanted)) == link_mode_counts(
            result.built
        ):
            break
        settings = wanted
        result = _modes(model, q, settings, options.count, loads)
    return result


def _modes(
    model: Model, q: Array, settings: StructureOptions, count: int, loads: MachineLoads | None
) -> MachineModes:
    """Return the modes of a machine with stated modes of its links.

    Raises:
        InputError: the machine has no elastic data, or the file does not state where a mass is.
    """
    built = machine_structure(model, q, settings)
    are_motors_held = settings.are_motors_held
    require_elastic_data(model.mechanism, built, are_motors_held=are_motors_held)
    InputError.raise_if_any(mass_problems(built, model.mechanism.file))
    assembled = assemble(built.structure)
    geometric = None if loads is None else loaded_stiffness(built, assembled, loads)
    modes = natural_modes(assembled, count, geometric=geometric, may_be_free=not are_motors_held)
    return MachineModes(
        settings=settings, built=built, assembled=assembled, geometric=geometric, modes=modes
    )


def link_mode_counts(built: MachineStructure) -> dict[str, tuple[int, int]]:
    """Return the number of modes of each elastic link in its two bending planes."""
    counts = {}
    for element in built.structure.elements:
        if element.beam is not None:
            modes = element.beam.mode_counts
            counts[element.name] = (modes[BeamMotion.BEND_XY], modes[BeamMotion.BEND_XZ])
    return counts


def mode_diagnostics(
    model: Model, q: Array, result: MachineModes, loads: MachineLoads | None
) -> Iterator[Diagnostic]:
    """Yield the residual, and by how much what is left out changes frequencies at the first pose.

    Args:
        model: the machine.
        q: (N, n_q) coordinates.
        result: its modes.
        loads: as for `machine_modes`.
    """
    modes, settings = result.modes, result.settings
    yield _residual(result)
    own = modes.frequencies[0, modes.free :]
    count = modes.frequencies.shape[1]

    def largest_change(compared: VibrationModes) -> float:
        values = compared.frequencies[0, compared.free :]
        return float(np.abs(values / own - 1.0).max(initial=0.0))

    def change(other: StructureOptions) -> float:
        try:
            return largest_change(_modes(model, q[:1], other, count, loads).modes)
        except AssemblyError:  # the machine buckles: a frequency is zero
            return 1.0

    if loads is None and not modes.free:
        assembled = assemble(machine_structure(model, q[:1], settings).structure)
        gravity = gravity_vector(model.mechanism)
        load = gravity_load(assembled, gravity)
        displacement = np.asarray(np.linalg.solve(assembled.stiffness, load[..., None]))[..., 0]
        geometric = preload_stiffness(assembled, displacement, gravity)
        yield diagnostic(
            "change of a frequency by the weight",
            largest_change(natural_modes(assembled, count, geometric=geometric)),
            at_most=MAX_WEIGHT_CHANGE,
            advice="set `loaded` to include the weight",
        )
    most = max((max(pair) for pair in link_mode_counts(result.built).values()), default=0)
    if most:
        yield diagnostic(
            "change of a frequency by one more mode of each link",
            change(replace(settings, modes=most + 1)),
            at_most=MAX_MODE_CHANGE,
            advice="give more modes of each link, or leave `link_modes` out",
        )
    if not settings.has_shear and most:
        yield diagnostic(
            "change of a frequency by shear of the links",
            change(replace(settings, has_shear=True)),
            at_most=MAX_SHEAR_CHANGE,
            advice="set `shear` to include it",
        )


def _residual(result: MachineModes) -> Diagnostic:
    """Return the residual of K x = ω² M x, relative to the largest term."""
    modes = result.modes
    elastic = modes.shapes[:, :, modes.free :]
    squared = (modes.angular[:, None, modes.free :]) ** 2
    inertial = result.assembled.mass @ elastic * squared
    residual = np.linalg.norm(result.stiffness @ elastic - inertial, axis=1)
    scale = np.linalg.norm(inertial, axis=1)
    return diagnostic(
        "residual of the eigenvalue equations",
        (residual / scale).max(initial=0.0),
        at_most=MAX_RESIDUAL,
        advice="check stiffnesses and masses that differ by many orders of magnitude",
    )

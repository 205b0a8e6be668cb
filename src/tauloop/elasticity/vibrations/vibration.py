"""Natural frequencies, mode shapes and frequency responses of a machine."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import channels, numbered, quantity_over, several
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, provenance
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.statics import energy_shares
from tauloop.elasticity.machine.loads import MachineLoads, machine_loads
from tauloop.elasticity.machine.poses import PoseInput, machine_coordinates, rigid_parts
from tauloop.elasticity.vibrations.machine_modes import (
    MachineModes,
    VibrationOptions as VibrationOptions,
    link_mode_counts,
    machine_modes,
    mode_diagnostics,
)
from tauloop.elasticity.vibrations.responses import (
    FrequencyResponses,
    chosen_damping,
    frequency_responses,
    read_frequencies,
    tool_responses,
)
from tauloop.elasticity.vibrations.servo_modes import ServoModes
from tauloop.elasticity.vibrations.stability_lobes import (
    Direction,
    StabilityLobes,
    chatter_frequencies,
    milling_lobes,
    turning_lobes,
    unit_direction,
)
from tauloop.mechanism.description.units import PRESSURE, quantity
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Feed and spindle count as parallel if the sine of the angle between them is below this value.
MIN_SINE = 1e-6
#: Note on the frequencies of a machine with free motors.
FREE_NOTE = "gravity is neglected, because a machine with free motors would fall or swing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vibration(Result):
    """The lowest k modes of a machine at N poses.

    Attributes:
        model: the machine.
        options: number of modes, motors and theory.
        q: (N, n_q) coordinates of the machine.
        platform: (N, n) positions of the platform.
        frequency: (N, k) natural frequencies, Hz; zero for rigid-body modes.
        free: number of rigid-body modes (free motions), which have the frequency zero.
        clusters: groups of modes (counted from 1) with almost the same frequency at the first pose;
            within a group, single mode shapes are sensitive to small changes.
        bodies: names of the bodies and nodes.
        body_shapes: (N, k, b, 6) twists of the bodies' origins in the axes of the base, with unit
            modal mass.
        tool_shapes: (N, k, 6) twists of the tool.
        items: names of the s elastic items.
        shares: (N, k, s) fraction of each mode's elastic energy in each item.
        link_modes: number of modes of each elastic link in its two bending planes.
        modal: the structure in minimal coordinates, and its modes.
        shapes: (N, n, k) mode shapes in minimal coordinates.
        damping_ratio: (N, k) damping ratios of the modes with closed position loops; None if motors
            are not controlled. With closed loops, mode shapes are complex; the shapes here are the
            real parts at the phase of the largest motion.
        responses: responses at the frequencies of the options; None if the options state none.
        lobes: stability lobes; None if the options state no cutting coefficient.
        masses: masses of elastic links as specified, and masses of their sections and fittings.
        rigid: names of the rigid parts.
        notes: assumptions about this machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = ("frequency", "mode", "pose", "position")
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: VibrationOptions = field(metadata=json_keys(motor_state="motor_state"))
    q: np.ndarray = field(metadata=OMITTED)
    platform: np.ndarray = field(
        metadata=channels("pose", port="model.platform.ports.position", name="position")
    )
    frequency: np.ndarray = field(
        metadata=json_keys("frequency_Hz")
        | several(
            quantity_over("pose", "mode", unit="Hz"), numbered("mode", axis=1), numbered("pose")
        )
    )
    free: int
    clusters: tuple[tuple[int, ...], ...]
    bodies: tuple[str, ...]
    body_shapes: np.ndarray
    tool_shapes: np.ndarray
    items: tuple[str, ...]
    shares: np.ndarray
    link_modes: dict[str, tuple[int, int]]
    modal: MachineModes = field(metadata=OMITTED)
    shapes: np.ndarray = field(metadata=OMITTED)
    damping_ratio: np.ndarray | None = field(metadata=json_keys(nullable=True))
    responses: FrequencyResponses | None
    lobes: StabilityLobes | None
    masses: tuple[ElementMass, ...]
    rigid: tuple[str, ...]
    notes: tuple[str, ...]

    def to_csv(self) -> str:
        """Return a CSV text: the frequency of each mode, and its elastic energy in each item."""
        heads = [f"energy.{name}" for name in self.items]
        rows: list[tuple[object, ...]] = []
        for pose, frequency in enumerate(self.frequency):
            modes = zip(frequency.tolist(), self.shares[pose].tolist(), strict=True)
            rows += [(pose + 1, k, value, *energy) for k, (value, energy) in enumerate(modes, 1)]
        return csv_text(("pose", "mode", "frequency [Hz]", *heads), rows)

    def tool_response(
        self,
        frequencies: object,
        *,
        damping: object | None = None,
        loss_factor: float | None = None,
    ) -> np.ndarray:
        """Return the complex response (N, f, 6, 6) of the tool's twist to harmonic wrenches.

        Modes above the calculated ones contribute their static response.

        Args:
            frequencies: (f,) frequencies of the wrenches, Hz, or a range such as ``1..200``.
            damping: damping ratios: a number for all modes, or a number for each mode; by default
                the ratios of the options or the machine file. With position loops, they apply to the
                modes with free motors.
            loss_factor: loss factor of all stiffnesses, instead of damping ratios.

        Raises:
            InputError: neither the call nor the file states a damping.
        """
        ratios, loss_factor = self._damping(damping, loss_factor)
        built, assembled = self.modal.built, self.modal.assembled
        motion = assembled.point_motion(built.tool_body, built.tool_point)
        values = read_frequencies(frequencies)
        return tool_responses(self.modal, motion, values, ratios, loss_factor)

    def frequency_responses(
        self,
        frequencies: object,
        *,
        damping: object | None = None,
        loss_factor: float | None = None,
    ) -> FrequencyResponses:
        """Return the responses of tool and encoders; for the arguments see `tool_response`.

        Raises:
            InputError: neither the call nor the file states a damping.
        """
        ratios, loss_factor = self._damping(damping, loss_factor)
        return frequency_responses(
            self.model.mechanism, self.modal, read_frequencies(frequencies), ratios, loss_factor
        )

    def stability_lobes(
        self,
        cutting_coefficient: float | str,
        *,
        teeth: int = 0,
        direction: Direction = "x",
        force_direction: Direction | None = None,
        axis: Direction = "z",
        radial_ratio: float = 0.3,
        start_angle: float = 0.0,
        exit_angle: float = np.pi,
        damping: object | None = None,
        loss_factor: float | None = None,
    ) -> StabilityLobes:
        """Return the depth of cut at which the machine begins to chatter, over the spindle speed.

        The workpiece is rigid. With `teeth` > 0 the process is milling with averaged directional
        factors (zero-order solution of Altintas and Budak). Period-doubling (flip) lobes are not
        calculated, because they depend on the change of these factors within a revolution. They
        lower the limit of cuts with small immersion. Turning has constant factors and no such
        lobes.

        Args:
            cutting_coefficient: force per area of the chip, N/m^2 or a string such as '700 N/mm^2';
                in milling, the tangential force.
            teeth: number of teeth of a milling cutter; 0 for turning with a single edge.
            direction: in turning, the direction in which the tool moves to make the chip thinner;
                in milling, the feed. An axis name or a vector (3,).
            force_direction: direction of the force on the tool in turning; default: `direction`.
            axis: axis of the milling cutter, which rotates clockwise seen from its end.
            radial_ratio: radial force over tangential force in milling.
            start_angle, exit_angle: angles at which a tooth enters and leaves the workpiece, from
                the normal of the feed towards the feed, rad; default: a slot.
            damping, loss_factor: see `tool_response`.

        Raises:
            InputError: there are several poses, no damping is given, or a value is wrong.
        """
        coefficient = _cutting_coefficient(cutting_coefficient)
        natural = self.frequency[0, self.free :]
        natural = natural[np.isfinite(natural)]
        if len(self.frequency) > 1:
            what = f"there are {len(self.frequency)} poses; stability is computed at a single pose"
            raise InputError.of("poses", what, "compute the modes at one pose")
        if not len(natural):
            what = "the machine has no elastic mode with mass"
            raise InputError.of("poses", what, "give a part of the machine a finite stiffness")
        frequency = chatter_frequencies(natural)
        tool = self.tool_response(frequency, damping=damping, loss_factor=loss_factor)
        response = tool[0, :, :3, :3]
        feed = unit_direction("direction", direction)
        if not teeth:
            force = feed
            if force_direction is not None:
                force = unit_direction("force_direction", force_direction)
            return turning_lobes(frequency, response, coefficient, feed, force)
        spindle = unit_direction("axis", axis)
        normal = np.cross(spindle, feed)
        if np.linalg.norm(normal) < MIN_SINE:
            what = "the feed is parallel to the spindle axis"
            raise InputError.of("direction", what, "give another direction")
        normal /= np.linalg.norm(normal)
        plane = np.stack([np.cross(normal, spindle), normal])
        return milling_lobes(
            frequency,
            plane @ response @ plane.T,
            coefficient,
            teeth,
            radial_ratio=radial_ratio,
            start_angle=start_angle,
            exit_angle=exit_angle,
        )

    def _damping(
        self, damping: object | None, loss_factor: float | None
    ) -> tuple[np.ndarray | None, float | None]:
        """Return the damping of the call, or of the options, or of the machine file."""
        if damping is None and loss_factor is None:
            damping = self.options.damping
        return chosen_damping(self.model.mechanism, self.frequency.shape[1], damping, loss_factor)

    @property
    def servo(self) -> ServoModes | None:
        """Closed position loops and their complex modes; None if motors are not controlled."""
        return self.modal.servo


def _cutting_coefficient(value: float | str) -> float:
    """Return a force per area, N/m^2.

    Raises:
        InputError: the value is not positive and finite.
    """
    if isinstance(value, str):
        number = quantity("cutting_coefficient", value, PRESSURE)
    else:
        number = float(value)
    if not (number > 0.0 and np.isfinite(number)):
        what = f"must be positive and finite, got {number:g}"
        raise InputError.of("cutting_coefficient", what, "give a positive number, N/m^2")
    return number


@keywords(VibrationOptions)
@solving(PoseError)
def vibration(
    machine: MachineSource,
    poses: PoseInput = None,
    options: VibrationOptions | None = None,
    *,
    actuators: object | None = None,
    motion: str | Path | None = None,
) -> Vibration:
    """Return the natural frequencies and mode shapes of a machine.

    Links are reduced to their ends and fixed-end modes (Craig-Bampton). Without ``loaded``,
    frequencies do not include the weight; a diagnostic warns if the weight changes a frequency by
    more than 1 %.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform; by default the reference pose. A single pose by names, such as
            ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: number of modes, motors and theory.
        actuators: positions of the actuators of one pose, instead of poses of the platform.
        motion: table with ``position.NAME`` of the platform, instead of poses: up to 50 of its
            rows, evenly spaced.

    Raises:
        InputError: the machine has no elastic data, or the file does not state the distribution of
            a mass.
        AssemblyError: a part can move without any deformation although motors are locked, or loads
            exceed the buckling load.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> print(f"{tl.vibration(machine).frequency[0, 0]:.1f} Hz")
        251.6 Hz
    """
    model, options = modeled(machine), options or VibrationOptions()
    q, limit_diagnostics = machine_coordinates(model, poses, actuators, motion)
    loads = machine_loads(model.mechanism, options)
    modal = machine_modes(model, q, options, loads)
    result = _result(model, options, q, modal, loads, limit_diagnostics)
    if options.cutting_coefficient is None:
        return result
    lobes = result.stability_lobes(
        options.cutting_coefficient, teeth=options.teeth, direction=options.cutting_direction
    )
    return replace(result, lobes=lobes)


def _result(
    model: Model,
    options: VibrationOptions,
    q: Array,
    modal: MachineModes,
    loads: MachineLoads | None,
    limit_diagnostics: tuple[Diagnostic, ...],
) -> Vibration:
    """Return the public result from the modes of a machine, without stability lobes."""
    built, assembled, modes = modal.built, modal.assembled, modal.modes
    shapes = modes.shapes
    is_free = options.motor_state == "free" and loads is None
    bodies = tuple(body.name for body in built.structure.bodies)
    twists = [np.moveaxis(assembled.body_motion[name] @ shapes, -1, 1) for name in bodies]
    at_tool = assembled.point_motion(built.tool_body, built.tool_point)
    items, shares = energy_shares(assembled, shapes)
    return Vibration(
        model=model,
        options=options,
        q=q,
        platform=model.platform_position(q),
        frequency=modes.frequencies,
        free=modes.free,
        clusters=tuple(_numbered(group) for group in modes.clusters()),
        bodies=bodies,
        body_shapes=np.stack(twists, axis=2),
        tool_shapes=np.moveaxis(at_tool @ shapes, -1, 1),
        items=items,
        shares=shares,
        link_modes=link_mode_counts(built),
        modal=modal,
        shapes=shapes,
        damping_ratio=None if modal.servo is None else modal.servo.damping_ratio,
        responses=_responses(model.mechanism, modal, options),
        lobes=None,
        masses=built.masses,
        rigid=rigid_parts(model.mechanism, built),
        notes=(*built.notes, FREE_NOTE) if is_free else built.notes,
        diagnostics=(
            *mode_diagnostics(model, q, options, modal, loads),
            *limit_diagnostics,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options=_stated_options(options, loads),
            inputs={"machine": model.mechanism.name, "poses": len(q)},
        ),
    )


def _responses(
    mechanism: Mechanism, modal: MachineModes, options: VibrationOptions
) -> FrequencyResponses | None:
    """Return the frequency responses that the options request; None if they request none."""
    if options.response_frequencies is None:
        return None
    values = read_frequencies(options.response_frequencies)
    count = modal.modes.frequencies.shape[1]
    ratios, loss = chosen_damping(mechanism, count, options.damping, None)
    return frequency_responses(mechanism, modal, values, ratios, loss)


def _stated_options(options: VibrationOptions, loads: MachineLoads | None) -> dict[str, object]:
    """Return the options for the provenance of a result."""
    return {
        "count": options.count,
        "link_modes": options.link_modes,
        "motor_state": options.motor_state,
        "shear": options.shear,
        "damping": options.damping,
        "response_frequencies": options.response_frequencies,
        "loaded": options.loaded,
        "wrench": None if loads is None else loads.wrench.tolist(),
        "weightless": options.weightless,
    }


def _numbered(group: tuple[int, ...]) -> tuple[int, ...]:
    """Return the mode numbers, counted from 1, of mode indices."""
    return tuple(i + 1 for i in group)

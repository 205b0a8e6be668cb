"""Natural frequencies, mode shapes and frequency responses of a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable, columns
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

#: Sine of the angle of feed and spindle below which they are parallel.
MIN_SINE = 1e-6
#: Note on frequencies of a machine whose motors turn freely.
FREE_NOTE = "gravity is left out: free motors would fall or swing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vibration(Result):
    """The lowest k modes of a machine at N poses.

    Attributes:
        model: the machine.
        options: number of modes, motors and theory.
        q: (N, n_q) coordinates of the machine.
        platform: (N, n) positions of the platform.
        frequency: (N, k) natural frequencies, Hz; zero for free motions.
        free: number of free motions, which have the frequency zero.
        clusters: groups of modes (counted from one) with almost the same frequency at the first
            pose; inside a group, shapes are not determined.
        bodies: names of the bodies and nodes.
        body_shapes: (N, k, b, 6) twists of the bodies' origins in the axes of the base, with unit
            modal mass.
        tool_shapes: (N, k, 6) twists of the tool.
        items: names of the s elastic items.
        shares: (N, k, s) part of each mode's elastic energy that each item has.
        link_modes: modes of each elastic link: one number for each bending plane.
        modal: the structure in minimal coordinates, and its modes.
        shapes: (N, n, k) its coordinates in the modes.
        damping_ratio: (N, k) of the modes of closed position loops; None for other motors. Their
            shapes are complex; those here are the real parts, at the largest motion.
        responses: responses at the frequencies of the options; None without these.
        lobes: limits of the depth of cut; None without a cutting coefficient in the options.
        masses: stated masses of elastic links, and those of their parts.
        rigid: names of the parts that count as rigid.
        notes: assumptions about this machine.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: VibrationOptions = field(metadata=json_keys(motor_state="motor_state"))
    q: np.ndarray = field(metadata=OMITTED)
    platform: np.ndarray
    frequency: np.ndarray = field(metadata=json_keys("frequency_Hz"))
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

    def variables(self) -> Iterator[Variable]:
        """Return frequencies and the tool's motion in each mode, over poses and modes."""
        port = self.model.platform.ports.position
        yield Variable(name="frequency", values=self.frequency, over=("pose", "mode"), unit="Hz")
        yield Variable(
            name="mode", values=np.arange(1, self.frequency.shape[1] + 1), over=("mode",)
        )
        yield Variable(name="pose", values=np.arange(1, len(self.frequency) + 1), over=("pose",))
        yield from columns("position", port.columns, port.units, self.platform, ("pose",))

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
        """Return the response (N, f, 6, 6) of the tool's twist to harmonic wrenches, complex.

        The modes that were not calculated answer statically.

        Args:
            frequencies: (f,) of the wrenches, Hz, or a range such as ``1..200``.
            damping: ratios of the modes, one for all or one for each; by default that of the
                options, or those of the machine file. With position loops, they are those of the
                modes with free motors.
            loss_factor: of all stiffnesses, in place of ratios.

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
        """Return the responses of tool and encoders; the arguments are those of `tool_response`.

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

        The workpiece is rigid. With teeth, the cutter mills, and its directional factors are
        averaged (zero-order solution of Altintas and Budak). Lobes of period doubling (flip), which
        need the change of the factors within a revolution, are left out: they lower the limit of
        cuts of small immersion. Turning has constant factors and no such lobes.

        Args:
            cutting_coefficient: force per area of the chip, N/m^2 or such as '700 N/mm^2'; of
                milling the tangential force.
            teeth: number of teeth of a milling cutter; 0 for turning with one edge.
            direction: of turning, the motion of the tool that makes the chip thinner; of milling,
                the feed. An axis, or a vector (3,).
            force_direction: direction of the force on the tool in turning; default: `direction`.
            axis: axis of the milling cutter, which turns clockwise seen from its end.
            radial_ratio: radial force over tangential force of milling.
            start_angle, exit_angle: rotation of a tooth at which it enters and leaves the
                workpiece, from the normal of the feed towards the feed, rad; default: a slot.
            damping, loss_factor: as for `tool_response`.

        Raises:
            InputError: several poses, no damping, or a wrong value.
        """
        coefficient = _cutting_coefficient(cutting_coefficient)
        natural = self.frequency[0, self.free :]
        natural = natural[np.isfinite(natural)]
        if len(self.frequency) > 1 or not len(natural):
            what = f"there are {len(self.frequency)} poses with {len(natural)} modes"
            raise InputError.of("poses", what, "give one pose with an elastic mode")
        frequency = chatter_frequencies(natural)
        tool = self.tool_response(frequency, damping=damping, loss_factor=loss_factor)
        response = tool[0, :, :3, :3]
        along = unit_direction("direction", direction)
        if not teeth:
            force = along
            if force_direction is not None:
                force = unit_direction("force_direction", force_direction)
            return turning_lobes(frequency, response, coefficient, along, force)
        spindle = unit_direction("axis", axis)
        across = np.cross(spindle, along)
        if np.linalg.norm(across) < MIN_SINE:
            raise InputError.of("direction", "the feed is along the axis", "give another direction")
        across /= np.linalg.norm(across)
        plane = np.stack([np.cross(across, spindle), across])
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
        """Return the damping of a call, of the options, or of the file."""
        if damping is None and loss_factor is None:
            damping = self.options.damping
        return chosen_damping(self.model.mechanism, self.frequency.shape[1], damping, loss_factor)

    @property
    def servo(self) -> ServoModes | None:
        """Closed position loops and their complex modes; None for other motors."""
        return self.modal.servo


def _cutting_coefficient(value: float | str) -> float:
    """Return a force per area, N/m^2.

    Raises:
        InputError: not a positive one.
    """
    if isinstance(value, str):
        number = quantity("cutting_coefficient", value, PRESSURE)
    else:
        number = float(value)
    if not (number > 0.0 and np.isfinite(number)):
        what = f"is {number:g}"
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

    Links have their modes between fixed ends (Craig-Bampton). Without ``loaded``, frequencies do not
    include the weight; the result is doubtful if it changes one by more than 1 %.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform; by default the reference pose. One by names, such as
            ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: number of modes, motors and theory.
        actuators: positions of the actuators of one pose, instead of poses of the platform.
        motion: table with ``position.NAME`` of the platform, instead of poses: up to 50 of its rows,
            evenly spaced.

    Raises:
        InputError: the machine has no elastic data, or the file does not state where a mass is.
        AssemblyError: a part can move without any deformation, though motors are locked; or loads
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
    q, reached = machine_coordinates(model, poses, actuators, motion)
    loads = machine_loads(model.mechanism, options)
    modal = machine_modes(model, q, options, loads)
    result = _result(model, options, q, modal, loads, reached)
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
    reached: tuple[Diagnostic, ...],
) -> Vibration:
    """Return the result for the modes of a machine, without stability lobes."""
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
            *reached,
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
    """Return the frequency responses that options ask for; None for none."""
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
    """Return the numbers of modes, from 1, for their indices."""
    return tuple(i + 1 for i in group)

"""Check of a machine: its assembly, its actuation, and the choice of its assembly mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.errors import PoseError, Problem, Problems, TauloopError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import in_json, json_keys, records
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.compiler.catalogue import HYBRID_INVERSE_DYNAMICS, INVERSE_DYNAMICS, KINEMATICS
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.freedoms.motor_candidates import unstated_motors
from tauloop.equations.assembly.freedoms.spins import find_spins
from tauloop.equations.assembly.reference_pose import (
    closed_from_further_starts,
    displacement,
    distance,
    distance_modulo_turns,
    named_pose,
)
from tauloop.equations.ports import ACTUATORS, PLATFORM, coordinate_units
from tauloop.formats.library import motor_remedy
from tauloop.kinematics.drum_jumps import drum_jumps
from tauloop.mechanism.cables import unbounded_note
from tauloop.mechanism.elastic.inertia import element_masses, unplaced_masses
from tauloop.mechanism.model import BASE, PLATFORM_JOINT, Mechanism, omission_problems
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Number of start points in the quick search for other assembly modes.
QUICK_STARTS = 10
#: Distance below which poses belong to the same mode, rad or characteristic lengths.
MODE_TOLERANCE = 1e-3
#: The assembly mode is a guess if another mode is closer to the start values of the file than this
#: multiple of its own distance.
GUESS_DISTANCE_RATIO = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undriven:
    """A degree of freedom that no actuator moves.

    Attributes:
        name: name of the velocity.
        kind: "spin of BODY", "floating base" or "other".
    """

    name: str
    kind: str

    def __str__(self) -> str:
        return self.name if self.kind == "other" else f"{self.name} ({self.kind})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(Options):
    """Options of the check of a machine.

    Attributes:
        driven: reject degrees of freedom that no actuator drives.

    Examples:
        >>> import tauloop as tl
        >>> tl.check("delta", driven=True).is_usable
        True
    """

    driven: bool = option(False)


#: Number of characters quoted from the end of a CasADi error, which starts with a source path.
MAX_REASON = 160
#: Condition number from which the reference pose is reported as nearly singular; `verify` leaves
#: such poses out.
LARGE_CONDITION = 1000.0
#: Eigenvalues of the mass matrix, scaled to a unit diagonal, below this value count as zero.
MIN_EIGENVALUE = 1e-12
#: A degree of freedom takes part in a motion without inertia if its component of the eigenvector
#: exceeds this.
MIN_MOTION_COMPONENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(Tabular):
    """Problems of a machine, and notes for its users.

    Attributes:
        model: the machine.
        undriven: degrees of freedom that no actuator drives; this is not always a fault.
        other_modes: number of assembly modes, other than that of the reference pose, that the quick
            search found; more may exist.
        problems: reasons why the machine does not work as described.
        notes: hints that are not problems, such as a reference pose near a singularity, passive
            degrees of freedom, a guessed assembly mode, coordinates that Tauloop chose, and missing
            masses.
    """

    needs_forces: ClassVar[bool] = False
    model: Model = field(metadata=json_keys(assembly="assembly"))
    undriven: tuple[Undriven, ...]
    other_modes: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]

    def variables(self) -> Iterator[Variable]:
        """Return the coordinates at the reference pose, with their stops."""
        topology, limits = self.model.topology, self.model.limits
        ends = dict(zip(limits.names, zip(limits.lower, limits.upper, strict=True), strict=True))
        lower, upper = np.array(
            [ends.get(name, (-np.inf, np.inf)) for name in topology.coordinate_names]
        ).T
        figures = {"reference": self.model.assembly.q, "lower": lower, "upper": upper}
        return rows("coordinate", topology.coordinate_names, coordinate_units(topology), **figures)

    @property
    def is_usable(self) -> bool:
        """Whether the machine has no problems."""
        return not self.problems

    @property
    @in_json()
    def status(self) -> Status:
        """OK if the machine is usable."""
        return Status.OK if self.is_usable else Status.DOUBTFUL

    @property
    def tension_margin(self) -> str:
        """Margin between the cables' tensions and their bounds at the reference pose, as text.

        Empty if there are no cables or no margin is defined.
        """
        model = self.model
        if not model.mechanism.cables or model.assembly.passive or model.assembly.findings:
            return ""
        try:
            margin = float(model.platform.tension_margin(model.platform_position(model.assembly.q)))
        except TauloopError as error:
            return f"not determined: {error.problems[0].where} {error.problems[0].what}"
        text = f"{margin:.4g} N at the reference pose, at rest"
        if margin < 0.0:
            text += ": the cables cannot hold this pose"
        return text

    @property
    @in_json("element_masses", optional=True)
    def mass_rows(self) -> list[dict[str, Any]] | None:
        """Masses of links, of their sections and of their fittings, kg; None without sections."""
        masses = element_masses(self.model.mechanism)
        rows = records(
            element=[item.element for item in masses],
            mass=[item.mass for item in masses],
            section=[item.section for item in masses],
            fittings=[item.fittings for item in masses],
            unplaced=[item.unplaced for item in masses],
        )
        return rows or None

    @property
    @in_json("import")
    def notes_of_import(self) -> tuple[str, ...]:
        """See `import_notes`."""
        return import_notes(self.model.mechanism)


def import_notes(mechanism: Mechanism) -> tuple[str, ...]:
    """Return an importer's notes on omissions, new names and assumptions; empty without import."""
    if not mechanism.description.startswith("Imported from "):
        return ()
    return tuple(line.removeprefix("- ") for line in mechanism.description.splitlines()[1:])


@keywords(CheckOptions)
@solving(PoseError)
def check(machine: MachineSource, options: CheckOptions | None = None) -> Inspection:
    """Check whether a machine works as described.

    The check covers the assembly, the actuation, and whether the choice of the assembly mode was a
    guess.

    The kinematics and inverse dynamics of platform and actuator motion are built (not compiled), so
    a usable machine has these functions. A note lists functions of the actuators' motion that the
    machine lacks.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: further requirements on the machine.

    Returns:
        The inspection: `is_usable`, `problems` with remedies, and the coordinates with limits.

    Raises:
        AssemblyError: the loops do not close.

    Examples:
        >>> import tauloop as tl
        >>> inspection = tl.check(tl.load("delta"))
        >>> inspection.is_usable
        True
        >>> round(inspection.to_pandas().loc["platform.z", "reference"], 2).item()
        -0.5
    """
    model = modeled(machine)
    needs_drives = (options or CheckOptions()).driven
    assembly, mechanism = model.assembly, model.mechanism
    undriven_freedoms = undriven(assembly)
    problems = Problems([*assembly.findings, *_beyond_stops(model), *omission_problems(mechanism)])
    if mechanism.unstated_motors:
        problems += [unstated_motors(assembly)]
    elif not mechanism.actuators:
        what = "nothing is driven: the machine has no actuator"
        problems.add("actuators", what, motor_remedy(mechanism.file), file=mechanism.file)
    elif needs_drives and undriven_freedoms:
        names = ", ".join(map(str, undriven_freedoms))
        what = (
            f"nothing drives {len(undriven_freedoms)} of the {assembly.mobility} degrees of "
            f"freedom: {names}"
        )
        remedy = f"{motor_remedy(mechanism.file)}; or lock these degrees of freedom"
        problems.add("actuators", what, remedy, file=mechanism.file)
    other_modes, guess_note = _other_modes(assembly)
    limitations: list[Problem] = []
    if not problems:
        faults, limitations = _build_problems(model)
        problems += faults
    notes = [*unbounded_note(mechanism), *assembly.notes]
    if guess_note is not None:
        notes.append(guess_note)
    if not problems:
        notes += [*_near_singular(assembly), *_without_inertia(model), *_without_masses(model)]
    notes += [*drum_jumps(assembly, assembly.states), *unplaced_masses(mechanism), *limitations]
    return Inspection(
        model=model,
        undriven=undriven_freedoms,
        other_modes=other_modes,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _build_problems(model: Model) -> tuple[list[Problem], list[Problem]]:
    """Build the kinematics and inverse dynamics of platform and actuator motion.

    Returns:
        Faults: functions that cannot be built; and limitations: functions of the actuators' motion
        that the machine lacks, while those of the platform's motion work.
    """
    faults: list[Problem] = []
    limitations: list[Problem] = []
    has_passive = bool(model.assembly.passive)
    platform_spec = KINEMATICS[-1] if has_passive else INVERSE_DYNAMICS
    actuator_spec = HYBRID_INVERSE_DYNAMICS if has_passive else INVERSE_DYNAMICS
    for entry, spec in ((PLATFORM, platform_spec), (ACTUATORS, actuator_spec)):
        try:
            model.functions(entry).program(spec)
        except TauloopError as error:
            (faults if entry is PLATFORM else limitations).extend(error.problems)
        # an error of CasADi, for example because a coordinate is used before it is solved
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            faults.append(
                Problem(
                    where=entry.name,
                    what=f"the functions of its motion cannot be built: {reason[-MAX_REASON:]}",
                    remedy="name other coordinates in `platform.independent`, or cut other joints (`cut: yes`); please "
                    "report the machine file, since this is a fault in Tauloop",
                    file=model.mechanism.file,
                )
            )
    return faults, limitations


def _near_singular(assembly: Assembly) -> Iterator[Problem]:
    """Yield notes on large condition numbers at the reference pose, which magnify errors."""
    for name, values in (
        ("loop", assembly.platform_condition),
        ("actuator", assembly.actuator_condition),
    ):
        if values[:1].max(initial=0.0) > LARGE_CONDITION:
            what = (
                f"is close to a singular pose: {name} condition number {values[0]:.3g}, which "
                "magnifies errors and forces"
            )
            remedy = "give a reference pose farther from dead centers and stretched legs"
            yield Problem(
                where="reference pose", what=what, remedy=remedy, file=assembly.mechanism.file
            )


def _without_masses(model: Model) -> Iterator[Problem]:
    """Yield a note if all dynamic parameters are zero, so that all forces are zero."""
    if not np.any(model.pi):
        what = "no body has a mass, so all forces are zero and only kinematics is meaningful"
        remedy = "give masses and inertias before you compute forces"
        yield Problem(where="bodies", what=what, remedy=remedy, file=model.mechanism.file)


def _without_inertia(model: Model) -> list[Problem]:
    """Return a note on degrees of freedom without inertia at the reference pose."""
    mechanism, platform = model.mechanism, model.platform
    has_massless = any(body.inertia is None for body in mechanism.bodies)
    if not (has_massless and platform.ports.v and np.any(model.pi)):
        return []
    mass = platform.mass_matrix(platform.ports.at(model.assembly.q))
    size = np.sqrt(np.diag(mass))
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(mass / np.outer(size, size))
    motions = np.abs(vectors[:, values < MIN_EIGENVALUE]).max(axis=1, initial=0.0)
    if not motions.any():
        return []
    columns = zip(platform.ports.velocity.columns, motions, strict=True)
    names = [name for name, component in columns if component > MIN_MOTION_COMPONENT]
    return [
        Problem(
            where="mass matrix",
            what=f"is singular at the reference pose: a motion of {', '.join(names)} has no inertia",
            remedy="give massless bodies a mass or motors an inertia, or lock one of these degrees "
            "of freedom; inverse dynamics works anyway, forward dynamics and simulation do not",
            file=mechanism.file,
        )
    ]


def _beyond_stops(model: Model) -> list[Problem]:
    """Return the joints beyond their stops at the reference pose.

    This includes joints that close loops and have no coordinates.
    """
    if model.assembly.findings:
        return []
    return [
        Problem(
            where=item.coordinate,
            what=f"is beyond its stop at the reference pose: {item.amount}",
            remedy="correct the limits, or give a reference pose within them",
            file=model.mechanism.file,
        )
        for item in model.limits.beyond(model.assembly.q)
    ]


def undriven(assembly: Assembly) -> tuple[Undriven, ...]:
    """Return the degrees of freedom that no actuator drives, each with its kind."""
    topology = assembly.topology
    spins = {spin.index: f"spin of {', '.join(spin.bodies)}" for spin in find_spins(assembly)}
    floating = {
        i
        for tree in topology.tree
        if tree.joint.kind == "free"
        and tree.inner.body == BASE
        and tree.joint.name != PLATFORM_JOINT
        for i in tree.v
    }
    return tuple(
        Undriven(
            name=topology.velocity_names[i],
            kind=spins.get(i, "floating base" if i in floating else "other"),
        )
        for i in assembly.passive
    )


def _other_modes(assembly: Assembly) -> tuple[int, Problem | None]:
    """Return the number of other modes in a quick search, and a note if the mode is a guess."""
    loops, q = assembly.loops, assembly.q[None, :]
    if not loops.names or assembly.findings:
        return 0, None
    start = np.array([loops.topology.reference])
    near_start = start.copy()
    columns = [loops.topology.q_of_v[i] for i in assembly.independent]
    scalars = [column for column in columns if column >= 0]
    near_start[:, scalars] = q[:, scalars]
    closed = closed_from_further_starts(loops, near_start, assembly.independent, count=QUICK_STARTS)
    others = closed
    if len(closed):
        others = closed[distance_modulo_turns(loops, q, closed) > MODE_TOLERANCE]
    mode_distance = float(distance(loops, start, q)[0])
    if not len(others) or assembly.substitute is not None:
        return len(others), None
    nearest = float(distance(loops, start, others).min())
    if nearest > GUESS_DISTANCE_RATIO * mode_distance:
        return len(others), None
    change = displacement(loops, start, q)[0]
    farthest = int(np.abs(change).argmax())
    note = Problem(
        where="reference pose",
        what="the assembly mode is a guess: the start values of the file are open, closing moves "
        f"{loops.topology.velocity_names[farthest]} farthest, and ten quick starts find at least "
        f"{counted(len(others), 'other mode')}, the nearest at {nearest / mode_distance:.2g} times "
        "its distance from the start values; it has " + named_pose(loops, assembly.q, change),
        remedy="give joint angles of the mode that you want (`reference:`); `tauloop modes --working` lists all",
        file=loops.mechanism.file,
    )
    return len(others), note

"""One call from a machine and a motion, a pose by names or a table of many, to the forces that bring it about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import TIME, Variable, columns, time_axis
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.common.result import Diagnostic, Result, provenance
from tauloop.compiler import Forces
from tauloop.equations.named_values import named_motion
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry, Port, coordinate_units
from tauloop.kinematics.singularities import require_regular, singularity_report
from tauloop.kinematics.straight_path import reached_along_line
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import HybridForces, Model, Motion
from tauloop.model.force_sharing import pushed_cables, sharing_of
from tauloop.model.model import MachineSource, modelled
from tauloop.model.sampled_momenta import FEWEST_SAMPLES, forces_from_momenta

if TYPE_CHECKING:
    import xarray as xr

#: Differences over steps that leave a larger share of the largest force as an error are too coarse
#: to build on.
COARSE = 0.01
#: Names of the errors of forces from momenta.
ERROR_OF_ALL_ROWS = "error of two-point differences, share of the largest force"
ERROR_OF_LAST_ROW = (
    "error on the last row, whose difference is one-sided, share of the largest force"
)
#: Least divisor of a share of the largest force, N or N m, where there is no force at all.
TINY_FORCE = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicsOptions(Options):
    """One pose with its velocity and acceleration, or many from a table; a table may do without accelerations.

    Attributes:
        position: one pose, such as 'platform.x=0.1,z=-50cm' (SI, or with units); the rest as at
            reference.
        velocity: its velocity, likewise; zero where not named.
        acceleration: its acceleration, likewise; zero where not named.
        motion: many: CSV or Parquet with columns time, position.NAME, velocity.NAME,
            acceleration.NAME, each with its unit: 'position.platform.x [m]'.
        entry: what moves as given.
        from_momenta: the table has no accelerations, and needs none: forces follow from momenta and
            their two-point differences, by Hamilton's equations in the extended space.
        preload: tensions (N) that cables shall have where redundant actuation leaves a choice: one
            for all, such as '100', or by name, 'cable1=100,cable2=50'; the least ones within their
            bounds without.

    Examples:
        >>> import tauloop as tl
        >>> tl.DynamicsOptions(position={"x": "10 mm"}, acceleration={"z": 2.0}).acceleration
        {'z': 2.0}
    """

    position: str | Mapping[str, str | float] | None = option(None, read=str)
    velocity: str | Mapping[str, str | float] | None = option(None, read=str)
    acceleration: str | Mapping[str, str | float] | None = option(None, read=str)
    motion: Path | None = None
    entry: Entry = PLATFORM
    from_momenta: bool = False
    preload: str | float | Mapping[str, str | float] | None = option(None, read=str)

    def _note_mismatches(self, problems: Problems) -> None:
        """Refuse a pose beside a table, and momenta without one."""
        stated = [
            name
            for name in ("position", "velocity", "acceleration")
            if getattr(self, name) is not None
        ]
        if self.motion is not None and stated:
            problems.add(
                "motion", f"given beside {', '.join(stated)}", "give one pose, or a table of many"
            )
        if self.from_momenta and self.motion is None:
            problems.add(
                "from_momenta", "one pose has no neighbours to take differences of", "give a table"
            )
        if self.from_momenta and self.preload is not None:
            problems.add("from_momenta", "given beside a preload", "give one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionForces(Result):
    """What a motion needs: forces (N, n_u), and what follows by itself.

    Attributes:
        model: the machine.
        options: the motion.
        time: of the samples (N,), s.
        forces: actuator forces, multipliers, tensions, and the full motion.
        hybrid: the same with the accelerations of passive freedoms, where the machine has any and
            actuators lead.
        condition: condition numbers (N,), free of units; infinite where singular. They are computed
            when they are first read, for they take many times longer than the forces.
    """

    model: Model
    options: DynamicsOptions
    time: np.ndarray
    forces: Forces
    hybrid: HybridForces | None
    condition: np.ndarray = field(metadata=DEFERRED)

    def variables(self) -> Iterator[Variable]:
        """Actuator forces, multipliers, tensions and all coordinates over time, with the condition of each sample."""
        forces, topology = self.forces, self.model.topology
        yield time_axis(self.time)
        yield from columns("force", forces.actuator_names, self.units, forces.force)
        yield from columns(
            "coordinate", topology.coordinate_names, coordinate_units(topology), forces.state.q
        )
        multipliers = self.model.assembly.multiplier_units
        yield from columns("closure_force", forces.closure_names, multipliers, forces.closure_force)
        if forces.tension is not None:
            yield from columns(
                "tension", forces.tension_names, ("N",) * len(forces.tension_names), forces.tension
            )
        yield Variable(name="condition", values=self.condition, over=TIME)

    @property
    def units(self) -> tuple[str, ...]:
        """Of the actuators' forces."""
        return self.model.output_ports("actuators")[1]

    @property
    def difference_errors(self) -> tuple[Diagnostic, ...]:
        """Errors of the two-point differences of momenta: largest of all rows, and on the last row."""
        return tuple(
            item for item in self.diagnostics if item.name in (ERROR_OF_ALL_ROWS, ERROR_OF_LAST_ROW)
        )

    @property
    def notes(self) -> list[str]:
        """Rods that are called cables and are pushed."""
        return pushed_cables(self.model.mechanism, self.forces)

    @property
    def nearest(self) -> str:
        """To what the turns of angles that follow from loops are the nearest."""
        return "reference pose" if self.options.motion is None else "sample before"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        forces, hybrid = self.forces, self.hybrid
        return self.plain_data(
            "units",
            "notes",
            machine=self.model.mechanism.name,
            entry=self.options.entry,
            formulation=_formulation(self.model, self.options),
            time_s=self.time,
            actuators=forces.actuator_names,
            force=forces.force,
            closures=forces.closure_names,
            closure_force=forces.closure_force,
            coordinates=forces.state.coordinate_names,
            q=forces.state.q,
            turns={"angles": forces.state.turns.angles, "nearest": self.nearest},
            shared=forces.is_shared,
            cables=forces.tension_names,
            tension=() if forces.tension is None else forces.tension,
            passive=() if hybrid is None else hybrid.passive_names,
            passive_acceleration=() if hybrid is None else hybrid.passive_acceleration,
            condition=[value if np.isfinite(value) else None for value in self.condition.tolist()],
        )

    def log(self) -> xr.Dataset:
        """The motion of platform and actuators and the forces: a motion by either entry, and a log."""
        from tauloop.logs.log import Channel, build_log  # data frames are slow to import

        state = self.forces.state
        tables: list[tuple[tuple[str, Port], np.ndarray]] = []
        for ports in (self.model.platform.ports, self.model.actuators.ports):
            rates = [
                ports.rates(np.asarray(rate)) for rate in (state.v, state.a) if rate is not None
            ]
            tables += zip(
                ports.motion.items(), [ports.at(state.q), *rates], strict=state.a is not None
            )
        force = Port(name="force", columns=self.forces.actuator_names, units=self.units)
        tables.append((("force", force), self.forces.force))
        signals = {
            (kind, name): Channel(quantity=kind, channel=name, values=array[:, i], unit=unit)
            for (kind, port), array in tables
            for i, (name, unit) in enumerate(zip(port.columns, port.units, strict=True))
        }
        return build_log(self.time, list(signals.values()))


@keywords(DynamicsOptions)
@solving(PoseError)
def inverse_dynamics(
    machine: MachineSource,
    options: DynamicsOptions | None = None,
    *,
    progress: Progress | None = None,
) -> MotionForces:
    """Actuator forces that a motion needs; see `Motion.inverse_dynamics` for its equation.

    A machine with passive freedoms is moved by its actuators: accelerations are given for these
    alone, and those of the passive freedoms come out beside the forces (see `HybridFunctions`).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; the
            formulation of a model is used.
        options: the motion; the reference pose at rest without them.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: wrong names, units or columns, or a table beside a pose; momenta of a machine
            that has passive or redundant ones.
        PoseError: out of reach or singular; or no tensions within their bounds give this motion.
        AssemblyError: the motion passes a singularity between two samples, where no forces bring it
            about.

    Examples:
        >>> import tauloop as tl
        >>> forces = tl.inverse_dynamics(tl.load("delta"), tl.DynamicsOptions(acceleration={"z": 2.0}))
        >>> forces.to_pandas()["force.leg1.motor"].round(2).tolist()
        [-1.55]
    """
    model, options = modelled(machine), options or DynamicsOptions()
    entry, table, stages = options.entry, options.motion, Stages(progress, 3)
    functions = model.motion(entry)
    is_hybrid = entry is ACTUATORS and bool(model.assembly.passive)
    ports = model.hybrid.ports if is_hybrid else functions.ports.motion
    if options.from_momenta:
        ports = {name: port for name, port in ports.items() if name != "acceleration"}
        if is_hybrid or model.assembly.is_redundant:
            what = (
                "passive freedoms move as accelerations say"
                if is_hybrid
                else "redundant actuators share by weights"
            )
            raise InputError.of("from_momenta", what, "give accelerations")
    if table is None:
        pose = named_motion(ports, options, functions.ports.at(model.assembly.q))
        time, arrays = np.zeros(1), {name: row[None, :] for name, row in pose.items()}
    else:
        time, arrays = motion_table(ports, table)
    stages.done()
    start = None
    path: tuple[Diagnostic, ...] = ()
    is_walked = table is not None and (bool(functions.turning) or functions.runner.iterates)
    if model.assembly.rows and (entry is ACTUATORS or is_walked):
        reached = functions.follow(arrays["position"])
        start = reached.q if table is None else functions.counted(reached).q
        path = reached.opened
    if table is None and functions.runner.iterates:
        position = arrays["position"][0]
        q = np.asarray(functions.kinematics(position).q if start is None else start[0])
        q, path = reached_along_line(functions, position, q)
        start = q[None]
    sharing, motion, hybrid = (
        sharing_of(model.mechanism, options.preload),
        tuple(arrays.values()),
        None,
    )
    diagnostics: tuple[Diagnostic, ...] = ()
    if options.from_momenta:
        forces, diagnostics = _from_momenta(functions, time, motion[0], motion[1], start)
    elif is_hybrid:
        hybrid = model.hybrid.inverse_dynamics(*motion, start=start, sharing=sharing)
        forces = hybrid.forces
    else:
        forces = functions.inverse_dynamics(*motion, start=start, sharing=sharing)
    stages.done()
    if len(time) > 1:
        require_regular(singularity_report(model, forces.state, entry=entry), smallest=0.0)
    stages.done()
    # the result's own array may be changed before its condition is read
    q = np.array(forces.state.q, ndmin=2)
    made_by = {"entry": entry.name, "formulation": _formulation(model, options)}
    return MotionForces(
        model=model,
        options=options,
        time=time,
        forces=forces,
        hybrid=hybrid,
        condition=deferred(lambda: functions.condition(q)),
        diagnostics=(
            *forces.diagnostics,
            *path,
            *diagnostics,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(options=made_by, inputs={"machine": model.mechanism.name}),
    )


def _formulation(model: Model, options: DynamicsOptions) -> str:
    return "hamilton, sampled" if options.from_momenta else model.formulation.name


def _from_momenta(
    functions: Motion,
    time: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    start: np.ndarray | None,
) -> tuple[Forces, tuple[Diagnostic, ...]]:
    """Return the forces from momenta, and their errors: largest of all rows, and on the last row.

    The errors are not defined where there are too few rows for coarser differences.

    The error is of second order, so it is a third of the difference from the forces of every other
    sample. Both halves of the samples are taken, so that the last row is in one of them. Its
    difference is one-sided, and its error is larger than that of the rows before.
    """
    forces = forces_from_momenta(functions, time, position, velocity, start=start)
    if len(time) < 2 * FEWEST_SAMPLES - 1:
        return forces, tuple(
            Diagnostic(name=name, value=None) for name in (ERROR_OF_ALL_ROWS, ERROR_OF_LAST_ROW)
        )
    errors = np.zeros(len(time))
    for first in range(2 if len(time) > 2 * FEWEST_SAMPLES - 1 else 1):
        half = slice(first, None, 2)
        coarse = forces_from_momenta(
            functions,
            time[half],
            position[half],
            velocity[half],
            start=None if start is None else start[half],
        )
        rows = np.arange(len(time))[half]
        # an inner end of a half has a one-sided difference there and a two-sided one here
        alike = [row in (0, len(time) - 1) or row not in (rows[0], rows[-1]) for row in rows]
        errors[rows[alike]] = np.abs(coarse.force - forces.force[half])[alike].max(axis=1) / 3
    shares = errors / max(np.abs(forces.force).max(), TINY_FORCE)
    advice = "sample the motion more often"
    return forces, (
        Diagnostic(name=ERROR_OF_ALL_ROWS, value=float(shares.max()), upper=COARSE, advice=advice),
        Diagnostic(name=ERROR_OF_LAST_ROW, value=float(shares[-1]), upper=COARSE, advice=advice),
    )


def motion_table(ports: Mapping[str, Port], path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times (N,), s, and numbers (N, n) of ports by name, from a CSV or Parquet file.

    Raises:
        InputError: columns that are missing, or have other units; all at once.
    """
    from tauloop.logs import read_log, samples  # one pose needs none
    from tauloop.logs.log import TIME
    from tauloop.logs.matching import channel_problems

    log = read_log(path)
    wanted = {
        kind: dict(zip(port.columns, port.units, strict=True)) for kind, port in ports.items()
    }
    InputError.raise_if_any(channel_problems(log, wanted, str(path)))
    return log[TIME].to_numpy(), {
        kind: samples(log, kind, tuple(columns)) for kind, columns in wanted.items()
    }

"""Programs of one machine: the expressions that they begin with, what a catalogue says of each, and those made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import final

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.builder import ProgramBuilder
from tauloop.compiler.functions.tool import PAYLOAD, WRENCH, tool_load
from tauloop.compiler.program import Program
from tauloop.compiler.solving.closed_forms import Branches
from tauloop.compiler.solving.position import Positions, solve_positions
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import ClosureRow, closure, nominal
from tauloop.equations.assembly.motor_candidates import unstated_motors
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.formulations.hamilton import CanonicalTerms, canonical_terms
from tauloop.equations.newton_euler import transmission
from tauloop.equations.ports import EntryPorts
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import DynamicParameter, Entries, dynamic_parameters
from tauloop.mechanism.bodies import cables


class Expressions:
    """A program under construction, and the expressions of a machine at its coordinates.

    Attributes:
        assembly: the machine.
        builder: receives the steps of the program.
        configuration: its coordinates, with the cosines and sines that are known.
        parts: mechanism, topology and values of the leaf parameters, as equations take them.
        moving: indices of the velocities that are not zero in every motion.
    """

    configuration: Configuration
    _load: Callable[[TreeMotion], ca.SX] | None = None

    def __init__(
        self,
        assembly: Assembly,
        builder: ProgramBuilder,
        formulation: Formulation,
        theta: Mapping[str, ca.SX],
    ) -> None:
        """Begin a program; parameters that are not in `theta` are baked in."""
        self.assembly, self.builder, self.formulation = assembly, builder, formulation
        self.mechanism, self.topology = assembly.mechanism, assembly.topology
        self.values = nominal(self.mechanism, theta)
        self.parts = (self.mechanism, self.topology, self.values)
        self.parameters = dynamic_parameters(self.mechanism, self.topology)
        self.moving = [i for i in range(self.topology.n_v) if i not in assembly.frozen]

    @cached_property
    def pi(self) -> ca.SX:
        """Values (n_pi,) of the dynamic parameters."""
        return column(ca.SX(self.values.scalar(p.expression)) for p in self.parameters)

    @cached_property
    def entries(self) -> Entries:
        """The dynamic parameters by element and role."""
        return Entries(self.parameters, self.pi)

    @cached_property
    def transmission(self) -> ca.SX:
        """Matrix A (n_u, n_v): actuator velocities per unit of all velocities; actuator forces act by S = A^T."""
        return transmission(*self.parts)

    @property
    def at_rest(self) -> ca.SX:
        """Zeros (n_v,)."""
        return ca.SX(self.topology.n_v, 1)

    def motion(self, v: ca.SX, a: ca.SX | None = None) -> TreeMotion:
        """Motion of all bodies at velocities (n_v,) and accelerations (zero without them)."""
        return tree_motion(
            self.topology, self.values, self.configuration, v, self.at_rest if a is None else a
        )

    def rows(self, v: ca.SX, a: ca.SX | None = None) -> list[ClosureRow]:
        """The kept loop equations of a motion; a tree has none, and its sweep would be for nothing."""
        if not self.assembly.rows:
            return []
        rows = closure(self.mechanism, self.motion(v, a))
        return [rows[i] for i in self.assembly.rows]

    def forces(self, v: ca.SX, a: ca.SX, pi: ca.SX | None = None) -> ca.SX:
        """Tree forces M a + h (n_v,), by the formulation, with what is carried; values of the file without `pi`."""
        motion = self.motion(v, a)
        entries = self.entries if pi is None else Entries(self.parameters, pi)
        tau = self.formulation.forces(self.mechanism, motion, entries)
        return tau if self._load is None else tau + self._load(motion)

    def mass_matrix(self, v: ca.SX) -> ca.SX:
        """M (n_v, n_v) of the tree forces, from those at velocities (n_v,), which are computed anyway."""
        a = ca.SX.sym("a", self.topology.n_v)
        return ca.sparsify(ca.jacobian(self.forces(v, a), a))

    def canonical(self, v: ca.SX) -> CanonicalTerms:
        """Momenta and their terms at velocities (n_v,)."""
        return canonical_terms(self.mechanism, self.motion(v), self.entries)


class MotionState(Expressions):
    """A program that has reached the full state (q, v, a) from a given motion."""

    def __init__(
        self,
        assembly: Assembly,
        ports: EntryPorts,
        name: str,
        levels: int,
        formulation: Formulation = NEWTON_EULER,
        free: tuple[str, ...] = (),
    ) -> None:
        """Emit the kinematics: positions, then velocities and accelerations as far as `levels` (0 to 2) says.

        Args:
            assembly: the machine.
            ports: the given motion.
            name: what the program is for; its own name begins with that of the entry.
            levels: how far the kinematics goes.
            formulation: how forces are found.
            free: names of the leaf parameters that stay symbols; all others are baked in.
        """
        self.free, nominal_theta = free, assembly.mechanism.parameters.vector(free)
        builder = ProgramBuilder(f"{ports.name}_{name}", _samples(assembly, ports, nominal_theta))
        theta = builder.input("theta", len(free))
        super().__init__(
            assembly, builder, formulation, {leaf: theta[i] for i, leaf in enumerate(free)}
        )
        self.ports, self._theta = ports, (theta, nominal_theta)
        position, start = (
            builder.input("position", ports.position.size),
            builder.input("start", self.topology.n_q),
        )
        known = ports.coordinates(position)
        for i in self.topology.coordinates_of(assembly.frozen):
            known.setdefault(i, ca.SX(float(assembly.q[i])))
        self.positions = solve_positions(
            builder,
            *self.parts,
            assembly.rows,
            known,
            start,
            assembly.q,
            self._theta,
            assembly.states,
        )
        self.configuration = self.positions.configuration
        self.dependent = [i for i in self.moving if i not in ports.v]
        self.v, self.a = self.at_rest, self.at_rest
        self.K = ca.SX(0, self.topology.n_v)
        self.scale = ca.SX(0, 1)
        if levels:
            self._velocities(levels)

    def branches(self) -> Branches:
        """On which roots of the closed forms poses lie."""
        return Branches.of(
            self.positions.slopes, self.positions.symbols, self._theta, self.assembly.states
        )

    def _velocities(self, levels: int) -> None:
        """Loops on velocity and acceleration level, with what is given put in at once: K x = -(rate of the rest)."""
        v = ca.SX.sym("v", self.topology.n_v)
        rows = self.rows(v)
        rates, self.scale = column(row.psi_rate for row in rows), column(row.scale for row in rows)
        self.K = ca.jacobian(rates, v)
        self._give(self.v, self.builder.input("velocity", self.ports.velocity.size))
        # put in instead of built again: the motion of all bodies is half of the work on a program
        self._close(self.v, ca.SX(ca.substitute([rates], [v], [ca.densify(self.v)])[0]))
        if levels > 1:
            self._give(self.a, self.builder.input("acceleration", self.ports.velocity.size))
            self._close(self.a, column(row.psi_acceleration for row in self.rows(self.v, self.a)))

    def _give(self, full: ca.SX, rates: ca.SX) -> None:
        full[list(self.ports.v)] = ca.DM(self.ports.to_v) @ rates

    def _close(self, full: ca.SX, open_rates: ca.SX) -> None:
        """Fill in the dependent entries so that the rates of the loops vanish."""
        if self.dependent:
            full[self.dependent] = self.builder.solve(
                self.K[:, self.dependent], -open_rates, "loop velocities"
            )

    @cached_property
    def embedding(self) -> ca.SX:
        """Matrix G (n_v, m): velocities of all coordinates per unit of the given velocities."""
        G = ca.SX(self.topology.n_v, self.ports.velocity.size)
        G[list(self.ports.v), :] = ca.DM(self.ports.to_v)
        if self.dependent:
            G[self.dependent, :] = self.builder.solve(
                self.K[:, self.dependent], -(self.K @ G), "embedding"
            )
        return G

    def drift(self) -> ca.SX:
        """Accelerations g (n_v,) that velocities bring about while the given accelerations are zero: a = G a_g + g."""
        g = self.at_rest
        self._close(g, column(row.psi_acceleration for row in self.rows(self.v, g)))
        return g

    def multipliers(self, loads: ca.SX) -> ca.SX:
        """Multipliers (c, k) of the kept loop equations that carry loads on all velocities (n_v, k)."""
        return self.loop_forces(loads) * ca.repmat(self.scale, 1, loads.size2())

    def loop_forces(self, loads: ca.SX) -> ca.SX:
        """The same of psi, the equations before they are scaled."""
        if not self.dependent:
            return ca.SX(0, loads.size2())
        return self.builder.solve(
            self.K[:, self.dependent].T, loads[self.dependent, :], "multipliers"
        )

    def carry(self) -> None:
        """Make payload and wrench at the tool inputs of the program, and part of all forces (see `tool_load`)."""
        wrench, payload = (
            self.builder.input("wrench", WRENCH),
            self.builder.input("payload", PAYLOAD),
        )
        self._load = lambda motion: tool_load(motion, self.mechanism, wrench, payload)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ProgramSpec:
    """A program of the catalogue.

    Attributes:
        name: its name in texts.
        meaning: what it computes, in words.
        build: makes it from the state that the kinematics has reached.
        inputs: ports of the motion and of what acts; start values, parameters and weights come
            beside them. The kinematics goes as far as there are velocities and accelerations among
            them.
        outputs: what it is for, the main one first; it may have others.
    """

    name: str
    meaning: str
    build: Callable[[MotionState], Program]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __repr__(self) -> str:
        return self.name

    @property
    def levels(self) -> int:
        """How far the kinematics goes: to positions (0), velocities (1) or accelerations (2)."""
        return sum(name in self.inputs for name in ("velocity", "acceleration"))


#: Ports of programs that need the motors.
_FORCES = frozenset(("force", "actuator_acceleration", "regressor"))


@final
class Catalogue:
    """The programs of one entry of a machine, built when first used."""

    def __init__(
        self,
        assembly: Assembly,
        ports: EntryPorts,
        formulation: Formulation,
        free: tuple[str, ...] = (),
    ) -> None:
        """Keep what programs are made from (see `MotionState`)."""
        self.assembly, self.ports, self.formulation, self.free = assembly, ports, formulation, free
        self._programs: dict[ProgramSpec, Program] = {}

    def at(self, assembly: Assembly) -> Catalogue:
        """The same programs, of the machine with its reference at another pose."""
        return Catalogue(assembly, self.ports, self.formulation, self.free)

    def state(self, name: str, levels: int) -> MotionState:
        """Where a program begins (see `MotionState`)."""
        return MotionState(self.assembly, self.ports, name, levels, self.formulation, self.free)

    def program(self, spec: ProgramSpec) -> Program:
        """A program of this machine.

        Raises:
            AssemblyError: it has forces of motors, and the machine's description does not state
                where motors are.
        """
        if spec not in self._programs:
            if self.assembly.mechanism.unstated_motors and not _FORCES.isdisjoint(
                (*spec.inputs, *spec.outputs)
            ):
                raise AssemblyError([unstated_motors(self.assembly)])
            self._programs[spec] = spec.build(self.state(spec.name, spec.levels))
        return self._programs[spec]

    @cached_property
    def positions(self) -> Positions:
        """How positions are found."""
        return self._state.positions

    @cached_property
    def branches(self) -> Branches:
        """On which roots of the closed forms poses lie."""
        return self._state.branches()

    @property
    def parameters(self) -> tuple[DynamicParameter, ...]:
        """Entries of pi."""
        return self._state.parameters

    @cached_property
    def _state(self) -> MotionState:
        return self.state("positions", 0)


def column(expressions: Iterable[ca.SX]) -> ca.SX:
    """Expressions below each other; an empty column where there are none."""
    return ca.SX(ca.vertcat(ca.SX(0, 1), *expressions))


def _samples(assembly: Assembly, ports: EntryPorts, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Inputs at the assembled states, from which pivot orders are chosen; velocities play no part in these."""
    count = len(assembly.states)
    return {
        "theta": np.repeat(theta[None], count, axis=0),
        "position": np.ascontiguousarray(ports.at(assembly.states)),
        "start": assembly.states,
        **{
            name: np.ones((count, len(assembly.mechanism.actuators)))
            for name in ("weight", "spread")
        },
        "preload": np.zeros((count, len(cables(assembly.mechanism)))),
        "wrench": np.zeros((count, WRENCH)),
        "payload": np.zeros((count, PAYLOAD)),
    }


def require_inertia(M: ca.SX, ports: EntryPorts) -> None:
    """Refuse a mass matrix (m, m) with zeros on its diagonal: no force determines those accelerations.

    Raises:
        AssemblyError: the velocities that move nothing with inertia.
    """
    diagonal = ca.diag(M)
    refuse_idle(name for i, name in enumerate(ports.velocity.columns) if diagonal[i].is_zero())


def refuse_idle(idle: Iterable[str]) -> None:
    """Refuse velocities, by name, that move nothing with inertia."""
    what = (
        "moves nothing that has mass or inertia, so that forces do not determine its acceleration"
    )
    remedy = (
        "give a body that it moves a mass, or its motor an inertia; or make the joint a fixed one"
    )
    AssemblyError.raise_if_any(Problem(where=name, what=what, remedy=remedy) for name in idle)

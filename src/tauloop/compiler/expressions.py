"""Programs of one machine under construction: their expressions and their specifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, Problem
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.records import dataclass
from tauloop.compiler.builder import ProgramBuilder
from tauloop.compiler.functions.tool import PAYLOAD, WRENCH, tool_load
from tauloop.compiler.program import Program
from tauloop.compiler.solving.closed_forms import Branches
from tauloop.compiler.solving.position import Positions, solve_positions
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import ClosureRow, closure, nominal
from tauloop.equations.formulations import NEWTON_EULER, Formulation
from tauloop.equations.newton_euler import actuator_offsets, transmission
from tauloop.equations.operators import fast_operators
from tauloop.equations.ports import EntryPorts
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import DynamicParameter, Entries, dynamic_parameters

if TYPE_CHECKING:
    from tauloop.equations.assembly.freedoms.motor_candidates import unstated_motors
    from tauloop.equations.formulations.hamilton import CanonicalTerms, canonical_terms
else:
    (unstated_motors,) = lazy_functions(
        "tauloop.equations.assembly.freedoms.motor_candidates", "unstated_motors"
    )
    (canonical_terms,) = lazy_functions(
        "tauloop.equations.formulations.hamilton", "canonical_terms"
    )

#: Function that returns start values of Newton's method (n_q,) from the given position and from the
#: coordinates, by index, that the position determines.
StartValues = Callable[[ca.SX, Mapping[int, ca.SX]], ca.SX]


class Expressions:
    """A program under construction, and the expressions of a machine at its coordinates.

    Attributes:
        assembly: the machine.
        builder: builder of the program's steps.
        configuration: coordinates, with the cosines and sines that are known.
        parts: mechanism, topology and values of the independent parameters: the arguments of
            equations.
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
        """Start a program; parameters that are not in `theta` are constants."""
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
        """Return the dynamic parameters by element and role."""
        return self.values.shared("entries", lambda: Entries(self.parameters, self.pi))

    @cached_property
    def transmission(self) -> ca.SX:
        """Matrix A (n_u, n_v) of actuator velocities p' = A v; S = A^T maps the actuator forces."""
        return transmission(*self.parts)

    @cached_property
    def actuator_offsets(self) -> ca.SX:
        """Positions b (n_u,) of the actuators, p = A q + b, where all coordinates are zero."""
        return actuator_offsets(self.mechanism, self.values)

    @property
    def at_rest(self) -> ca.SX:
        """Zeros (n_v,)."""
        return ca.SX(self.topology.n_v, 1)

    def motion(self, v: ca.SX, a: ca.SX | None = None) -> TreeMotion:
        """Return the motion of all bodies at velocities (n_v,) and accelerations (default zero)."""
        return tree_motion(
            self.topology, self.values, self.configuration, v, self.at_rest if a is None else a
        )

    def rows(self, v: ca.SX, a: ca.SX | None = None) -> list[ClosureRow]:
        """Return the independent loop equations of a motion; empty for a machine without loops."""
        if not self.assembly.rows:
            return []
        rows = closure(self.mechanism, self.motion(v, a))
        return [rows[i] for i in self.assembly.rows]

    def forces(self, v: ca.SX, a: ca.SX, pi: ca.SX | None = None) -> ca.SX:
        """Return tree forces M a + h (n_v,), the generalized forces of the machine with open loops.

        The loads of `add_loads` are included. `pi` are the dynamic parameters, by default those of
        the machine file.
        """
        motion = self.motion(v, a)
        entries = self.entries if pi is None else Entries(self.parameters, pi)
        tau = self.formulation.forces(self.mechanism, motion, entries)
        return tau if self._load is None else tau + self._load(motion)

    def mass_matrix(self, v: ca.SX) -> ca.SX:
        """Return the mass matrix M (n_v, n_v) from the tree forces at velocities (n_v,)."""
        a = ca.SX.sym("a", self.topology.n_v)
        return ca.sparsify(ca.jacobian(self.forces(v, a), a))

    def canonical(self, v: ca.SX) -> CanonicalTerms:
        """Return the terms of Hamilton's equations at velocities (n_v,)."""
        return canonical_terms(self.mechanism, self.motion(v), self.entries)


class MotionState(Expressions):
    """A program under construction that has computed the state (q, v, a) from a given motion."""

    def __init__(
        self,
        assembly: Assembly,
        ports: EntryPorts,
        name: str,
        levels: int,
        formulation: Formulation = NEWTON_EULER,
        free: tuple[str, ...] = (),
        share_expressions: bool = True,
        start_values: StartValues | None = None,
    ) -> None:
        """Add the kinematics: positions and, up to `levels` (0 to 2), their derivatives.

        Args:
            assembly: the machine.
            ports: ports of the given motion.
            name: purpose of the program; the program's name also contains the entry's name.
            levels: order of the highest time derivative.
            formulation: formulation of the forces.
            free: names of the independent parameters that are inputs; the others are constants.
            share_expressions: whether common subexpressions are computed once (`ProgramBuilder`).
            start_values: function that returns start values of Newton's method (n_q,) from the given
                position and the coordinates that it determines; by default they are an input.
        """
        self.free, nominal_theta = free, assembly.mechanism.parameters.vector(free)
        builder = ProgramBuilder(
            f"{ports.name}_{name}",
            _samples(assembly, ports, nominal_theta),
            share_expressions=share_expressions,
        )
        theta = builder.input("theta", len(free))
        super().__init__(
            assembly, builder, formulation, {leaf: theta[i] for i, leaf in enumerate(free)}
        )
        self.ports, self._theta = ports, (theta, nominal_theta)
        position = builder.input("position", ports.position.size)
        known = ports.coordinates(position)
        for i in self.topology.coordinates_of(assembly.frozen):
            known.setdefault(i, ca.SX(float(assembly.q[i])))
        if start_values is None:
            start = builder.input("start", self.topology.n_q)
        else:
            start = start_values(position, known)
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
        self.v = self.at_rest
        self.a = self.at_rest
        self.K = ca.SX(0, self.topology.n_v)
        self.scale = ca.SX(0, 1)
        self._levels = 0
        self._add_levels(levels)

    def continued(
        self, name: str, levels: int, formulation: Formulation, *, share_expressions: bool
    ) -> MotionState:
        """Return a copy as the state of another program, so that its kinematics is not built again.

        Args:
            name: purpose of the other program.
            levels: order of its highest time derivative, at least that of this state.
            formulation: formulation of its forces.
            share_expressions: whether its common subexpressions are computed once.
        """
        other = copy(self)
        other.formulation = formulation
        other.builder = self.builder.continued(
            f"{self.ports.name}_{name}", share_expressions=share_expressions
        )
        other._add_levels(levels)
        return other

    def branches(self) -> Branches:
        """Return the signs of roots of the closed forms (see `Branches`)."""
        return Branches.of(
            self.positions.slopes, self.positions.symbols, self._theta, self.assembly.states
        )

    def _add_levels(self, levels: int) -> None:
        """Solve the loop equations for velocities and, up to `levels`, accelerations."""
        if self._levels < 1 <= levels:
            self._add_velocities()
        if self._levels < 2 <= levels:
            self._add_accelerations()
        self._levels = levels

    def _add_velocities(self) -> None:
        v = ca.SX.sym("v", self.topology.n_v)
        rows = self.rows(v)
        rates = column(row.psi_rate for row in rows)
        self.scale = column(row.scale for row in rows)
        self.K = ca.jacobian(rates, v)
        self.v = self.at_rest
        self._set_given(self.v, self.builder.input("velocity", self.ports.velocity.size))
        # substitution avoids computing the motion of all bodies twice, which is half of the work
        self._set_dependent(self.v, ca.SX(ca.substitute([rates], [v], [ca.densify(self.v)])[0]))

    def _add_accelerations(self) -> None:
        self.a = self.at_rest
        self._set_given(self.a, self.builder.input("acceleration", self.ports.velocity.size))
        self._set_dependent(
            self.a, column(row.psi_acceleration for row in self.rows(self.v, self.a))
        )

    def _set_given(self, full: ca.SX, values: ca.SX) -> None:
        full[list(self.ports.v)] = ca.DM(self.ports.to_v) @ values

    def _set_dependent(self, full: ca.SX, residual: ca.SX) -> None:
        """Set the dependent entries x so that K x plus the residual (c,) without them is zero."""
        if self.dependent:
            full[self.dependent] = self.builder.solve(
                self.K[:, self.dependent], -residual, "loop velocities"
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
        """Return gamma (n_v,), the accelerations of all coordinates at a_given = 0.

        In general a = G a_given + gamma, with G as in `embedding`.
        """
        gamma = self.at_rest
        self._set_dependent(gamma, column(row.psi_acceleration for row in self.rows(self.v, gamma)))
        return gamma

    def multipliers(self, loads: ca.SX) -> ca.SX:
        """Return the multipliers (c, k) of the independent loop equations under loads (n_v, k)."""
        return self.loop_forces(loads) * ca.repmat(self.scale, 1, loads.size2())

    def loop_forces(self, loads: ca.SX) -> ca.SX:
        """Return the multipliers of the unscaled equations psi."""
        if not self.dependent:
            return ca.SX(0, loads.size2())
        return self.builder.solve(
            self.K[:, self.dependent].T, loads[self.dependent, :], "multipliers"
        )

    def add_loads(self) -> None:
        """Add payload and wrench at the tool to the inputs and to all forces (see `tool_load`)."""
        wrench = self.builder.input("wrench", WRENCH)
        payload = self.builder.input("payload", PAYLOAD)
        self._load = lambda motion: tool_load(motion, self.mechanism, wrench, payload)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ProgramSpec:
    """A program of the catalogue.

    Attributes:
        name: name of the program in texts.
        meaning: description of the results.
        build: function that builds the program from the state of the kinematics.
        inputs: ports of the motion and of loads, in addition to start values, parameters and
            weights. The kinematics includes the levels of these ports.
        outputs: outputs of interest, the main one first; the program may have others.
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
        """Highest level of the kinematics: positions (0), velocities (1) or accelerations (2)."""
        return sum(name in self.inputs for name in ("velocity", "acceleration"))


#: Ports of programs that need the motors.
_FORCES = frozenset(("force", "actuator_acceleration", "regressor"))


@final
class Catalogue:
    """The programs for the platform's or the actuators' motion of a machine, built on first use."""

    def __init__(
        self,
        assembly: Assembly,
        ports: EntryPorts,
        formulation: Formulation,
        free: tuple[str, ...] = (),
        *,
        share_expressions: bool = True,
    ) -> None:
        """Store the arguments of programs (see `MotionState`)."""
        self.assembly, self.ports, self.formulation, self.free = assembly, ports, formulation, free
        self._share_expressions = share_expressions
        self._programs: dict[ProgramSpec, Program] = {}
        # the state that programs with the same number of levels continue from
        self._states: dict[int, MotionState] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without programs, which another process builds again."""
        build = partial(Catalogue, share_expressions=self._share_expressions)
        return build, (self.assembly, self.ports, self.formulation, self.free)

    def with_formulation(self, formulation: Formulation, *, share_expressions: bool) -> Catalogue:
        """Return the programs with another formulation; the kinematics is built once for both."""
        other = Catalogue(
            self.assembly,
            self.ports,
            formulation,
            self.free,
            share_expressions=share_expressions,
        )
        other._states = self._states
        return other

    def at(self, assembly: Assembly) -> Catalogue:
        """Return the programs of the machine with another reference pose."""
        return Catalogue(
            assembly,
            self.ports,
            self.formulation,
            self.free,
            share_expressions=self._share_expressions,
        )

    def state(self, name: str, levels: int) -> MotionState:
        """Return the initial state of a program (see `MotionState`)."""
        if levels not in self._states:
            self._states[levels] = self._kinematics(levels)
        return self._states[levels].continued(
            name, levels, self.formulation, share_expressions=self._share_expressions
        )

    def _kinematics(self, levels: int) -> MotionState:
        """Return the state that programs continue from, from the state with one level less."""
        if levels:
            below = self.state("kinematics", levels - 1)
            return below.continued(
                "kinematics", levels, self.formulation, share_expressions=self._share_expressions
            )
        return MotionState(
            self.assembly,
            self.ports,
            "kinematics",
            levels,
            self.formulation,
            self.free,
            self._share_expressions,
        )

    def program(self, spec: ProgramSpec) -> Program:
        """Return a program of this machine.

        Raises:
            AssemblyError: the program contains forces of motors, but the machine file does not
                specify the motors.
        """
        if spec not in self._programs:
            needs_motors = not _FORCES.isdisjoint((*spec.inputs, *spec.outputs))
            if self.assembly.mechanism.unstated_motors and needs_motors:
                raise AssemblyError([unstated_motors(self.assembly)])
            with fast_operators():
                self._programs[spec] = spec.build(self.state(spec.name, spec.levels))
        return self._programs[spec]

    @cached_property
    def positions(self) -> Positions:
        """The solved position problem."""
        return self._state.positions

    @cached_property
    def branches(self) -> Branches:
        """The signs of roots of the closed forms (see `Branches`)."""
        return self._state.branches()

    @property
    def parameters(self) -> tuple[DynamicParameter, ...]:
        """Entries of pi."""
        return self._state.parameters

    @cached_property
    def _state(self) -> MotionState:
        return self.state("positions", 0)


def column(expressions: Iterable[ca.SX]) -> ca.SX:
    """Return expressions as one column, which may be empty."""
    return ca.SX(ca.vertcat(ca.SX(0, 1), *expressions))


def _samples(assembly: Assembly, ports: EntryPorts, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs, except velocities, at the assembled states, which choose the pivots."""
    count = len(assembly.states)
    return {
        "theta": np.repeat(theta[None], count, axis=0),
        "position": np.ascontiguousarray(ports.at(assembly.states)),
        "start": assembly.states,
        **{
            name: np.ones((count, len(assembly.mechanism.actuators)))
            for name in ("weight", "spread")
        },
        "preload": np.zeros((count, len(assembly.mechanism.cables))),
        "wrench": np.zeros((count, WRENCH)),
        "payload": np.zeros((count, PAYLOAD)),
    }


def require_inertia(M: ca.SX, ports: EntryPorts) -> None:
    """Raise an error if a mass matrix (m, m) has zeros on its diagonal.

    Raises:
        AssemblyError: velocities move no inertia, so accelerations are not determined.
    """
    diagonal = ca.diag(M)
    require_moved_inertia(
        name for i, name in enumerate(ports.velocity.columns) if diagonal[i].is_zero()
    )


def require_moved_inertia(idle: Iterable[str]) -> None:
    """Raise an error for velocities, given by name, that move no inertia."""
    what = "moves nothing with mass or inertia, so forces do not determine its acceleration"
    remedy = "give a body that it moves a mass, or its motor an inertia; or make the joint fixed"
    AssemblyError.raise_if_any(Problem(where=name, what=what, remedy=remedy) for name in idle)

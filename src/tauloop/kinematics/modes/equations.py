"""The position problem of a machine as polynomials in lengths, quaternions, cosines and sines.

An angle q enters as the pair (c, s) with c^2 + s^2 = 1, a rotation as a unit quaternion, so that
every loop equation is a polynomial. The equations are sorted into blocks, and each block is a
square system of its own with the unknowns of the blocks before it as parameters.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import AssemblyError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.builder import blocks
from tauloop.compiler.solving.position import PositionEquations, position_equations
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.freedoms.coordinates import independent_rows
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.topology import Topology
from tauloop.kinematics.homotopy.code import PrintedSystem
from tauloop.kinematics.homotopy.evaluation import ComplexFunction
from tauloop.kinematics.modes.gears import NO_GEARS, Gears, split_gears
from tauloop.mechanism.model import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Variables for the coordinates: one per length or quaternion component, two per angle.

    Attributes:
        columns: columns of each coordinate of q among the variables.
        scale: value of each coordinate per unit of its variable, m or 1.
        is_angle: whether each coordinate is an angle (its variables are cosine and sine).
        count: number of variables n_w.
        gears: angles that gears determine from free angles; the columns of the leading angles
            contain cosines and sines of the free angles.
    """

    columns: tuple[tuple[int, ...], ...]
    scale: np.ndarray
    is_angle: tuple[bool, ...]
    count: int
    gears: Gears = NO_GEARS

    @classmethod
    def of(cls, topology: Topology, length: float, gears: Gears = NO_GEARS) -> Variables:
        """Return the variables of a topology, lengths in units of the characteristic length."""
        columns: list[tuple[int, ...]] = []
        count = 0
        for is_angle in topology.is_angle:
            width = 2 if is_angle else 1
            columns.append(tuple(range(count, count + width)))
            count += width
        components = {j for q0, _ in topology.quaternions for j in range(q0, q0 + 4)}
        scale = np.array(
            [
                1.0 if is_angle or i in components else length
                for i, is_angle in enumerate(topology.is_angle)
            ]
        )
        return cls(
            columns=tuple(columns),
            scale=scale,
            is_angle=topology.is_angle,
            count=count,
            gears=gears,
        )

    def values(self, q: np.ndarray) -> np.ndarray:
        """Return the variables (N, n_w) of coordinates (N, n_q)."""
        w, q = np.empty((len(q), self.count)), np.array(q)
        q[:, list(self.gears.leaders)] = self.gears.free(q)
        for i, columns in enumerate(self.columns):
            if self.is_angle[i]:
                w[:, columns[0]], w[:, columns[1]] = np.cos(q[:, i]), np.sin(q[:, i])
            else:
                w[:, columns[0]] = q[:, i] / self.scale[i]
        return w

    def coordinates(self, w: np.ndarray) -> np.ndarray:
        """Return the coordinates (N, n_q) of real variables (N, n_w); angles in (-pi, pi]."""
        q = np.empty((len(w), len(self.columns)))
        for i, columns in enumerate(self.columns):
            if self.is_angle[i]:
                q[:, i] = np.arctan2(w[:, columns[1]], w[:, columns[0]])
            else:
                q[:, i] = w[:, columns[0]] * self.scale[i]
        q[:, list(self.gears.angles)] = self.gears.angles_at(q[:, list(self.gears.leaders)])
        return q


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSystem:
    """One block F(x, y) with unknown variables x and known variables y.

    Attributes:
        names: names of the equations, including c^2 + s^2 = 1 for each angle.
        coordinates: indices in q of the unknowns.
        unknown_columns: columns of x among all variables.
        known_columns: columns of y among all variables; earlier blocks determine them.
        is_loop: whether each equation is a loop equation (m,); the others require unit norms of
            pairs (c, s) and of quaternions.
        angles: positions in x of the cosine of every angle (its sine follows).
        spheres: for every quaternion with unknown components, the positions in x of these
            components and the columns in y of its known ones.
        function: (x, y, y') -> F, F_x, F_y y', where y' is the derivative along a path.
    """

    names: tuple[str, ...]
    coordinates: tuple[int, ...]
    unknown_columns: tuple[int, ...]
    known_columns: tuple[int, ...]
    is_loop: np.ndarray
    angles: tuple[int, ...]
    spheres: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    function: ComplexFunction

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (N, m), F_x (N, m, m) and F_y y' (N, m)."""
        F, J, rate = self.function(x, y, y_rate)
        return F[:, :, 0], J, rate[:, :, 0]

    def random(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return random complex x (n, m) that satisfy the unit norms at known variables y (k,)."""
        shape = (n, len(self.unknown_columns))
        x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        x *= 10.0 ** rng.uniform(*SPREAD, size=(n, 1))
        for i in self.angles:
            angle = rng.uniform(-np.pi, np.pi, n) + 0.7j * rng.normal(size=n)
            x[:, i], x[:, i + 1] = np.cos(angle), np.sin(angle)
        for unknown, known in self.spheres:
            columns = list(unknown)
            squared_norm = 1.0 - np.sum(y[list(known)] ** 2)
            sums = np.sum(x[:, columns] ** 2, axis=1, keepdims=True)
            x[:, columns] *= np.sqrt(squared_norm / sums)
        return x

    def canonical(self, x: np.ndarray) -> np.ndarray:
        """Return the points (n, m) with the sign of every unknown quaternion normalized.

        q and -q describe the same orientation.
        """
        x = np.array(x)
        for unknown, known in self.spheres:
            if known:
                continue
            columns = list(unknown)
            sign = np.where((x[:, columns] @ SIGN_WEIGHTS).real < 0, -1.0, 1.0)
            x[:, columns] *= sign[:, None]
        return x

    @property
    def printed(self) -> PrintedSystem:
        """The function without linear terms."""
        size = len(self.unknown_columns)
        return PrintedSystem(function=self.function.function, terms=np.zeros((0, size, size)))

    @property
    def is_traceable(self) -> bool:
        """False: solutions may go to infinity (see `homotopy_widening`)."""
        return False

    def random_known_variables(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the machine's known variables, repeated for n members (n, k)."""
        return np.tile(y, (n, 1))

    @property
    def terms(self) -> tuple[int, ...]:
        """Positions in x of the variables that get linear terms: lengths, cosines and sines.

        The tuple is empty if the block has both angles and quaternions. It is not known whether
        linear terms keep all solutions finite in that case.
        """
        quaternion_positions = {i for unknown, _ in self.spheres for i in unknown}
        if quaternion_positions and self.angles:
            return ()
        count = len(self.unknown_columns)
        return tuple(i for i in range(count) if i not in quaternion_positions)

    def invariants(self, x: np.ndarray) -> np.ndarray:
        """Return values (n, k) that do not depend on the signs of unknown quaternions.

        Such quaternions are replaced by the products of their components.
        """
        quaternions = [np.array(unknown) for unknown, known in self.spheres if not known]
        columns = np.concatenate([np.empty(0, dtype=int), *quaternions])
        values = [x[:, np.delete(np.arange(x.shape[1]), columns)]]
        for quaternion in quaternions:
            first, second = np.triu_indices(len(quaternion))
            values.append(x[:, quaternion[first]] * x[:, quaternion[second]])
        return np.concatenate(values, axis=1)


#: Range of the exponents of ten of random lengths, in characteristic lengths. Paths that start at
#: points of equal size reach few of the machine's solutions.
SPREAD = (-0.5, 1.0)
#: Arbitrary numbers; the real part of their product with a quaternion determines its sign.
SIGN_WEIGHTS = np.array([0.8147, 0.4058 + 0.1j, 0.1270 - 0.3j, 0.3134 + 0.2j])


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionProblem:
    """Loop equations for the unknown coordinates, given the others.

    Attributes:
        variables: conversion between coordinates and variables.
        known, unknown: indices in q of the given and the unknown coordinates.
        rows: indices of the loop equations that are solved; the others are redundant at assembled
            poses.
        blocks: systems in the order of their solution.
    """

    variables: Variables
    known: tuple[int, ...]
    unknown: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[BlockSystem, ...]


def _require_polynomials(mechanism: Mechanism) -> None:
    """Reject machines with equations that are not polynomials in coordinates, cosines and sines.

    Raises:
        AssemblyError: the machine has cams or lines on drums.
    """
    remedy = "follow the machine from its reference pose instead, without all modes"
    what = "is not a polynomial in coordinates, cosines and sines, so not all modes can be found"
    drums = [f"rods.{rod.name}.drum" for rod in mechanism.rods if rod.drum is not None]
    cams = [f"couplings.{c.name}.curves" for c in mechanism.couplings if c.curves]
    AssemblyError.raise_if_any(
        Problem(where=where, what=what, remedy=remedy, file=mechanism.file)
        for where in (*drums, *cams)
    )


def position_problem(
    assembly: Assembly,
    given_q: tuple[int, ...],
    given_v: tuple[int, ...],
    start: np.ndarray | None = None,
) -> PositionProblem:
    """Return the position problem in which some coordinates are given.

    Args:
        assembly: the assembled machine.
        given_q, given_v: indices of the given coordinates and of their velocities.
        start: coordinates (n_q,) that contain the given values; None for the reference pose.

    Raises:
        AssemblyError: the given coordinates do not determine the others, or an equation is not a
            polynomial: that of a cam, of a line on a drum, or of a gear (`split_gears`).
    """
    loops = assembly.loops
    topology, mechanism = loops.topology, loops.mechanism
    _require_polynomials(mechanism)
    given_q = (*given_q, *topology.coordinates_of(assembly.locked))
    given_v = (*given_v, *assembly.locked)
    unknown = tuple(i for i in range(topology.n_q) if i not in given_q)
    moving = [i for i in range(topology.n_v) if i not in given_v]
    rows = _rows(assembly, moving)
    equations = position_equations(mechanism, topology, nominal(mechanism), rows, unknown)
    if len(equations.names) != len(unknown):
        raise AssemblyError.of(
            mechanism.name,
            (
                f"{counted(len(unknown), 'coordinate', 'are')} unknown but only "
                f"{counted(len(equations.names), 'equation', 'are')} independent, so the given "
                "positions do not determine the pose"
            ),
            "drive as many coordinates as the machine has degrees of freedom, or lock the passive ones",
            file=mechanism.file,
        )
    near = assembly.q if start is None else start
    equations, gears = split_gears(equations, topology.is_angle, unknown, near, mechanism.file)
    variables = Variables.of(topology, loops.length, gears)
    builder = _EquationsBuilder(topology, equations, variables, loops.length)
    blocks = builder.blocks(tuple(i for i in unknown if i not in gears.followers))
    return PositionProblem(
        variables=variables, known=given_q, unknown=unknown, rows=rows, blocks=blocks
    )


def _rows(assembly: Assembly, moving: list[int]) -> tuple[int, ...]:
    """Return the loop equations that are independent in the unknown velocities.

    They are chosen at the assembled state with the best condition.
    """
    loops = assembly.loops
    if not loops.names or not moving:
        return ()
    _, K = loops.residuals(assembly.states)
    scaled = loops.scaled(K)[:, :, moving]
    sigma = np.linalg.svd(scaled, compute_uv=False)
    ranks = (sigma > ROW_RANK * sigma[:, :1]).sum(axis=1)
    rank = int(ranks.max())
    best = int(np.argmax(np.where(ranks == rank, sigma[:, rank - 1] / sigma[:, 0], 0.0)))
    return tuple(sorted(independent_rows(scaled[best][None], rank)))


#: Singular values of the dimensionless loop Jacobian below this fraction of the largest one count
#: as zero. It is far above rounding (1e-13) and far below the values of regular states (1e-3).
ROW_RANK = 1e-8


class _EquationsBuilder:
    """Builder of the position equations in terms of `Variables`."""

    def __init__(
        self, topology: Topology, equations: PositionEquations, variables: Variables, length: float
    ) -> None:
        self._topology = topology
        self._equations = equations
        self._variables = variables
        self._w = ca.SX.sym("w", variables.count)
        q, c, s = ca.SX(equations.q), ca.SX(equations.c), ca.SX(equations.s)
        for i, columns in enumerate(variables.columns):
            if variables.is_angle[i]:
                c[i], s[i] = self._w[columns[0]], self._w[columns[1]]
            else:
                q[i] = variables.scale[i] * self._w[columns[0]]
        leading = list(variables.gears.leaders)
        for i, pair in variables.gears.pairs(c[leading], s[leading]).items():
            c[i], s[i] = pair
        units = []
        for name, rod in zip(equations.names, equations.differences, strict=True):
            if " across " in name or name.endswith("unit quaternion"):
                units.append(1.0)
            else:
                units.append(length if rod is None else length**2)
        psi = ca.substitute([equations.psi], [equations.q, equations.c, equations.s], [q, c, s])[0]
        self._psi = psi / ca.DM(units) if units else psi
        self._is_norm = tuple(name.endswith("unit quaternion") for name in equations.names)

    def blocks(self, unknown: tuple[int, ...]) -> tuple[BlockSystem, ...]:
        """Return one system for each block of the block triangular form."""
        if not unknown:
            return ()
        incidence = ca.DM(len(unknown), len(unknown))
        pattern = _pattern(self._psi, self._w)
        for j, i in enumerate(unknown):
            for r in np.flatnonzero(pattern[:, list(self._variables.columns[i])].any(axis=1)):
                incidence[int(r), j] = 1
        followers = self._variables.gears.followers
        solved = [i for i in range(self._topology.n_q) if i not in unknown and i not in followers]
        ordered = []
        for block in blocks(ca.sparsify(incidence).sparsity()):
            block_unknowns = tuple(unknown[j] for j in block.columns)
            ordered.append(self._system(block.rows, block_unknowns, solved))
            solved += block_unknowns
        return tuple(ordered)

    def _system(
        self, rows: tuple[int, ...], unknown: tuple[int, ...], solved: list[int]
    ) -> BlockSystem:
        """Return the system of some equations and coordinates; `solved` are known coordinates."""
        columns, names = self._variables.columns, self._equations.names
        x_columns = [column for i in unknown for column in columns[i]]
        psi = self._psi[list(rows)]
        circles, circle_names, angles = [], [], []
        for i in unknown:
            if self._variables.is_angle[i]:
                c, s = columns[i]
                circles.append((self._w[c] ** 2 + self._w[s] ** 2 - 1) / 2)
                circle_names.append(f"{self._topology.coordinate_names[i]}: cosine and sine")
                angles.append(x_columns.index(c))
        F = ca.vertcat(psi, *circles)
        pattern: np.ndarray = np.asarray(_pattern(F, self._w).any(axis=0))
        known = [column for i in sorted(solved) for column in columns[i] if pattern[column]]
        spheres = []
        for q0, _ in self._topology.quaternions:
            components = [i for i in range(q0, q0 + 4) if i in unknown]
            if components:
                others = [columns[i][0] for i in range(q0, q0 + 4) if i not in unknown]
                spheres.append(
                    (
                        tuple(x_columns.index(columns[i][0]) for i in components),
                        tuple(known.index(k) for k in others),
                    )
                )
        x = ca.SX.sym("x", len(x_columns))
        y = ca.SX.sym("y", len(known))
        y_rate = ca.SX.sym("r", len(known))
        w = ca.SX(self._w)
        w[x_columns] = x
        if known:
            w[known] = y
        F = ca.substitute([F], [self._w], [w])[0]
        outputs = [F, ca.jacobian(F, x), ca.jtimes(F, y, y_rate) if known else ca.SX(F.size1(), 1)]
        function = ca.Function(
            "block", [x, y, y_rate], [ca.densify(output) for output in outputs], {"cse": True}
        )
        return BlockSystem(
            names=(*(names[r] for r in rows), *circle_names),
            coordinates=unknown,
            unknown_columns=tuple(x_columns),
            known_columns=tuple(known),
            is_loop=np.array([not self._is_norm[r] for r in rows] + [False] * len(circles)),
            angles=tuple(angles),
            spheres=tuple(spheres),
            function=ComplexFunction(function),
        )


def _pattern(expression: ca.SX, symbols: ca.SX) -> np.ndarray:
    """Return which rows of an expression contain which symbols."""
    return np.array(ca.DM(ca.jacobian_sparsity(expression, symbols), 1).full(), dtype=bool)

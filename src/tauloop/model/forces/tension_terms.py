"""Cable tensions at given states by numerical linear algebra: margins, and the missing wrench.

The results are independent of the programs (`compiler.functions.tensions`): they use singular
values instead of reflections, and the numerical loop Jacobian instead of straight-line code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.functions.tensions import LimitedWinch, limited_winches, multiplier_rows
from tauloop.compiler.functions.tool import WRENCH, tool_jacobian
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.assembly.nearest import margin, nearest
from tauloop.equations.ports import MAX_LISTED, EntryPorts, numbers
from tauloop.equations.tree import Configuration
from tauloop.equations.values import BatchFunction

#: A single wrench of zeros.
NO_WRENCH = ((0.0,) * WRENCH,)
#: Weight of the change of forces in each proximal iteration for the missing wrench, as a fraction
#: of the largest singular value of the map from forces to wrenches. Each iteration multiplies the
#: error by about the square of this weight.
PROXIMAL_WEIGHT = 1e-3
#: Maximum number of these iterations.
MAX_ITERATIONS = 100
#: The iterations end when forces change by less than this fraction of the largest force.
FORCE_CHANGE_TOLERANCE = 1e-12
#: Components of missing forces below this fraction of the largest one are not listed.
MIN_LISTED_FRACTION = 1e-6
#: The distance of tensions from their bounds is reduced by this fraction of the largest bound, so
#: that rounding errors do not make the conditions infeasible.
CENTERING_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TensionTerms:
    """Tensions T = T_0 - C u under actuator forces u, and the balance R^T u = t, of N samples.

    Attributes:
        names: names of the cables (k).
        motions: names of the m motions on which the forces t act.
        units: units of the forces t.
        scale: factors (m,) that make the forces t comparable: the characteristic length for forces
            in N, and one for moments in N m.
        least, greatest: lower and upper bounds of the tensions (k,), N.
        limited: actuators that wind cables and have a maximum force, which also bounds tensions.
        G: velocities of all coordinates per unit of these motions (N, n_v, m).
        R: velocities of the actuators per unit of these motions (N, n_u, m).
        t: forces (N, m) that the actuators and cables must exert.
        pulls: C (N, k, n_u), the negative tension per unit of each actuator force.
        unforced: T_0 (N, k), tensions without actuator forces, N.
    """

    names: tuple[str, ...]
    motions: tuple[str, ...]
    units: tuple[str, ...]
    scale: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    limited: tuple[LimitedWinch, ...]
    G: np.ndarray
    R: np.ndarray
    t: np.ndarray
    pulls: np.ndarray
    unforced: np.ndarray

    def loaded(self, tool: np.ndarray, wrench: np.ndarray) -> TensionTerms:
        """Return the terms with an additional wrench on the tool.

        Args:
            tool: velocities of the tool per unit of all velocities (N, 6, n_v).
            wrench: force and moment (6,) in the base frame, N and N m.
        """
        return replace(self, t=self.t - np.einsum("nwv,nvm,w->nm", tool, self.G, wrench))

    def shared(self, share: float) -> TensionTerms:
        """Return the terms with upper bounds of tensions and winch forces times a factor."""
        limited = tuple(
            replace(winch, max_tension=share * winch.max_tension) for winch in self.limited
        )
        return replace(self, greatest=share * self.greatest, limited=limited)

    def conditions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the bounds as conditions G y >= h on forces u + directions y that cause the motion.

        Returns:
            u (N, n_u), directions (N, n_u, r), G (N, n, r) and h (N, n), N.
        """
        U, _, _ = np.linalg.svd(self.R, full_matrices=True)
        force = np.einsum("num,nm->nu", np.linalg.pinv(self.R.transpose(0, 2, 1)), self.t)
        directions = U[:, :, self.R.shape[2] :]
        return force, directions, *self._bounds(directions, force)

    def margin(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest distance of all tensions from their bounds, and the limiting cable.

        The distance is the largest m with least + m <= T <= greatest - m. Winches have the same
        distance from their maximum forces, expressed as tension.

        Returns:
            The distance (N,), N: negative if the bounds cannot be satisfied, infinite if there are
            no bounds; and the index of the cable (N,) that limits the distance, -1 if there is
            none.
        """
        distance, weights = margin(*self.conditions()[2:])
        return distance, np.where(np.isfinite(distance), self.limiting_cable(weights), -1)

    def limiting_cable(self, weights: np.ndarray) -> np.ndarray:
        """Return the indices of the cables (N,) whose conditions have the largest weights (N, n)."""
        sums = [weights[:, self._bounded == k].sum(axis=1) for k in range(len(self.names))]
        return np.argmax(np.stack(sums, axis=1), axis=1)

    def centered(self) -> tuple[np.ndarray, np.ndarray]:
        """Return forces (N, n_u) and tensions (N, k), N, of the motion, far from all bounds.

        The distance from the bounds is maximal. If the bounds cannot be satisfied, the violation is
        minimal.
        """
        force, directions, rows, sides = self.conditions()
        distance, _ = margin(rows, sides)
        reduction = CENTERING_TOLERANCE * np.abs(sides).max(axis=1, initial=0.0)
        distance = np.where(np.isfinite(distance), distance - reduction, 0.0)
        y = nearest(rows, sides + distance[:, None]).point
        force = force + np.einsum("nur,nr->nu", directions, y)
        return force, self.unforced - np.einsum("nku,nu->nk", self.pulls, force)

    def missing(self) -> np.ndarray:
        """Return the part of the forces t (N, m) that cables within their bounds cannot exert.

        The part t - R^T u minimizes |scale (t - R^T u)| over the forces u within the bounds. It is
        computed by proximal iterations.
        """
        n, n_u, _ = self.R.shape
        wrench_map = self.scale[:, None] * self.R.transpose(0, 2, 1)
        size = np.linalg.norm(wrench_map, ord=2, axis=(1, 2))
        weight = PROXIMAL_WEIGHT * size
        force = np.zeros((n, n_u))
        E = np.concatenate([wrench_map, weight[:, None, None] * np.eye(n_u)], axis=1)
        Q, T = np.linalg.qr(E)
        inverse = np.linalg.inv(T)
        for _ in range(MAX_ITERATIONS):
            f = np.concatenate([self.scale * self.t, weight[:, None] * force], axis=1)
            free = np.einsum("nij,nj->ni", inverse, np.einsum("nij,ni->nj", Q, f))
            correction = nearest(*self._bounds(inverse, free)).point
            new_force = free + np.einsum("nij,nj->ni", inverse, correction)
            change = np.abs(new_force - force).max(initial=0.0)
            force = new_force
            if change <= FORCE_CHANGE_TOLERANCE * np.abs(force).max(initial=0.0):
                break
        return np.asarray(self.t - np.einsum("num,nu->nm", self.R, force))

    def _bounds(self, directions: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of u = force + directions y as G y >= h.

        The bounds are those of tensions, and those of winch forces expressed as tension.
        """
        change = -self.pulls @ directions
        tension = self.unforced - np.einsum("nku,nu->nk", self.pulls, force)
        has_maximum = np.flatnonzero(np.isfinite(self.greatest))
        winches = [winch.index for winch in self.limited]
        ratio = np.array([winch.ratio for winch in self.limited])
        winch_change = ratio[:, None] * directions[:, winches]
        winch_tension = ratio * force[:, winches]
        limit = np.array([winch.max_tension for winch in self.limited])
        rows = [change, -change[:, has_maximum], winch_change, -winch_change]
        sides = [
            self.least - tension,
            tension[:, has_maximum] - self.greatest[has_maximum],
            -limit - winch_tension,
            winch_tension - limit,
        ]
        return np.concatenate(rows, axis=1), np.concatenate(sides, axis=1)

    @property
    def _bounded(self) -> np.ndarray:
        """Index of the cable of each bound."""
        wound = [winch.cable for winch in self.limited]
        return np.concatenate(
            [np.arange(len(self.names)), np.flatnonzero(np.isfinite(self.greatest)), wound, wound]
        )

    def problems(self, samples: np.ndarray, count: int, what: str) -> list[Problem]:
        """Return a problem for samples at which the bounds cannot be satisfied.

        Args:
            samples: indices (N,) of these samples among all samples.
            count: number of all samples.
            what: name of the motion or pose, for the message.
        """
        margins, cables_at_limit = self.margin()
        missing = self.missing()
        problems = Problems()
        limits = " and those of the winches' forces" if self.limited else ""
        for i, sample in enumerate(samples[:MAX_LISTED]):
            prefix = f"sample {sample} of {count}: " if count > 1 else ""
            tolerance = MIN_LISTED_FRACTION * np.abs(missing[i]).max()
            components = ", ".join(
                f"{name} {value:.4g} {unit}"
                for name, value, unit in zip(self.motions, missing[i], self.units, strict=True)
                if abs(value) > tolerance
            )
            cable = cables_at_limit[i]
            first = "" if cable < 0 else f" ({self.names[cable]} first)"
            problems.add(
                "tension",
                f"{prefix}no tensions within their bounds{limits} produce this {what}: the "
                f"smallest violation is {-margins[i]:.4g} N{first}; missing forces: {components}",
                "stay where the cables can hold the load (`tauloop workspace`), move slower, or "
                "change the bounds",
            )
        return problems


def loaded_margin(
    assembly: Assembly, terms: TensionTerms, q: np.ndarray, wrenches: Sequence[Sequence[float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest margin over wrenches at the tool, and the limiting cable.

    Args:
        assembly: the machine.
        terms: terms of N samples without these wrenches.
        q: coordinates (N, n_q).
        wrenches: forces and moments (k, 6) in the base frame, N and N m.

    Returns:
        Margins (N,) and indices of cables (N,), as in `TensionTerms.margin`.

    Raises:
        InputError: a wrench is not six finite numbers.
    """
    loads = numbers(wrenches, "wrenches")
    if (
        loads.ndim != 2
        or loads.shape[1] != WRENCH
        or not len(loads)
        or not np.isfinite(loads).all()
    ):
        what = f"are not rows of six finite numbers (shape {loads.shape})"
        raise InputError.of("wrenches", what, "give rows of fx, fy, fz (N), mx, my, mz (N m)")
    mechanism, topology = assembly.mechanism, assembly.topology
    symbol = ca.SX.sym("q", q.shape[1])
    J_q = tool_jacobian(mechanism, topology, nominal(mechanism), Configuration(symbol, {}))
    function = ca.Function("tool", [symbol], [ca.vec(ca.densify(J_q))])
    (tool,) = BatchFunction(function)([q], len(q))
    J = tool.reshape(len(q), topology.n_v, WRENCH).transpose(0, 2, 1)
    results = [terms.loaded(J, load).margin() for load in loads]
    margins, cables_at_limit = (np.stack(values) for values in zip(*results, strict=True))
    worst = np.argmin(margins, axis=0)[None]
    margin_of_worst = np.take_along_axis(margins, worst, axis=0)[0]
    return margin_of_worst, np.take_along_axis(cables_at_limit, worst, axis=0)[0]


def tension_terms(
    assembly: Assembly, ports: EntryPorts, count: int, q: np.ndarray, tree_force: np.ndarray
) -> TensionTerms:
    """Return the terms of N samples.

    Args:
        assembly: the machine.
        ports: ports of the given motion.
        count: number of its leading velocities that actuators drive (the others are passive).
        q: coordinates (N, n_q).
        tree_force: M a + h (N, n_v).

    Raises:
        AssemblyError: the tension of a cable is not determined.
    """
    loops, topology = assembly.loops, assembly.topology
    bounds = loops.mechanism.cables
    _, K = loops.residuals(q)
    dependent = [i for i in range(topology.n_v) if i not in ports.v and i not in assembly.frozen]
    K = K[:, list(assembly.rows)]
    columns = np.zeros((topology.n_v, ports.velocity.size))
    columns[list(ports.v)] = ports.to_v
    G = np.broadcast_to(columns, (len(q), *columns.shape)).copy()
    if dependent:
        G[:, dependent] = -np.linalg.solve(K[:, :, dependent], K @ columns)
    G = G[:, :, :count]
    S = loops.transmission.T
    lengths = {rod.name: iv for rod, _, iv in topology.telescopes}
    pulls = np.zeros((len(q), len(bounds), S.shape[1]))
    unforced = np.zeros((len(q), len(bounds)))
    fixed = [name for name in bounds if name not in lengths]
    rows = dict(zip(fixed, multiplier_rows(assembly, fixed), strict=True))
    multipliers = np.zeros((len(q), len(assembly.rows), 1 + S.shape[1]))
    if fixed:
        loads = np.concatenate(
            [tree_force[:, :, None], np.broadcast_to(S, (len(q), *S.shape))], axis=2
        )
        multipliers = np.linalg.solve(K[:, :, dependent].transpose(0, 2, 1), loads[:, dependent])
    for k, name in enumerate(bounds):
        if name in lengths:
            pulls[:, k] = S[lengths[name]]
            unforced[:, k] = tree_force[:, lengths[name]]
        else:
            pulls[:, k] = -multipliers[:, rows[name], 1:]
            unforced[:, k] = -multipliers[:, rows[name], 0]
    units = tuple("N" if unit == "m/s" else "N m" for unit in ports.velocity.units[:count])
    return TensionTerms(
        names=tuple(bounds),
        motions=ports.velocity.columns[:count],
        units=units,
        scale=np.array([loops.length if unit == "N" else 1.0 for unit in units]),
        least=np.array([bound.least for bound in bounds.values()]),
        greatest=np.array([bound.greatest for bound in bounds.values()]),
        limited=limited_winches(loops.mechanism),
        G=G,
        R=loops.transmission @ G,
        t=np.einsum("nvm,nv->nm", G, tree_force),
        pulls=pulls,
        unforced=unforced,
    )

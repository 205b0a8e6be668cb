"""What cables can exert at given states, by linear algebra on numbers: margins, and the wrench that is missing.

It takes another route than the programs (`tensions`): singular values in place of reflections, and
the loops' Jacobian at the state in place of straight-line code.
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
from tauloop.mechanism.bodies import cables

#: No wrench at all.
NO_WRENCH = ((0.0,) * WRENCH,)
#: Weight of staying near the last forces, of the largest singular value of what forces exert, while
#: the missing wrench is looked for: each round leaves the square of it of the error.
STAYING = 1e-3
#: Rounds after which the missing wrench is taken as it is, and the change (of the largest force)
#: that ends them.
ROUNDS, SETTLED = 100, 1e-12

#: Tensions in the middle of their bounds come as near to the middle as this share of the largest
#: figure.
CENTRED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TensionTerms:
    """Tensions T = T_0 - C u and the balance R^T u = t of N samples.

    Attributes:
        names: of the cables (k).
        motions, units: names of the motions on which forces are needed (m), and units of these
            forces.
        scale: what makes the needed forces comparable: the characteristic length for those in N,
            one for N m (m,).
        least, greatest: bounds (k,), N.
        limited: actuators that wind cables and have a largest force, which bounds tensions too.
        G: velocities of all coordinates per unit of these motions (N, n_v, m).
        R: (N, n_u, m).
        t: (N, m).
        pulls: C (N, k, n_u).
        unforced: T_0 (N, k).
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
        """The same with a force and moment (6,) that acts at the tool, in the base frame.

        Args:
            tool: velocities of the tool per unit of all velocities (N, 6, n_v).
            wrench: N and N m.
        """
        return replace(self, t=self.t - np.einsum("nwv,nvm,w->nm", tool, self.G, wrench))

    def shared(self, share: float) -> TensionTerms:
        """The same with this share of the greatest tensions and of the winches' forces."""
        limited = tuple(replace(winch, tension=share * winch.tension) for winch in self.limited)
        return replace(self, greatest=share * self.greatest, limited=limited)

    def conditions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the bounds ask of forces u + directions y that give the motion: G y >= h.

        Returns:
            u (N, n_u), directions (N, n_u, r), G (N, n, r) and h (N, n), N.
        """
        U, _, _ = np.linalg.svd(self.R, full_matrices=True)
        force = np.einsum("num,nm->nu", np.linalg.pinv(self.R.transpose(0, 2, 1)), self.t)
        directions = U[:, :, self.R.shape[2] :]
        return force, directions, *self._bounds(directions, force)

    def margin(self) -> tuple[np.ndarray, np.ndarray]:
        """How far tensions can stay within all their bounds at once (N,), N, and which cable bounds it most (N,).

        max m with least + m <= T <= greatest - m, and the tensions that winches could exert further
        as far from their largest forces; negative where the bounds cannot be kept, infinite (and
        -1) where nothing bounds it.
        """
        distance, weights = margin(*self.conditions()[2:])
        return distance, np.where(np.isfinite(distance), self.blamed(weights), -1)

    def blamed(self, weights: np.ndarray) -> np.ndarray:
        """Numbers of the cables (N,) whose bounds have the largest weights (N, n) of conditions."""
        shares = [weights[:, self._bounded == k].sum(axis=1) for k in range(len(self.names))]
        return np.argmax(np.stack(shares, axis=1), axis=1)

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """Forces (N, n_u) that give the motion, and tensions (N, k), N, as far from all their bounds as can be.

        Where the bounds cannot be kept, they are missed by as little as possible.
        """
        force, directions, rows, sides = self.conditions()
        distance, _ = margin(rows, sides)
        distance = np.where(
            np.isfinite(distance), distance - CENTRED * np.abs(sides).max(axis=1, initial=0.0), 0.0
        )
        force = force + np.einsum(
            "nur,nr->nu", directions, nearest(rows, sides + distance[:, None]).point
        )
        return force, self.unforced - np.einsum("nku,nu->nk", self.pulls, force)

    def missing(self) -> np.ndarray:
        """The least part of the needed forces (N, m) that cables within their bounds cannot exert.

        min |scale (t - R^T u)| over the forces u that keep the bounds, by steps that each stay near
        the last.
        """
        n, n_u, _ = self.R.shape
        exerts = self.scale[:, None] * self.R.transpose(0, 2, 1)
        size = np.linalg.norm(exerts, ord=2, axis=(1, 2))
        force = np.zeros((n, n_u))
        E = np.concatenate([exerts, STAYING * size[:, None, None] * np.eye(n_u)], axis=1)
        Q, T = np.linalg.qr(E)
        inverse = np.linalg.inv(T)
        for _ in range(ROUNDS):
            f = np.concatenate([self.scale * self.t, STAYING * size[:, None] * force], axis=1)
            free = np.einsum("nij,nj->ni", inverse, np.einsum("nij,ni->nj", Q, f))
            following = free + np.einsum(
                "nij,nj->ni", inverse, nearest(*self._bounds(inverse, free)).point
            )
            change = np.abs(following - force).max(initial=0.0)
            force = following
            if change <= SETTLED * np.abs(force).max(initial=0.0):
                break
        return np.asarray(self.t - np.einsum("num,nu->nm", self.R, force))

    def _bounds(self, directions: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of u = force + directions y as G y >= h: of tensions, and of winches, counted in tension."""
        change, tension = (
            -self.pulls @ directions,
            self.unforced - np.einsum("nku,nu->nk", self.pulls, force),
        )
        above = np.flatnonzero(np.isfinite(self.greatest))
        winches, ratio = (
            [winch.index for winch in self.limited],
            np.array([winch.ratio for winch in self.limited]),
        )
        along, held = ratio[:, None] * directions[:, winches], ratio * force[:, winches]
        most = np.array([winch.tension for winch in self.limited])
        rows = [change, -change[:, above], along, -along]
        sides = [
            self.least - tension,
            tension[:, above] - self.greatest[above],
            -most - held,
            held - most,
        ]
        return np.concatenate(rows, axis=1), np.concatenate(sides, axis=1)

    @property
    def _bounded(self) -> np.ndarray:
        """Which cable each of the bounds belongs to."""
        wound = [winch.cable for winch in self.limited]
        return np.concatenate(
            [np.arange(len(self.names)), np.flatnonzero(np.isfinite(self.greatest)), wound, wound]
        )

    def problems(self, samples: np.ndarray, count: int, what: str) -> list[Problem]:
        """What is missing at samples where the bounds cannot be kept.

        Args:
            samples: their numbers among all (N,).
            count: how many samples there are in all.
            what: of what they are samples.
        """
        margins, blamed = self.margin()
        missing = self.missing()
        problems, forces = Problems(), " and those of the winches' forces" if self.limited else ""
        for i, sample in enumerate(samples[:MAX_LISTED]):
            at = f"sample {sample} of {count}: " if count > 1 else ""
            parts = [
                f"{name} {value:.4g} {unit}"
                for name, value, unit in zip(self.motions, missing[i], self.units, strict=True)
                if abs(value) > 1e-6 * np.abs(missing[i]).max()
            ]
            bound = "" if blamed[i] < 0 else f" ({self.names[blamed[i]]} first)"
            problems.add(
                "tension",
                f"{at}no tensions within their bounds{forces} give this {what}: they miss them by "
                f"{-margins[i]:.4g} N at best{bound}; missing from what it needs: {', '.join(parts)}",
                "stay where the cables can hold the load (`tauloop workspace`), move slower, or change the bounds",
            )
        return problems


def loaded_margin(
    assembly: Assembly, terms: TensionTerms, q: np.ndarray, wrenches: Sequence[Sequence[float]]
) -> tuple[np.ndarray, np.ndarray]:
    """The least margin (N,) over wrenches at the tool, and the cable that bounds it (N,), as `TensionTerms.margin`.

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
    mechanism, topology, at = assembly.mechanism, assembly.topology, ca.SX.sym("q", q.shape[1])
    J_q = ca.vec(
        ca.densify(tool_jacobian(mechanism, topology, nominal(mechanism), Configuration(at, {})))
    )
    (tool,) = BatchFunction(ca.Function("tool", [at], [J_q]))([q], len(q))
    J = tool.reshape(len(q), assembly.topology.n_v, WRENCH).transpose(0, 2, 1)
    results = [terms.loaded(J, load).margin() for load in loads]
    margins, blamed = (np.stack(part) for part in zip(*results, strict=True))
    worst = np.argmin(margins, axis=0)[None]
    return np.take_along_axis(margins, worst, axis=0)[0], np.take_along_axis(blamed, worst, axis=0)[
        0
    ]


def tension_terms(
    assembly: Assembly, ports: EntryPorts, count: int, q: np.ndarray, tree_force: np.ndarray
) -> TensionTerms:
    """Terms of samples.

    Args:
        assembly: the machine.
        ports: whose motions need forces.
        count: how many of its velocities, from the first on, actuators bring about (the rest is
            passive).
        q: coordinates (N, n_q).
        tree_force: M a + h (N, n_v).

    Raises:
        AssemblyError: the tension of a cable is not determined.
    """
    loops, topology = assembly.loops, assembly.topology
    bounds = cables(loops.mechanism)
    _, K = loops.residuals(q)
    dependent = [i for i in range(topology.n_v) if i not in ports.v and i not in assembly.frozen]
    kept = K[:, list(assembly.rows)]
    columns = np.zeros((topology.n_v, ports.velocity.size))
    columns[list(ports.v)] = ports.to_v
    G = np.broadcast_to(columns, (len(q), *columns.shape)).copy()
    if dependent:
        G[:, dependent] = -np.linalg.solve(kept[:, :, dependent], kept @ columns)
    G = G[:, :, :count]
    S = loops.transmission.T
    lengths = {rod.name: iv for rod, _, iv in topology.telescopes}
    pulls, unforced = np.zeros((len(q), len(bounds), S.shape[1])), np.zeros((len(q), len(bounds)))
    fixed = [name for name in bounds if name not in lengths]
    rows = dict(zip(fixed, multiplier_rows(assembly, fixed), strict=True))
    multipliers = np.zeros((len(q), len(assembly.rows), 1 + S.shape[1]))
    if fixed:
        loads = np.concatenate(
            [tree_force[:, :, None], np.broadcast_to(S, (len(q), *S.shape))], axis=2
        )
        multipliers = np.linalg.solve(kept[:, :, dependent].transpose(0, 2, 1), loads[:, dependent])
    for k, name in enumerate(bounds):
        if name in lengths:
            pulls[:, k], unforced[:, k] = S[lengths[name]], tree_force[:, lengths[name]]
        else:
            pulls[:, k], unforced[:, k] = (
                -multipliers[:, rows[name], 1:],
                -multipliers[:, rows[name], 0],
            )
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

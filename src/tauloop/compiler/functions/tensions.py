"""Tensions of cables in programs, and the actuator forces that keep them within bounds.

The tension of a cable is minus the multiplier of its loop equation. It is affine in the actuator
forces: T = T_0 - C u. With redundant actuation, u = u_1 + N y with R^T u_1 = t and R^T N = 0. The
program chooses the y for which u is nearest to the desired forces (`nearest`), the tensions are
within their bounds, and winches are within their force limits. The desired force of a winch holds
its cable at the preload, p = (T_0 - preload) / c, with c the entry of C for this cable and winch.
The desired force of other actuators is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.expressions import MotionState
from tauloop.equations.assembly.assembly import Assembly
from tauloop.mechanism.model import Mechanism, Tension


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedWinch:
    """An actuator that winds cables and has a force limit.

    Attributes:
        index: index among the actuators.
        cable: index, among the cables, of the first cable that the actuator winds.
        ratio: tension of that cable per unit of the actuator's force, positive.
        max_tension: tension of that cable at the force limit, N.
    """

    index: int
    cable: int
    ratio: float
    max_tension: float


def limited_winches(mechanism: Mechanism) -> tuple[LimitedWinch, ...]:
    """Return the actuators that wind cables and have a force limit."""
    names, winches = list(mechanism.cables), []
    for i, actuator in enumerate(mechanism.actuators):
        wound = [
            (names.index(name), abs(mechanism.value(r)))
            for name, r in actuator.drives
            if name in names
        ]
        if wound and np.isfinite(actuator.force):
            (cable, ratio), *_ = wound
            winches.append(
                LimitedWinch(index=i, cable=cable, ratio=ratio, max_tension=ratio * actuator.force)
            )
    return tuple(winches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensions:
    """Tensions T = T_0 - C u of a machine's cables.

    Attributes:
        bounds: bounds by name of the rod, in the order of the rows.
        unforced: T_0 (k,), N.
        pulls: C (k, n_u), the negative tension per unit of each actuator force.
        winches: for each cable, the index of the actuator that drives this cable and nothing else;
            None if there is no such actuator.
        limited: actuators that wind cables and have a force limit.
    """

    bounds: dict[str, Tension]
    unforced: ca.SX
    pulls: ca.SX
    winches: tuple[int | None, ...]
    limited: tuple[LimitedWinch, ...]

    def at(self, force: ca.SX) -> ca.SX:
        """Return tensions (k,) at actuator forces (n_u,)."""
        return self.unforced - self.pulls @ force

    def wanted(self, preload: ca.SX) -> ca.SX:
        """Return desired actuator forces p (n_u,): winches hold preloads (k,), others are zero."""
        wanted = ca.SX(self.pulls.size2(), 1)
        for k, winch in enumerate(self.winches):
            if winch is not None:
                wanted[winch] = (self.unforced[k] - preload[k]) / self.pulls[k, winch]
        return wanted

    def conditions(self, force: ca.SX, directions: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the bounds as G y >= h for u = force + directions y.

        The rows are minimum tensions, maximum tensions where they exist, then force limits of
        winches in units of tension.
        """
        tension, change = self.at(force), -self.pulls @ directions
        bounds = list(self.bounds.values())
        least = ca.SX(ca.DM([bound.least for bound in bounds]))
        rows, sides = [change], [least - tension]
        for k, bound in enumerate(bounds):
            if np.isfinite(bound.greatest):
                rows.append(-change[k, :])
                sides.append(tension[k] - bound.greatest)
        for winch in self.limited:
            tension_change = winch.ratio * directions[winch.index, :]
            tension_now = winch.ratio * force[winch.index]
            rows += [tension_change, -tension_change]
            sides += [-winch.max_tension - tension_now, tension_now - winch.max_tension]
        return ca.SX(ca.vertcat(*rows)), ca.SX(ca.vertcat(*sides))


def winches(mechanism: Mechanism) -> tuple[int | None, ...]:
    """Return, for each cable, the index of the actuator that drives this cable and nothing else.

    It is None if there is no such actuator, or if several actuators drive the cable.
    """
    indices: list[int | None] = []
    for name in mechanism.cables:
        drivers = [
            i for i, actuator in enumerate(mechanism.actuators) if name in dict(actuator.drives)
        ]
        has_own_winch = len(drivers) == 1 and len(mechanism.actuators[drivers[0]].drives) == 1
        indices.append(drivers[0] if has_own_winch else None)
    return tuple(indices)


def multiplier_rows(assembly: Assembly, names: Sequence[str]) -> list[int]:
    """Return the indices of rods' equations among the independent loop equations.

    Raises:
        AssemblyError: the equation of a rod is redundant, so its force is not determined.
    """
    elements = [assembly.loops.elements[i] for i in assembly.rows]
    AssemblyError.raise_if_any(
        Problem(
            where=name,
            what="is a cable, but other rods and joints constrain the same motion, so its tension "
            "is not determined",
            remedy="remove the redundant constraint, or drive the cable with a winch "
            "(`telescopic: true` and an actuator); for simulation, you can instead give the cable "
            "a stiffness",
            file=assembly.mechanism.file,
        )
        for name in names
        if name not in elements
    )
    return [elements.index(name) for name in names]


def tensions(state: MotionState, tau: ca.SX) -> Tensions:
    """Return the tensions of the cables from the balance M a + h = S u + K^T lambda.

    Args:
        state: symbolic state of the motion; linear solves are appended to its program.
        tau: tree forces M a + h (n_v,).

    Raises:
        AssemblyError: the tension of a cable of fixed length is not determined.
    """
    S, scale = state.transmission.T, state.scale
    bounds = state.mechanism.cables
    lengths = {rod.name: iv for rod, _, iv in state.topology.telescopes}
    unforced, pulls = ca.SX(len(bounds), 1), ca.SX(len(bounds), S.size2())
    fixed = [name for name in bounds if name not in lengths]
    rows = multiplier_rows(state.assembly, fixed)
    multipliers = ca.SX(state.K.size1(), 1 + S.size2())
    if fixed:
        right = ca.horzcat(tau, S)[state.dependent, :]
        multipliers = state.builder.solve(state.K[:, state.dependent].T, right, "multipliers")
    for k, name in enumerate(bounds):
        if name in lengths:
            unforced[k], pulls[k, :] = tau[lengths[name]], S[lengths[name], :]
        else:
            row = rows[fixed.index(name)]
            unforced[k] = -multipliers[row, 0] * scale[row]
            pulls[k, :] = -multipliers[row, 1:] * scale[row]
    return Tensions(
        bounds=bounds,
        unforced=unforced,
        pulls=ca.sparsify(pulls),
        winches=winches(state.mechanism),
        limited=limited_winches(state.mechanism),
    )

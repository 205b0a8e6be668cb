"""Symbols of a state for derivatives along the motion and in the direction of velocities.

Only this module creates symbols inside equations. Energies and momenta are written in these symbols
and differentiated. Then the caller's expressions replace the symbols, so that the result depends on
these expressions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar

import casadi as ca

from tauloop.equations.inertial_elements import InertialElement, inertial_elements
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import Entries, Values
from tauloop.mechanism.model import Mechanism

Result = TypeVar("Result")


class StateSymbols:
    """Symbols x = (q, cosines, sines), v and a, with x' = N(x) v.

    The cosine c and sine s of an angle are symbols in addition to the angle, with rates -s v and
    c v, because closed forms yield this pair, not the angle. The rate of a quaternion is
    q' = (0, w) q / 2 with the angular velocity w in its reference frame.

    Expressions in these symbols do not depend on the state of a program. So the programs of a
    machine share them (`of`, `derived`).

    Attributes:
        v, a: velocities and accelerations (n_v,).
        N: rates of x per unit velocity (n_x, n_v).
    """

    def __init__(self, topology: Topology, values: Values) -> None:
        """Create the symbols of one machine with some parameter values."""
        self._topology, self._values = topology, values
        self._derived: dict[tuple[object, int, int], tuple[object, object, object]] = {}
        n_q, n_v = topology.n_q, topology.n_v
        q = ca.SX.sym("q", n_q)
        self._angles = [i for i in range(n_q) if topology.is_angle[i]]
        cosines, sines = ca.SX.sym("c", len(self._angles)), ca.SX.sym("s", len(self._angles))
        self._configuration = Configuration(
            q, {i: (cosines[k], sines[k]) for k, i in enumerate(self._angles)}
        )
        self._x = ca.vertcat(q, cosines, sines)
        self.v, self.a = ca.SX.sym("v", n_v), ca.SX.sym("a", n_v)
        N = ca.SX(self._x.numel(), n_v)
        for iv, iq in enumerate(topology.q_of_v):
            if iq >= 0:
                N[iq, iv] = 1
            if iq in self._angles:
                k = self._angles.index(iq)
                N[n_q + k, iv] = -sines[k]
                N[n_q + len(self._angles) + k, iv] = cosines[k]
        for iq, iv in topology.quaternions:
            w, r = q[iq], q[iq + 1 : iq + 4]
            N[iq, iv : iv + 3] = -r.T / 2
            N[iq + 1 : iq + 4, iv : iv + 3] = (w * ca.SX(ca.DM.eye(3)) - ca.skew(r)) / 2
        self.N = N

    @classmethod
    def of(cls, motion: TreeMotion) -> StateSymbols:
        """Return the symbols that all motions with the same parameter values share."""
        topology, values = motion.topology, motion.values
        return values.shared((cls, id(topology)), lambda: cls(topology, values))

    @cached_property
    def motion(self) -> TreeMotion:
        """The motion of the tree in these symbols."""
        return tree_motion(self._topology, self._values, self._configuration, self.v, self.a)

    def derived(
        self,
        derive: Callable[[StateSymbols, Mechanism, Entries], Result],
        mechanism: Mechanism,
        entries: Entries,
    ) -> Result:
        """Return derive(symbols, mechanism, entries), which is computed on the first call.

        Args:
            derive: function that returns expressions in these symbols.
            mechanism: the machine.
            entries: dynamic parameters.
        """
        key = derive, id(mechanism), id(entries)
        if key not in self._derived:
            # Objects that are stored keep their identity.
            self._derived[key] = mechanism, entries, derive(self, mechanism, entries)
        result: Result = self._derived[key][-1]  # type: ignore[assignment]
        return result

    def elements(self, mechanism: Mechanism, entries: Entries) -> tuple[InertialElement, ...]:
        """Return the inertias of a machine in these symbols."""
        return self.derived(_elements, mechanism, entries)

    def rate(self, expression: ca.SX) -> ca.SX:
        """Return the time derivative along the motion: (d/dx) N v + (d/dv) a."""
        column = ca.densify(ca.vec(expression))
        rate = ca.jtimes(column, self._x, self.N @ self.v) + ca.jtimes(column, self.v, self.a)
        return ca.reshape(rate, expression.shape)

    def rate_at_constant_velocity(self, expression: ca.SX) -> ca.SX:
        """Return the time derivative of a function of the coordinates, (d/dx) N v."""
        rate = ca.jtimes(ca.densify(ca.vec(expression)), self._x, self.N @ self.v)
        return ca.reshape(rate, expression.shape)

    def along_velocities(self, expression: ca.SX) -> ca.SX:
        """Return the derivatives (d/dx) N (k, n_v) of a column in the directions of velocities."""
        return ca.jacobian(ca.densify(expression), self._x) @ self.N

    def gradient(self, scalar: ca.SX) -> ca.SX:
        """Return the derivatives (n_v,) of a scalar in the direction of each velocity."""
        return self.N.T @ ca.gradient(scalar, self._x)

    def poincare(self, momentum: ca.SX) -> ca.SX:
        """Return the skew matrix P (n_v, n_v) with P v = p x w for every quaternion.

        p are the components of the momentum dT/dv for the quaternion. Angular velocities are not
        rates of coordinates, so Lagrange's equations contain this term (Poincare 1901). With w in
        the reference frame, d/dt dT/dw - w x dT/dw = N^T dT/dq + forces.
        """
        n_v = self._topology.n_v
        P = ca.SX(n_v, n_v)
        for _, iv in self._topology.quaternions:
            P[iv : iv + 3, iv : iv + 3] = ca.skew(momentum[iv : iv + 3])
        return P

    def at(self, expressions: Iterable[ca.SX], motion: TreeMotion) -> list[ca.SX]:
        """Return the expressions at another state."""
        configuration = motion.configuration
        pairs = [configuration.pair(i) for i in self._angles]
        x = ca.vertcat(configuration.q, *(c for c, _ in pairs), *(s for _, s in pairs))
        symbols, state = ca.vertcat(self._x, self.v, self.a), ca.vertcat(x, motion.v, motion.a)
        return list(ca.substitute(list(expressions), [symbols], [ca.densify(state)]))


def _elements(
    state: StateSymbols, mechanism: Mechanism, entries: Entries
) -> tuple[InertialElement, ...]:
    return inertial_elements(mechanism, state.motion, entries)

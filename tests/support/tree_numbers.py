"""The open tree of a mechanism in numbers: poses of its bodies and the forces that move it, loops left open."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.equations.newton_euler import tree_forces
from tauloop.equations.topology import topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Entries, Values, dynamic_parameters
from tauloop.mechanism.model import Mechanism


class OpenTree:
    """Poses and inverse dynamics of the spanning tree, evaluated at the nominal parameters."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.shape = topology(mechanism)
        values = Values(mechanism.parameters.values)
        q, v, a = (
            ca.SX.sym(name, n)
            for name, n in (("q", self.shape.n_q), ("v", self.shape.n_v), ("a", self.shape.n_v))
        )
        motion = tree_motion(self.shape, values, Configuration(q, {}), v, a)
        parameters = dynamic_parameters(mechanism, self.shape)
        pi = ca.DM([float(mechanism.value(parameter.expression)) for parameter in parameters])
        tau = tree_forces(mechanism, motion, Entries(parameters, ca.SX(pi)))
        self.bodies = tuple(body.name for body in mechanism.bodies)
        poses = [x for name in self.bodies for x in (motion.bodies[name].R, motion.bodies[name].p)]
        self._function = ca.Function("tree", [q, v, a], [tau, *poses])

    def __call__(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Forces (n_v,) and poses (4, 4) of all bodies in the base frame."""
        tau, *poses = (np.array(x.full()) for x in self._function(q, v, a))
        table = {}
        for k, name in enumerate(self.bodies):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = poses[2 * k], poses[2 * k + 1].ravel()
            table[name] = T
        return tau.ravel(), table

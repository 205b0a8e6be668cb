"""A machine as lines: the joint centres of every body, and the rods between them."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from tauloop.equations.tree import Configuration, tree_motion
from tauloop.functions import Loops
from tauloop.functions.batch import BatchFunction
from tauloop.functions.loops import nominal
from tauloop.mechanism.model import BASE, Placement

#: Points nearer than this are one, m.
SAME_POINT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """Lines of a machine at some states.

    Attributes:
        base: joint centres on the base (M, k, 3), m.
        bodies: by name, the joint centres of every moving body (M, k, 3), m.
        platform: name of the platform.
        rods: ends of rods and of slides (M, r, 2, 3), m.
        tool: tool centre point (M, 3), m.
    """

    base: np.ndarray
    bodies: dict[str, np.ndarray]
    platform: str
    rods: np.ndarray
    tool: np.ndarray

    @property
    def is_planar(self) -> bool:
        """Whether everything lies in one plane across z."""
        points = np.concatenate([self.base, *self.bodies.values(), self.tool[:, None, :]], axis=1)
        return bool(np.ptp(points[..., 2]) < 1e-6)

    @property
    def points(self) -> np.ndarray:
        """All points of all states (n, 3), m."""
        parts = [self.base, *self.bodies.values(), self.rods.reshape(len(self.tool), -1, 3), self.tool[:, None, :]]
        return np.concatenate([part.reshape(-1, 3) for part in parts])


def skeleton(loops: Loops, q: np.ndarray) -> Skeleton:
    """Lines of a machine at coordinates (M, n_q)."""
    shape, mechanism, values = loops.topology, loops.mechanism, nominal(loops.mechanism)
    symbol = ca.SX.sym("q", shape.n_q)
    zero = ca.SX(shape.n_v, 1)
    motion = tree_motion(shape, values, Configuration(symbol, {}), zero, zero)
    places: dict[str, list[Placement]] = {body.name: [] for body in mechanism.bodies}
    places[BASE] = []
    pairs = [(rod.start, rod.end) for rod in mechanism.rods]
    for start, end in pairs:
        places[start.body].append(start)
        places[end.body].append(end)
    for joint in mechanism.joints:
        is_free = joint.kind in ("free", "translational", "planar")
        if joint.kind in ("prismatic", "cylindrical"):
            pairs.append((joint.parent, joint.child))
        if not is_free and joint.kind != "fixed":
            places[joint.parent.body].append(joint.parent)
            places[joint.child.body].append(joint.child)

    def points(placements: list[Placement]) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *(motion.point(placement, values).p for placement in placements))

    names = [name for name, placements in places.items() if placements]
    ends = [placement for pair in pairs for placement in pair]
    outputs = [*(points(places[name]) for name in names), points(ends), points([mechanism.platform.tool])]
    arrays = _evaluated(symbol, outputs, q)
    by_name = dict(zip(names, arrays, strict=False))
    return Skeleton(
        base=by_name.pop(BASE, np.zeros((len(q), 0, 3))),
        bodies={name: _distinct(array) for name, array in by_name.items()},
        platform=mechanism.platform.body,
        rods=arrays[-2].reshape(len(q), -1, 2, 3),
        tool=arrays[-1][:, 0],
    )


def _evaluated(symbol: ca.SX, outputs: list[ca.SX], q: np.ndarray) -> list[np.ndarray]:
    function = BatchFunction(ca.Function("points", [symbol], [ca.densify(ca.vertcat(*outputs))]))
    flat = function([q], len(q))[0].reshape(len(q), -1, 3)
    counts = np.cumsum([output.numel() // 3 for output in outputs])[:-1]
    return np.split(flat, counts, axis=1)


def _distinct(points: np.ndarray) -> np.ndarray:
    """Points of a body (M, k, 3), each place once."""
    distance = np.linalg.norm(points[0, :, None] - points[0, None, :], axis=-1)
    kept = [i for i in range(points.shape[1]) if not (distance[i, :i] < SAME_POINT).any()]
    return points[:, kept]


def outline(points: np.ndarray) -> np.ndarray:
    """Order of a body's points (k,) in which they make a polygon: by angle about their middle, in their own plane."""
    centred = points - points.mean(axis=0)
    if len(points) < 3:
        return np.arange(len(points))
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.argsort(np.arctan2(centred @ axes[1], centred @ axes[0]), kind="stable")

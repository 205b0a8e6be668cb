"""Poses that touch a surface: platform positions that are moved until the gap is closed."""

from __future__ import annotations

from collections import Counter

import casadi as ca
import numpy as np

from tauloop.calibration.measurements.instruments import (
    Instrument,
    nominal_scene,
    require_instruments,
)
from tauloop.common.errors import InputError
from tauloop.equations.values import BatchFunction
from tauloop.model import Model

#: A gap counts as closed below this value, m.
GAP_TOLERANCE = 1e-10
#: Maximum number of Newton steps that close a gap.
MAX_CONTACT_STEPS = 12
#: Positions are moved only if the norm of the gap's gradient exceeds this value.
MIN_GRADIENT = 1e-3


class Gap:
    """The gap between an instrument's target and its surface, from platform positions."""

    def __init__(self, model: Model, contact: Instrument) -> None:
        """Build the functions of the gap and its gradient.

        Raises:
            InputError: the instrument does not suit the machine, or its platform has no positions
                in meters.
        """
        mechanism = model.mechanism
        topology = model.topology
        require_instruments([contact], mechanism, topology)
        port = model.platform.ports.position
        self._model = model
        self._translations = [i for i, unit in enumerate(port.units) if unit == "m"]
        if not self._translations:
            what = "has no positions in meters that could be moved onto a surface"
            remedy = "plan contacts only for machines with a platform that translates"
            raise InputError.of("platform", what, remedy)
        q, scene = nominal_scene(mechanism, topology, contact)
        gap = contact.error(scene, ca.SX(1, 1))
        columns = [model.platform.ports.q[i] for i in self._translations]
        gradient = ca.jacobian(gap, q)[:, columns]
        self._function = BatchFunction(
            ca.Function("gap", [q], [ca.densify(gap), ca.densify(gradient.T)])
        )

    def close(self, position: np.ndarray, box: np.ndarray, excluded: Counter[str]) -> np.ndarray:
        """Return positions that are moved along the gradient of the gap until the gap is closed.

        Newton's method is applied to one equation, with the shortest possible steps.

        Args:
            position: platform positions (N, n), SI.
            box: lower and upper limits (n, 2) of the positions.
            excluded: counts, which are increased by the number of positions that do not reach the
                surface or leave the box; the result does not contain these positions.
        """
        position = position.copy()
        gap = np.full((len(position), 1), np.inf)
        for _ in range(MAX_CONTACT_STEPS):
            q = np.ascontiguousarray(self._model.platform.evaluate(position).q)
            gap, gradient = self._function([np.where(np.isfinite(q), q, 0.0)], len(q))
            if np.abs(gap).max() < GAP_TOLERANCE:
                break
            squared_norm = np.maximum(
                (gradient**2).sum(axis=1, keepdims=True), np.finfo(float).tiny
            )
            step = np.where(squared_norm > MIN_GRADIENT**2, gap * gradient / squared_norm, 0.0)
            position[:, self._translations] -= step
        is_closed = np.abs(gap[:, 0]) < GAP_TOLERANCE
        translations = position[:, self._translations]
        lower, upper = box[self._translations].T
        margin_lower, margin_upper = (GAP_TOLERANCE + 1e-9 * np.abs(box[self._translations])).T
        is_inside = (
            (translations >= lower - margin_lower) & (translations <= upper + margin_upper)
        ).all(axis=1)
        excluded["off the surface"] += int((~is_closed).sum())
        excluded["outside the ranges"] += int((is_closed & ~is_inside).sum())
        return np.asarray(position[is_closed & is_inside])

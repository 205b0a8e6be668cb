"""Poses that touch a surface: platform positions moved along the slope of the gap until it is closed."""

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

#: A gap that is closed (m), steps to it, and the least slope along which it is closed.
TOUCHES, CONTACT_STEPS, SLOPE = 1e-10, 12, 1e-3


class Gap:
    """The distance of a target from a surface, and platform positions that close it."""

    def __init__(self, model: Model, contact: Instrument) -> None:
        """Prepare the gap and its slope.

        Raises:
            InputError: the instrument does not suit the machine, or its platform has no positions
                to be moved.
        """
        mechanism, shape = model.mechanism, model.topology
        require_instruments([contact], mechanism, shape)
        port = model.platform.ports.position
        self._model = model
        self._moved = [i for i, unit in enumerate(port.units) if unit == "m"]
        if not self._moved:
            what, remedy = (
                "has no positions in metres to be moved",
                "plan contacts of machines whose platform shifts",
            )
            raise InputError.of("platform", what, remedy)
        q, scene = nominal_scene(mechanism, shape, contact)
        gap = contact.error(scene, ca.SX(1, 1))
        columns = [model.platform.ports.q[i] for i in self._moved]
        slope = ca.jacobian(gap, q)[:, columns]
        self._function = BatchFunction(
            ca.Function("gap", [q], [ca.densify(gap), ca.densify(slope.T)])
        )

    def closed(self, position: np.ndarray, box: np.ndarray, excluded: Counter[str]) -> np.ndarray:
        """Positions moved along the gap's slope until it is closed; those that leave the box are counted and left out.

        Newton's method on one equation, the shortest step each time.
        """
        position = position.copy()
        gap = np.full((len(position), 1), np.inf)
        for _ in range(CONTACT_STEPS):
            q = np.ascontiguousarray(self._model.platform.evaluate(position).q)
            gap, slope = self._function([np.where(np.isfinite(q), q, 0.0)], len(q))
            if np.abs(gap).max() < TOUCHES:
                break
            size = np.maximum((slope**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
            step = np.where(size > SLOPE**2, gap * slope / size, 0.0)
            position[:, self._moved] -= step
        touches = np.abs(gap[:, 0]) < TOUCHES
        some = position[:, self._moved]
        edge = TOUCHES + 1e-9 * np.abs(box[self._moved])
        inside = (
            (some >= box[self._moved, 0] - edge[:, 0]) & (some <= box[self._moved, 1] + edge[:, 1])
        ).all(axis=1)
        excluded.update(
            {
                "off the surface": int((~touches).sum()),
                "outside the ranges": int((touches & ~inside).sum()),
            }
        )
        return np.asarray(position[touches & inside])

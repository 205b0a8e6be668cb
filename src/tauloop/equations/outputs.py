"""Outputs of a machine as expressions of its coordinates and parameters."""

from __future__ import annotations

from collections.abc import Collection

import casadi as ca

from tauloop.equations.topology import Topology
from tauloop.equations.tree import TreeMotion, symbolic_motion
from tauloop.equations.values import BatchFunction, Values, unit_vector
from tauloop.mechanism.expression import Measured
from tauloop.mechanism.model import Mechanism, Placement
from tauloop.mechanism.outputs import (
    Angle,
    Component,
    CoordinateValue,
    Direction,
    FrameAxis,
    Point,
    PointDistance,
)


def output_values(
    mechanism: Mechanism, motion: TreeMotion, names: Collection[str] | None = None
) -> ca.SX:
    """Return the values (n,) of outputs of a machine, SI.

    Args:
        mechanism: the machine.
        motion: symbolic motion of its tree.
        names: names of the outputs; by default all.
    """
    measure = _Measure(motion)
    chosen = [output for output in mechanism.outputs if names is None or output.name in names]
    values = (motion.values.measured(output.expression, measure) for output in chosen)
    return ca.SX(ca.vertcat(ca.SX(0, 1), *(ca.SX(value) for value in values)))


def output_function(mechanism: Mechanism, topology: Topology, values: Values) -> BatchFunction:
    """Return the function from coordinates (N, n_q) to the values (N, n) of all outputs."""
    motion = symbolic_motion(topology, values, is_moving=False)
    outputs = ca.densify(output_values(mechanism, motion))
    return BatchFunction(ca.Function("outputs", [motion.q], [outputs]))


class _Measure:
    """Values of measured numbers at a motion of the machine."""

    def __init__(self, motion: TreeMotion) -> None:
        self._motion = motion

    def __call__(self, measured: Measured) -> ca.SX:
        """Return the value of a measured number.

        Raises:
            AssertionError: its kind is unknown.
        """
        if isinstance(measured, CoordinateValue):
            return self._coordinate(measured.name)
        if isinstance(measured, PointDistance):
            d = self._point(measured.second) - self._point(measured.first)
            return ca.SX(ca.norm_2(d))
        if isinstance(measured, Component):
            return self._component(measured)
        if isinstance(measured, Angle):
            return self._angle(measured)
        raise AssertionError(f"unknown kind of measured number: {type(measured).__name__}")

    def _coordinate(self, name: str) -> ca.SX:
        topology = self._motion.topology
        return ca.SX(self._motion.q[topology.q_of_v[topology.velocity_names.index(name)]])

    def _component(self, component: Component) -> ca.SX:
        axis = unit_vector(component.axis)
        if component.frame is not None:
            axis = self._rotation(component.frame) @ axis
        if not isinstance(component.of, Point):
            return ca.SX(ca.dot(axis, self._direction(component.of)))
        position = self._point(component.of)
        if component.frame is not None:
            position = position - self._motion.point(component.frame).p
        return ca.SX(ca.dot(axis, position))

    def _angle(self, angle: Angle) -> ca.SX:
        """Return the angle by atan2, which is accurate for all angles."""
        first, second = self._direction(angle.first), self._direction(angle.second)
        normal, cosine = ca.cross(first, second), ca.dot(first, second)
        if angle.about is None:
            return ca.SX(ca.atan2(ca.norm_2(normal), cosine))
        axis = self._direction(angle.about)
        projections = ca.dot(first, axis) * ca.dot(second, axis)
        return ca.SX(ca.atan2(ca.dot(axis, normal), cosine - projections))

    def _point(self, point: Point) -> ca.SX:
        return self._motion.point(point.placement).p

    def _direction(self, direction: Direction) -> ca.SX:
        """Return a unit vector (3,) in the base frame."""
        if isinstance(direction, FrameAxis):
            axis = unit_vector(direction.axis)
            return ca.SX(direction.sign * (self._rotation(direction.placement) @ axis))
        d = self._point(direction.end) - self._point(direction.start)
        return ca.SX(d / ca.norm_2(d))

    def _rotation(self, placement: Placement) -> ca.SX:
        """Return the orientation (3, 3) of a frame in the base frame."""
        body = self._motion.bodies[placement.body]
        return body.R @ self._motion.values.rotation(placement.turns)

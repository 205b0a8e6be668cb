"""The machines of the gallery as tests use them: models, strokes and figures, each made once."""

from __future__ import annotations

import functools

import numpy as np
from strokes import stroke

from tauloop import Model, load
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.mechanism import machine_index

#: Names of the gallery's own machines, in alphabetical order.
GALLERY_MACHINES = tuple(
    machine.name for machine in machine_index().machines if machine.group == "gallery"
)
#: Poses of a stroke in tests: fewer than a film has.
POSES = 48


@functools.cache
def model(name: str) -> Model:
    """The model of a machine."""
    return Model(load(name))


@functools.cache
def stroke_of(name: str) -> np.ndarray:
    """Coordinates (N, n_q) of a machine along its stroke."""
    return stroke(model(name), POSES)


@functools.cache
def placed(name: str) -> MachineGeometry:
    """Where its bodies are along its stroke."""
    return machine_geometry(model(name), stroke_of(name))


def figures(name: str) -> dict[str, float]:
    """The leaf parameters of a machine by name, SI."""
    return {parameter.name: parameter.value for parameter in model(name).mechanism.parameters}


def column(name: str, coordinate: str) -> np.ndarray:
    """One coordinate (N,) along the stroke."""
    return stroke_of(name)[:, model(name).topology.coordinate_names.index(coordinate)]


def column_of_actuator(name: str, actuator: str) -> np.ndarray:
    """The motor position (N,) of an actuator along the stroke."""
    names = [a.name for a in model(name).mechanism.actuators]
    return model(name).actuator_position(stroke_of(name))[:, names.index(actuator)]


def rotations(name: str, body: str) -> np.ndarray:
    """Orientations (N, 3, 3) of a body along the stroke."""
    geometry = placed(name)
    return geometry.rotations[:, geometry.shape.index[body]]


def origins(name: str, body: str) -> np.ndarray:
    """Origins (N, 3) of a body along the stroke, m."""
    geometry = placed(name)
    return geometry.origins[:, geometry.shape.index[body]]


def at_rest(name: str, q: np.ndarray) -> np.ndarray:
    """Forces (N, n_u) of the actuators that hold the machine still at coordinates (N, n_q)."""
    machine = model(name)
    position = machine.platform_position(q)
    still = np.zeros((len(q), machine.platform.ports.velocity.size))
    return np.asarray(machine.platform.inverse_dynamics(position, still, still, start=q).force)

"""A generated controller in a closed loop with numbers alone: a machine that follows its reference exactly."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from redundant_machines import redundant

from tauloop import Model, load
from tauloop.export.controller import FLAGS, CompiledController, ControllerOptions, ControllerSample
from tauloop.testing.machines import six_legs

#: Largest forces of machines that have none in their files.
LIMIT = 400.0


@functools.cache
def model(name: str) -> Model:
    """A shipped machine, one of an example, a random one with six legs, or one with more actuators than freedoms."""
    if name.startswith("redundant "):
        return redundant(name.removeprefix("redundant "))
    if name == "racks":
        return Model(
            load(Path(__file__).parents[2] / "examples/gantry_tau_racks/gantry_tau_racks.yaml")
        )
    return Model(six_legs(np.random.default_rng(5)) if name == "random" else load(name))


@functools.cache
def controller(name: str, law: str, space: str) -> CompiledController:
    """A controller, compiled once; it begins anew for each loop."""
    limit = (LIMIT,) if name == "random" else ()
    return CompiledController(
        model(name), ControllerOptions(controller=law, space=space, limit=limit)
    )


class Loop:
    """A controller, and what it reads of a machine that does as it is told.

    The platform swings about the reference pose: x = x0 + a sin^2(w t) along its first free length.
    """

    AMPLITUDE, RATE = 0.01, 4.0

    def __init__(
        self,
        name: str,
        *,
        law: str = "computed-torque",
        space: str = "joint",
        **parameters: float | np.ndarray,
    ) -> None:
        """Begin, with some of the controller's parameters set."""
        self.model, self.controller = model(name), controller(name, law, space)
        self.controller.begin()
        self.equations, self.period = (
            self.controller.equations,
            self.controller.equations.options.period,
        )
        ports = self.model.platform.ports
        self.free = next(i for i, unit in enumerate(ports.velocity.units) if unit == "m/s")
        self.at, self.samples = ports.at(self.model.assembly.q), 0
        self.limit = self.parameter("limit")
        self._q = self.model.assembly.q
        for key, value in parameters.items():
            self.parameter(key)[:] = value

    def parameter(self, name: str) -> np.ndarray:
        """Values of a channel of parameters, which may be changed in place."""
        first = 0
        for channel in self.equations.parameters:
            if channel.name == name:
                return self.controller.parameters[first : first + channel.size]
            first += channel.size
        raise KeyError(name)

    def motion(self, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity and acceleration of the platform."""
        n, w, a = len(self.model.platform.ports.velocity.columns), self.RATE, self.AMPLITUDE
        position, velocity, acceleration = self.at.copy(), np.zeros(n), np.zeros(n)
        position[self.free] += a * np.sin(w * time) ** 2
        velocity[self.free] = a * w * np.sin(2 * w * time)
        acceleration[self.free] = 2 * a * w**2 * np.cos(2 * w * time)
        return position, velocity, acceleration

    def inputs(self, **changes: object) -> np.ndarray:
        """What the next sample reads; channels may be others, `time` and `stamp` too."""
        time = self.samples * self.period
        position, velocity, acceleration = self.motion(time)
        state = self.model.platform.kinematics(position, velocity, start=self._q)
        self._q = state.q
        transmission = self.model.assembly.loops.transmission
        channels = {
            "position": self.equations.readings(state.q),
            "speed": np.asarray(state.v) @ transmission.T,
            "reference": position,
            "reference_speed": velocity,
            "reference_acceleration": acceleration,
        } | {key: value for key, value in changes.items() if key not in ("time", "stamp")}
        row = self.equations.sample(time, float(self.samples), **channels)
        row[:2] = changes.get("time", row[0]), changes.get("stamp", row[1])
        return row

    def step(self, **changes: object) -> ControllerSample:
        """The next sample."""
        row = self.inputs(**changes)
        self.samples += 1
        return self.controller.step(row)

    def bounded(self, sample: ControllerSample) -> bool:
        """Whether forces are numbers within their limits, and zero under brakes."""
        good = bool(np.isfinite(sample.force).all() and (np.abs(sample.force) <= self.limit).all())
        return good and (not sample.flags & FLAGS["BRAKES"] or not sample.force.any())

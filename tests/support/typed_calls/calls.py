"""The calls of the first page of the API, for type checkers; `tests/test_stubs.py` runs them on it."""

from __future__ import annotations

import numpy as np

import tauloop as tl

m = tl.load("delta")
tl.forward_kinematics(m, [0.5, 0.5, 0.5])
actuators: np.ndarray = tl.inverse_kinematics(m, [0, 0, -0.5]).actuators
model = tl.Model(m)
x, v, a, u = [0.0, 0.0, -0.5], [0.0] * 3, [0.0] * 3, [0.0] * 3
q = actuators
jacobian: np.ndarray = model.jacobian(x)
mass: np.ndarray = model.mass_matrix(x)
force: np.ndarray = model.inverse_dynamics(x, v, a).force
motion: np.ndarray = model.forward_dynamics(x, v, u).acceleration
by_actuators: tl.Forces = model.inverse_dynamics(q, v, a, coordinates="actuators")
poses: np.ndarray = model.tool_pose(x)
energy = model.bias(x, v), model.gravity_forces(x), model.kinetic_energy(x, v)
coordinates: str = tl.inverse_dynamics(m, x, v, a).given
accelerations: np.ndarray = tl.forward_dynamics(m, x, v, u).acceleration
end = tl.simulate(m, duration="1 s").status
tl.simulate("delta", duration=0.5, rtol=1e-8, until="platform.z<-0.7")
stroke = tl.plan_stroke(m, start={"z": "-0.5 m"}, end={"x": "100 mm"})
fit = tl.identify(m, "log.csv", estimator="ols", known={"tip_mass": "0.3 kg"}, cutoff="50 Hz")
calibration = tl.calibrate(m, "poses.csv", parameters="leg*.length")
space = tl.workspace(m, plane="x,z", resolution="1 cm")
export = tl.export_c(m, "out", functions="inverse_dynamics")
written = tl.convert(m, "delta.urdf")
with_options = tl.simulate(m, tl.SimulationOptions(duration=1.0), duration="2 s")
machines = tl.describe("delta"), tl.describe(m), tl.describe(model)

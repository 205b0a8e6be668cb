"""The calls of the first page of the API, for type checkers; `tests/test_stubs.py` runs them on it."""

from __future__ import annotations

from pathlib import Path

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
tl.simulate("delta", duration=0.5, tolerance=1e-8, until="platform.z<-0.7")
stroke = tl.plan_stroke(m, start={"z": "-0.5 m"}, end={"x": "100 mm"})
fit = tl.identify(m, "log.csv", estimator="ols", known={"tip_mass": "0.3 kg"}, cutoff="50 Hz")
calibration = tl.calibrate(m, "poses.csv", parameters="leg*.length")
space = tl.workspace(m, plane="x,z", resolution="1 cm")
export = tl.export_c(m, "out", functions="inverse_dynamics")
written = tl.convert(m, "delta.urdf")
with_options = tl.simulate(m, tl.SimulationOptions(duration=1.0), duration="2 s")
machines = tl.describe("delta"), tl.describe(m), tl.describe(model)
# Calls that users of Pinocchio, Drake and SciPy guess: rows, texts, arrays, paths and keywords.
row = np.array([0.0, 0.0, -0.5])
forces: np.ndarray = tl.inverse_dynamics(m, row, np.zeros(3), np.zeros(3)).force
by_pose = tl.inverse_dynamics(m, pose=["0 mm", 0.0, "-50 cm"])
by_motors = tl.inverse_dynamics(m, actuators={"leg1.motor": "30 deg"}, acceleration=[0.0] * 3)
fall = tl.simulate(m, duration=0.1, pose=[0.0, 0.0, -0.5], force=[0.0, 0.0, 0.0], fixed_step="1 ms")
rows = tl.plan_stroke(m, start=[0.0, 0.0, -0.5], end=[0.1, 0.0, -0.5], max_velocity="1 m/s")
seconds: float = rows.duration
bend = tl.plan_stroke(m, via=[[0.0, 0.0, -0.4]], end="x=0.1", shape="ellipse")
at_pose = tl.jacobian(m, row, of="actuators")
at_motors = tl.jacobian(m, actuators=[0.5, 0.5, 0.5])
longer = m.with_values(arm_length="300 mm").with_values({"plate_mass": 0.2})
modes = tl.assembly_modes(m, actuators=q), tl.working_modes(m, pose="z=-0.5")
section = tl.workspace(m, plane=["x", "z"], pose={"y": 0.0}, ranges={"x": (-0.1, "10 cm")})
tracked = tl.follow_path(m, end={"x": 0.01}, duration="50 ms", controller="pd", rate="1 kHz")
loaded = tl.load(Path("robots") / "delta.yaml"), tl.convert(m, Path("delta.xml"), format="mjcf")
is_reliable: bool = tl.check(m).status == "ok"
payload = tl.Payload(mass=0.5, center=(0.0, 0.0, 0.0))
options = tl.ControllerOptions(controller="pd", hold_samples=3, max_pose_jump=1e-3)
generated = tl.export_controller(m, "out", controller="pd", max_pose_jump="1 mm")

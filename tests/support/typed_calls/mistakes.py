"""Calls that a type checker refuses, one in each line below the imports; see `tests/test_stubs.py`."""

from __future__ import annotations

import tauloop as tl

tl.simulate("delta", duratoin="1 s")
tl.simulate("delta", duration=["1 s"])
tl.plan_stroke("delta", form={"z": -0.5})
tl.identify("delta", "log.csv", estimater="ols")
tl.identify("delta", "log.csv", know={"tip_mass": 0.3})
tl.calibrate("delta", "poses.csv", parameter="leg*.length")
tl.workspace("delta", plain="x,z")
tl.export_c("delta", "out", function="inverse_dynamics")
tl.convert("delta", "delta.urdf", too="urdf")
tl.forward_kinematics("delta", [0.5], al_modes=True)
tl.inverse_dynamics("delta", coordinate="actuators")
tl.forward_dynamics("delta", forces=[0.0])
tl.simulate(3.0)
tl.plan_motion("delta")
tl.Model("delta").jacobian([0.0], off="tool")
tl.Model("delta").inverse_dynamics([0.0], [0.0], [0.0], coordinate="actuators")
tl.check("delta", None, 3)
tl.laod("delta")
tl.simulate("delta", t_final=1.0)
tl.plan_stroke("delta", time=0.3)
tl.inverse_kinematics("delta", platform=[0.0])
tl.StrokeOptions(turn=(0.0, 0.0, 1.0))
tl.ControllerOptions(astray=0.1)
tl.jacobian("delta", [0.0], [0.5])
tl.Model("delta").rnea([0.0], [0.0], [0.0])
tl.Payload(0.5)

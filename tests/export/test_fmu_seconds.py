"""A second of motion of free machines: co-simulation, split steps and early returns beside Tauloop's own integrator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from fmus import Instance

import tauloop as tl
from tauloop.export.fmu import FmuOptions, export_fmu
from tauloop.integrate import DormandPrince
from tauloop.simulation import ControlledMotion, ControlOptions, ForceLaw, Simulator

extra("fmpy")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here"),
]
#: Time between points of communication, s: a power of two, whose sums are exact.
STEP, COUNT = 2.0**-10, 1024
#: The issue's bar: the same integrator, compiled with other flags; tolerance of steps (SI).
SAME, FINE = 1e-12, 1e-12
#: Springs and dampers of the actuators, N/m and N s/m (or of turning); the Delta needs none.
HOLDS = {"delta": (0.0, 0.0), "rcid": (2000.0, 100.0)}


class Held(ForceLaw):
    """Forces of a motion, and of springs and dampers that hold the actuators near it, from sample to sample.

    The RCID is unstable alone: without them 1e-10 N in the first millisecond is 3e-7 m after a
    second.
    """

    def __init__(self, model: tl.Model, run: ControlledMotion) -> None:
        self.stiffness, self.damping = HOLDS[model.mechanism.name]
        state = model.platform.kinematics(run.position, run.velocity)
        self.model, self.forces = model, run.force
        self.position, self.speed = (
            model.actuator_position(state.q),
            np.asarray(state.v) @ model.assembly.loops.transmission.T,
        )

    @property
    def period(self) -> float:
        return STEP

    def at(self, k: int, position: np.ndarray, speed: np.ndarray) -> np.ndarray:
        k = min(k, COUNT)
        pull = self.stiffness * (self.position[k] - position) + self.damping * (
            self.speed[k] - speed
        )
        return np.asarray(self.forces[k] + pull)

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.at(
            round(time / STEP),
            self.model.actuator_position(q),
            self.model.assembly.loops.transmission @ v,
        )


@pytest.mark.parametrize("name", HOLDS)
def test_a_second_in_whole_steps_split_steps_and_early_returns(name: str, tmp_path: Path) -> None:
    model = tl.Model(tl.load(name))
    stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.45, returns=True)
    options = ControlOptions(
        stroke=stroke, controller=("computed-torque",), rate=1 / STEP, settling=0.2
    )
    law = Held(model, tl.follow_path(model, options).runs["computed-torque"])
    integrator = DormandPrince(rtol=FINE, atol=FINE / 10, max_steps=1_000_000)
    own = Simulator(model, integrator=integrator).run(COUNT * STEP, force=law).steps.y[-1]
    export = export_fmu(model, FmuOptions(), folder=tmp_path)
    names = [state.name for state in export.variables.states]
    count = law.forces.shape[1]
    inputs = [variable.name for variable in export.variables.inputs][:count]
    measured = [variable.name for variable in export.variables.outputs][: 2 * count]
    ends = {}
    for way in ("whole", "split", "early"):
        calls = [0]

        def update(*arguments: object, calls: list[int] = calls) -> None:
            calls[0] += 1
            arguments[6][0], arguments[7][0] = calls[0] % 3 == 0, arguments[1]  # type: ignore[index]

        further = (
            {"early_return_allowed": True, "intermediate_update": update} if way == "early" else {}
        )
        instance = Instance(export.written[0], **further)
        instance.begin(tolerance=FINE)
        for k in range(COUNT):
            position, speed = np.split(instance.get(measured), 2)
            instance.set(dict(zip(inputs, map(float, law.at(k, position, speed)), strict=True)))
            at, end, parts = k * STEP, (k + 1) * STEP, 3 if way == "split" else 1
            for part in range(parts):
                done = instance.step(at + part * STEP / parts, STEP / parts)
            while way == "early" and done[3] < end:
                done = instance.step(done[3], end - done[3])
        ends[way] = instance.get(names)
        instance.free()
    apart = {way: float(np.abs(end - own).max()) for way, end in ends.items()}
    assert max(apart.values()) < SAME, apart

"""`mujoco_warp` on a machine with its loops as equality constraints: agreement with Tauloop, and speed of steps.

Runs on warp's device: a GPU where there is one, else the processor, slowly, which checks the
conversion on every computer. Constraints are as stiff as MuJoCo allows for the step (time constant
of 2.1 steps), and nearly rigid.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.formats.mjcf.writer import write_mjcf
from tauloop.model import Model

#: Step of the rollouts, s; time constant of the constraints in steps, and their impedance.
STEP, CONSTANT, IMPEDANCE = 1e-3, 2.1, 0.9999


def mujoco_model(model: Model) -> Any:
    """Return the machine in MuJoCo, from the file that `tauloop convert` writes, with stiff constraints and RK4."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.xml"
        write_mjcf(model.mechanism, path)
        made = mujoco.MjModel.from_xml_path(str(path))
    made.opt.timestep, made.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    made.eq_solref[:] = [CONSTANT * STEP, 1.0]
    made.eq_solimp[:] = [IMPEDANCE, IMPEDANCE, 1e-3, 0.5, 2.0]
    return made


def compared(model: Model, worlds: int) -> dict[str, float]:
    """Compare accelerations of the actuators on falling from rest, by MuJoCo, by `mujoco_warp`, and by Tauloop.

    Returns:
        Deviations relative to the largest acceleration: of `mujoco_warp` (floats) from MuJoCo, over
        all coordinates, and of both from Tauloop's rigid loops, over the actuators' joints.
    """
    import mujoco
    import mujoco_warp

    made = mujoco_model(model)
    data = mujoco.MjData(made)
    mujoco.mj_forward(made, data)
    there, state = mujoco_warp.put_model(made), mujoco_warp.put_data(made, data, nworld=worlds)
    mujoco_warp.forward(there, state)
    floats = np.asarray(state.qacc.numpy(), dtype=float)
    names, driven = model.topology.velocity_names, list(model.assembly.driven)
    joints = [made.joint(names[i]).dofadr[0] for i in driven]
    zero = np.zeros((1, len(model.mechanism.actuators)))
    moved = model.actuators.forward_dynamics(
        model.actuators.ports.at(model.assembly.q)[None], zero, zero
    )
    right = np.ravel(moved.a)[driven]
    largest, fastest = np.abs(data.qacc).max(), np.abs(right).max()
    return {
        "of MuJoCo": float(np.abs(floats - data.qacc).max() / largest),
        "MuJoCo of Tauloop": float(np.abs(data.qacc[joints] - right).max() / fastest),
        "of Tauloop": float(np.abs(floats[:, joints] - right).max() / fastest),
    }


def steps(model: Model, worlds: int, budget: float) -> float:
    """Return steps of all worlds together per second, in a graph of launches where warp runs on a GPU."""
    import mujoco
    import mujoco_warp
    import warp

    made = mujoco_model(model)
    data = mujoco.MjData(made)
    mujoco.mj_forward(made, data)
    there, state = mujoco_warp.put_model(made), mujoco_warp.put_data(made, data, nworld=worlds)
    mujoco_warp.step(there, state)
    graph = None
    if warp.get_device().is_cuda:
        with warp.ScopedCapture() as capture:
            mujoco_warp.step(there, state)
        graph = capture.graph
    warp.synchronize()
    count, begin = 0, time.perf_counter()
    while not count or time.perf_counter() - begin < budget:
        for _ in range(20 if graph else 1):
            if graph:
                warp.capture_launch(graph)
            else:
                mujoco_warp.step(there, state)
            count += 1
        warp.synchronize()
    return worlds * count / (time.perf_counter() - begin)

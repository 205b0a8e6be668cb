"""A component that corrects for loads and temperatures, built and loaded by LinuxCNC itself (night)."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import EXAMPLE, hexapod, loaded_samples
from linuxcnc_bench import bench, reason_not_to_run

import tauloop as tl
from tauloop.mechanism.model import Mechanism

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(bool(reason_not_to_run()), reason=reason_not_to_run() or "-"),
]
#: mm: joints of the component against `compensate`, and the world against itself after a round trip.
JOINT_ERROR, WORLD_ERROR = 1e-8, 1e-7


def gantry() -> Mechanism:
    """Return the example with tubes, whose parts have temperatures."""
    return tl.load(EXAMPLE)


def struts() -> Mechanism:
    """Return a hexapod with elastic drives, which has loads alone."""
    return hexapod(drives="20 N/um")


@pytest.mark.parametrize(
    ("machine", "force", "reach"), [(gantry, 300.0, 0.1), (struts, 200.0, 0.01)]
)
def test_loaded_component_gives_the_motors_of_compensate(
    machine, force: float, reach: float
) -> None:
    model, inputs = loaded_samples(machine(), force, reach)
    tool = model.platform.tool(
        inputs["position"], start=model.inverse_kinematics(inputs["position"]).q
    )
    world = np.concatenate([1e3 * tool.place, np.zeros((6, 3))], axis=1)
    wrench = inputs["wrench"][0]
    with bench() as own:
        options = tl.LinuxcncOptions(name="tlt_compensated")
        export = tl.export_linuxcnc(model, options, folder=own.folder, compensation=True)
        own.install(own.folder / f"{export.name}.c")
        rises = np.linspace(-3.0, 4.0, len(export.loads) - 6)
        loads = dict(zip(export.loads, [*wrench, *rises], strict=True))
        setp = [f"{export.name}.{pin} {float(value)!r}" for pin, value in loads.items()]
        loaded = own.probe(export.name, world, setp)
        rigid = own.probe(export.name, world)
    names = tl.thermal_expansion(model).parts if len(rises) else ()
    result = tl.compensate(
        model,
        inputs["position"],
        wrench=tuple(wrench),
        temperatures=dict(zip(names, rises, strict=True)) or None,
    )
    joints = loaded.joints[:, : result.actuators.shape[1]]
    assert not loaded.inverse.any()
    assert not loaded.forward.any()
    assert joints == pytest.approx(1e3 * result.actuators, abs=JOINT_ERROR)
    assert loaded.world == pytest.approx(world, abs=WORLD_ERROR)
    assert np.abs(rigid.joints - loaded.joints).max() > 1e-3

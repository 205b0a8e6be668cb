"""What happens to a machine whose tool is pulled: it follows, stops where loops, stops or legs end, and comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.geometry.machine_geometry import MachineGeometry, machine_shape
from tauloop.viewer.panel.gizmo import Puller
from tauloop.viewer.panel.handles import Handles

#: Loops that are closed, m (or pure number); the tool where it was asked for, m or rad; and beyond
#: a stop by rounding.
CLOSED, THERE = 1e-9, 1e-6
CASES = Path(__file__).parents[1] / "cases"


class Pulled:
    """A machine at its reference pose, and what pulls its tool."""

    def __init__(self, name: str) -> None:
        self.model = tl.Model(tl.load(CASES / name if name.endswith(".yaml") else name))
        self.q = self.model.assembly.q
        self.shape = machine_shape(self.model)
        handles = Handles(self.model, self.model.platform, self.q)
        self.puller = Puller(handles, self.shape, self.model.limits, self.q)

    def at(self, q: np.ndarray) -> MachineGeometry:
        return self.shape.at(q[None])

    def by(
        self, q: np.ndarray, way: object, turn: object = (0.0, 0.0, 0.0)
    ) -> tuple[np.ndarray, tl.TauloopError | None]:
        """Pull by a vector and a rotation vector."""
        here = self.at(q)
        R = Rotation.from_rotvec(turn).as_matrix() @ here.tool_rotation[0]
        q, obstacle = self.puller.nearest_pose(q, here.tool[0] + np.array(way), R)
        assert np.abs(self.model.assembly.loops.residuals(q[None])[0]).max(initial=0.0) < CLOSED
        return q, obstacle


@pytest.mark.parametrize(
    ("name", "way", "turn"),
    [
        ("delta", (0.02, 0.01, 0.02), (0, 0, 0)),
        ("five_bar", (0.02, -0.01, 0.0), (0, 0, 0)),
        ("hexapod", (0.01, 0.0, 0.01), (0.05, 0.0, 0.1)),
        ("gantry_tau_5dof", (0.03, 0.02, 0.0), (0, 0, 0)),
        ("spidermill", (0.02, -0.02, 0.0), (0, 0, 0)),
        ("agile_eye.yaml", (0, 0, 0), (0.1, -0.05, 0.1)),
        ("cables8.yaml", (0.1, 0.1, -0.05), (0.02, 0.0, 0.0)),
    ],
)
def test_the_tool_goes_where_it_is_pulled(
    name: str, way: tuple[float, ...], turn: tuple[float, ...]
) -> None:
    machine = Pulled(name)
    before = machine.at(machine.q)
    q, obstacle = machine.by(machine.q, way, turn)
    after = machine.at(q)
    assert obstacle is None
    if machine.puller.freedom.axes != (False,) * 3:
        assert after.tool[0] - before.tool[0] == pytest.approx(way, abs=THERE)
    # which cannot turn about one of its axes
    if machine.puller.freedom.rotates and name != "gantry_tau_5dof":
        turned = Rotation.from_matrix(
            after.tool_rotation[0] @ before.tool_rotation[0].T
        ).as_rotvec()
        assert turned == pytest.approx(turn, abs=THERE)


@pytest.mark.parametrize(
    ("name", "axes", "turns"),
    [
        ("delta", (True, True, True), False),
        ("five_bar", (True, True, False), False),
        ("hexapod", (True, True, True), True),
        ("agile_eye.yaml", (False, False, False), True),
    ],
)
def test_arrows_and_arcs_are_those_that_the_tool_can_use(
    name: str, axes: tuple[bool, ...], turns: bool
) -> None:
    freedom = Pulled(name).puller.freedom
    assert (freedom.axes, freedom.rotates) == (axes, turns)


@pytest.mark.parametrize("name", ["delta", "five_bar", "spidermill", "hexapod", "gantry_tau_5dof"])
def test_far_pulls_end_at_the_border_from_where_the_machine_comes_back(name: str) -> None:
    machine = Pulled(name)
    start = machine.at(machine.q).tool[0]
    far = 3.0 * machine.shape.length * np.array([1.0, 0.0, 0.0])
    q, obstacle = machine.by(machine.q, far)
    assert obstacle is not None
    assert machine.model.limits.room(q[None], ("stop",)).min() > -1e-9
    further, _ = machine.by(q, far)
    ahead = machine.at(further).tool[0, 0] - start[0]
    assert ahead < 3.0 * machine.shape.length
    back, obstacle = machine.by(further, start - machine.at(further).tool[0])
    assert obstacle is None
    assert machine.at(back).tool[0] == pytest.approx(start, abs=THERE)

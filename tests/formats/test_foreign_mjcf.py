"""What the MJCFs of others say beside a machine: read as MuJoCo reads it, refused, or named; MuJoCo is the oracle."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation
from tree_numbers import OpenTree

from tauloop import Model
from tauloop.common.errors import DescriptionError
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.assembly.loops import loops
from tauloop.formats import load
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Mechanism

#: Sums of a few products of size one.
AGREEMENT = 1e-12
#: Loops of an assembled state, m.
CLOSED = 1e-9
#: J' v by central differences over 1e-6 s: rounding over that, relative to accelerations.
DIFFERENCES = 1e-8

INERTIAL = '<inertial mass="1.2" pos="0.1 0 0.05" diaginertia="0.02 0.03 0.04"/>'


def machine(
    *,
    compiler: str = "",
    option: str = "",
    top: str = "",
    body: str = "",
    joint: str = "",
    ends: str = "",
) -> str:
    """Two joints in a row and one beside them."""
    return f"""<mujoco><compiler angle="radian" {compiler}/><option {option[: 0 if "<" in option else None]}>
{option if "<" in option else ""}</option>{top}<worldbody>
<body name="a" pos="0.1 0 0.2" {body}>{INERTIAL}<joint name="j1" axis="0 0.6 0.8" {joint}/>
<body name="b" pos="0.3 0 0" euler="0.2 0.3 -0.1">{INERTIAL}<joint name="j2" axis="1 0 0" ref="0.2"/></body></body>
<body name="c" pos="-0.1 0.2 0.2">{INERTIAL}<joint name="j3" axis="0 1 0"/></body>
</worldbody>{ends}</mujoco>"""


def read(folder: Path, text: str) -> Mechanism:
    (folder / "m.xml").write_text(text)
    return load(folder / "m.xml")


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("compiler.settotalmass", {"compiler": 'settotalmass="9"'}),
        ("compiler.boundmass", {"compiler": 'boundmass="2"'}),
        ("compiler.boundinertia", {"compiler": 'boundinertia="0.1"'}),
        (
            "option.flag.spring",
            {"option": '<flag spring="disable"/>', "joint": 'stiffness="2"'},
        ),
        (
            "option.flag.damper",
            {"option": '<flag damper="disable"/>', "joint": 'damping="0 .1"'},
        ),
        (
            "option.flag.equality",
            {
                "option": '<flag equality="disable"/>',
                "ends": '<equality><joint joint1="j1" joint2="j3"/></equality>',
            },
        ),
        (
            "option.flag.constraint",
            {"option": '<flag constraint="disable"/>', "joint": 'frictionloss="1e-3"'},
        ),
        ("j1", {"joint": 'springdamper="0.1 1"'}),
        ("weld_1", {"ends": '<equality><weld body1="b" body2="c" torquescale="0"/></equality>'}),
        ("flex_1", {"ends": '<equality><flex flex="f"/></equality>'}),
        ("tendon_1", {"ends": '<equality><tendon tendon1="t"/></equality>'}),
    ],
)
def test_what_would_make_another_machine_is_refused(
    tmp_path: Path, where: str, options: dict[str, str]
) -> None:
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, machine(**options))
    assert [problem.where for problem in caught.value.problems] == [where]


@pytest.mark.parametrize("flag", ["constraint", "equality", "frictionloss", "spring", "damper"])
def test_a_flag_that_switches_no_force_off_changes_nothing(tmp_path: Path, flag: str) -> None:
    text = machine(joint='stiffness="0" damping="0.0" range="-1 1"', ends="<equality/>")
    plain = read(tmp_path, text)
    option = f'<option><flag {flag}="disable"/></option>'
    switched = read(tmp_path, text.replace("<worldbody>", f"{option}<worldbody>"))
    assert switched.joints == plain.joints
    assert switched.parameters == plain.parameters


def test_what_acts_from_outside_is_named(tmp_path: Path) -> None:
    text = machine(
        option='density="1.2" wind="1 0 0"', body='gravcomp="1"', compiler='boundmass="1e-14"'
    )
    arm = read(tmp_path, text)
    drag = "the drag of a medium (density 1.2, wind 1 0 0)"
    weight = "the compensation of the weight of body a (gravcomp=1)"
    assert set(arm.omitted_forces) == {drag, weight}
    assert f"- omitted: {drag}" in arm.description
    assert f"- omitted: {weight}" in arm.description


@pytest.mark.parametrize(
    ("equality", "rows"),
    [
        ('<joint joint1="j1" joint2="j2" polycoef="0.1"/>', 1),  # the slope that is not given is 1
        ('<joint joint1="j1" joint2="j2"/>', 1),
        ('<joint joint1="j2" polycoef="0.4"/>', 1),
        ('<joint joint1="j1" joint2="j2" class="off"/>', 0),
        ('<joint joint1="j1" joint2="j2" class="off" active="true"/>', 1),
        ('<connect body1="b" body2="c" anchor="0.1 0.2 0.3"/>', 3),
    ],
)
def test_equalities_miss_by_what_they_miss_in_mujoco(
    tmp_path: Path, equality: str, rows: int
) -> None:
    mujoco = extra("mujoco")
    defaults = '<default><default class="off"><equality active="false"/></default></default>'
    text = machine(top=defaults, ends=f"<equality>{equality}</equality>")
    gaps, model = loops(read(tmp_path, text)), mujoco.MjModel.from_xml_string(text)
    data, random = mujoco.MjData(model), np.random.default_rng(1)
    for _ in range(3):
        q = np.zeros(gaps.topology.n_q)
        for joint in ("j1", "j2", "j3"):
            value = random.uniform(-0.5, 0.5)
            q[gaps.topology.coordinate_names.index(joint)] = value
            data.qpos[model.joint(joint).qposadr[0]] = value
        mujoco.mj_forward(model, data)
        ours, theirs = gaps.residuals(q[None])[0][0], data.efc_pos[: data.ne]
        assert len(ours) == len(theirs) == rows
        assert np.abs(np.abs(ours) - np.abs(theirs)).max(initial=0.0) < AGREEMENT


@pytest.mark.parametrize(
    "relpose", ["0.1 0.2 0.3 1 2 3 4", "0 0 0 1 0 0 0", "0.1 0.2 0.3 0 0 0 0", ""]
)
@pytest.mark.parametrize("anchor", ["0.3 -0.1 0.2", ""])
def test_a_weld_with_an_anchor_misses_by_what_it_misses_in_mujoco(
    tmp_path: Path, relpose: str, anchor: str
) -> None:
    """The position of a stated relpose is that of the anchor in body1, not of body2."""
    mujoco = extra("mujoco")
    words = f'relpose="{relpose}"' * bool(relpose) + f' anchor="{anchor}"' * bool(anchor)
    text = machine(ends=f'<equality><weld body1="b" body2="c" {words}/></equality>')
    gaps, model = loops(read(tmp_path, text)), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ours = gaps.residuals(np.array([gaps.topology.reference]))[0][0]
    at = [k for k, name in enumerate(gaps.names) if name in ("weld_1: x", "weld_1: y", "weld_1: z")]
    assert np.linalg.norm(ours[at]) == pytest.approx(
        np.linalg.norm(data.efc_pos[:3]), abs=AGREEMENT
    )


# A whole leg, moved by MuJoCo's own terms


class Native:
    """A file as MuJoCo itself reads it: its mass matrix, forces and equality Jacobians, loops solved for exactly.

    [M Jt; J 0] [a; -lambda] = [S u - h; -J' v] by least squares, J' v by differences along the
    motion.
    """

    def __init__(self, path: Path, model: Model) -> None:
        self.mujoco = extra("mujoco")
        self.model = self.mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.disableflags |= self.mujoco.mjtDisableBit.mjDSBL_LIMIT
        edges = {edge.joint.name: edge for edge in model.topology.tree}
        self.edges = [
            edges[self.model.joint(j).name.replace("-", "_")] for j in range(self.model.njnt)
        ]  # no body is called as a joint

    def inward(self, j: int, q: np.ndarray) -> np.ndarray:
        """From our velocities of a joint to MuJoCo's, whose balls turn in the axes of their body."""
        if self.model.jnt_type[j] != self.mujoco.mjtJoint.mjJNT_BALL:
            return np.eye(1)
        return Rotation.from_quat(q[list(self.edges[j].q)], scalar_first=True).as_matrix().T

    def data(self, q: np.ndarray, v: np.ndarray) -> Any:
        data = self.mujoco.MjData(self.model)
        for j, edge in enumerate(self.edges):
            start, first = self.model.jnt_qposadr[j], self.model.jnt_dofadr[j]
            data.qpos[start : start + len(edge.q)] = q[list(edge.q)]
            data.qvel[first : first + len(edge.v)] = self.inward(j, q) @ v[list(edge.v)]
        self.mujoco.mj_forward(self.model, data)
        return data

    def loops(self, data: Any) -> np.ndarray:
        return np.array(data.efc_J.reshape(-1, self.model.nv)[: data.ne])

    def acceleration(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Accelerations (nv,) under motor forces."""
        model, mujoco, data, eps = self.model, self.mujoco, self.data(q, v), 1e-6
        assert np.abs(data.efc_pos[: data.ne]).max() < CLOSED
        M = np.array([self.column(data, k) for k in range(model.nv)]).T
        J, rates = self.loops(data), []
        for sign in (1, -1):
            ahead = mujoco.MjData(model)
            ahead.qpos[:] = data.qpos
            mujoco.mj_integratePos(model, ahead.qpos, data.qvel, sign * eps)
            mujoco.mj_forward(model, ahead)
            rates.append(self.loops(ahead) @ data.qvel)
        force = data.qfrc_passive - data.qfrc_bias
        for k, (joint, _) in enumerate(model.actuator_trnid):
            force[model.jnt_dofadr[joint]] += model.actuator_gear[k, 0] * u[k]
        matrix = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        right = np.concatenate([force, -(rates[0] - rates[1]) / (2 * eps)])
        return np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: model.nv]

    def column(self, data: Any, k: int) -> np.ndarray:
        result = np.zeros(self.model.nv)
        self.mujoco.mj_mulM(self.model, data, result, np.eye(self.model.nv)[k])
        return result


def test_a_leg_with_rods_and_springs_moves_as_mujocos_own_terms_say() -> None:
    path = Path(__file__).parents[1] / "cases" / "leg_with_rods.xml"
    model = Model(load(path), locks=Locks(spins=False))  # MuJoCo's coordinates, spins among them
    native = Native(path, model)
    assert (model.assembly.rank, model.assembly.mobility) == (5, 7)
    states = random_states(model, 4, np.random.default_rng(0))
    u = np.random.default_rng(1).uniform(-5, 5, size=(4, 4))
    moved = np.asarray(
        model.platform.forward_dynamics(states.position, states.velocity, u, start=states.q).a
    )
    for q, v, force, a in zip(states.q, states.v, u, moved, strict=True):
        expected = native.acceleration(q, v, force)
        ours = np.concatenate(
            [native.inward(j, q) @ a[list(edge.v)] for j, edge in enumerate(native.edges)]
        )
        assert np.abs(ours - expected).max() < DIFFERENCES * np.abs(expected).max()


@pytest.mark.parametrize(
    ("geoms", "moment"),
    [
        ("", 1.0 + 2.0 * 0.1**2),
        ('<geom size=".1" group="4"/>', 1.0 + 2.0 * 0.1**2),
        ('<geom size=".1" mass="0"/>', 1.0 + 2.0 * 0.1**2),
        ('<geom size=".1" density="0"/>', 1.0 + 2.0 * 0.1**2),
        ('<geom size=".1" mass="3"/>', 0.4 * 3.0 * 0.1**2),
    ],
)
def test_an_inertial_counts_if_no_geom_replaces_it(
    tmp_path: Path, geoms: str, moment: float
) -> None:
    """With ``inertiafromgeom="true"``: the moment about the hinge in closed form, and MuJoCo's."""
    mujoco = extra("mujoco")
    inertial = '<inertial mass="2" pos="0 0 0.1" diaginertia="1 1.1 1.2"/>'
    text = f"""<mujoco><compiler inertiafromgeom="true" inertiagrouprange="0 2"/><worldbody>
<body name="link"><joint name="hinge" axis="1 0 0"/>{inertial}{geoms}</body></worldbody></mujoco>"""
    tree = OpenTree(read(tmp_path, text))
    force, _ = tree(np.zeros(1), np.zeros(1), np.ones(1))
    model = mujoco.MjModel.from_xml_string(text)
    data, theirs = mujoco.MjData(model), np.zeros(1)
    mujoco.mj_forward(model, data)
    mujoco.mj_mulM(model, data, theirs, np.ones(1))
    assert force[0] == pytest.approx(moment, rel=AGREEMENT)
    assert force[0] == pytest.approx(theirs[0], rel=AGREEMENT)


LIMITED = """<mujoco><compiler angle="radian"/><default><joint actuatorfrcrange="-7 7"/></default>
<worldbody><body name="a"><joint name="j1" axis="0 1 0" actuatorfrcrange="-20 20"/>{geom}
<body name="b" pos="0.3 0 0"><joint name="j2" axis="0 1 0"/>{geom}
<body name="c" pos="0.3 0 0"><joint name="j3" axis="0 1 0" actuatorfrclimited="false"/>{geom}
<body name="d" pos="0.3 0 0"><joint name="j4" axis="0 1 0" actuatorfrclimited="false"/>{geom}
</body></body></body></body></worldbody>
<tendon><fixed name="t" actuatorfrcrange="-5 5"><joint joint="j3" coef="2"/></fixed></tendon>
<actuator><motor name="m1" joint="j1" gear="-4"/><motor name="m2" joint="j2" forcerange="-3 3"/>
<motor name="m3" tendon="t" gear="3"/><motor name="m4" joint="j4" gear="2"/></actuator></mujoco>"""


def test_limits_of_the_forces_at_joints_and_tendons_limit_motors(tmp_path: Path) -> None:
    """Against numbers by hand, and MuJoCo's joint forces of huge controls."""
    mujoco = extra("mujoco")
    text = LIMITED.format(geom='<geom size="0.1"/>')
    arm = read(tmp_path, text)
    assert [motor.force for motor in arm.actuators] == [20.0 / 4.0, 3.0, 5.0, np.inf]
    assert "not used: actuatorfrcrange" not in arm.description
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 1e6
    mujoco.mj_forward(model, data)
    for k, motor in enumerate(arm.actuators[:3]):
        ((_, ratio),) = motor.drives
        largest = motor.force * abs(arm.value(ratio))
        assert abs(data.qfrc_actuator[k]) == pytest.approx(largest, rel=AGREEMENT)
    assert data.qfrc_actuator[3] == pytest.approx(2e6)


INERTIAL = '<inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>'
SOLID = '<geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0" density="500"/>'


@pytest.mark.parametrize("from_geoms", ["true", "auto"])
@pytest.mark.parametrize("fused", ["true", "false"])
def test_an_inertial_that_mujoco_drops_is_refused_and_others_count(
    fused: str, from_geoms: str, tmp_path: Path
) -> None:
    """MuJoCo drops the inertials of fused bodies: exactly the files whose inertia differs are refused."""
    mujoco = extra("mujoco")
    refused = 0
    for parent, child in itertools.product((INERTIAL, SOLID, INERTIAL + SOLID), repeat=2):
        text = f"""<mujoco><compiler inertiafromgeom="{from_geoms}" fusestatic="{fused}"/>
<option gravity="0 0 0"/><worldbody><body name="a"><joint name="hinge" axis="0 1 0"/>{parent}
<body name="b" pos="0.3 0 0">{child}</body></body></worldbody></mujoco>"""
        model = mujoco.MjModel.from_xml_string(text)
        data, theirs = mujoco.MjData(model), np.zeros(1)
        mujoco.mj_forward(model, data)
        mujoco.mj_mulM(model, data, theirs, np.ones(1))
        separate = mujoco.MjModel.from_xml_string(text.replace('fusestatic="true"', ""))
        kept = np.zeros(1)
        data = mujoco.MjData(separate)
        mujoco.mj_forward(separate, data)
        mujoco.mj_mulM(separate, data, kept, np.ones(1))
        if theirs[0] != pytest.approx(kept[0]):
            refused += 1
            with pytest.raises(DescriptionError, match="MuJoCo drops its <inertial>"):
                read(tmp_path, text)
            continue
        force, _ = OpenTree(read(tmp_path, text))(np.zeros(1), np.zeros(1), np.ones(1))
        assert force[0] == pytest.approx(theirs[0], rel=AGREEMENT)
    assert refused == (5 if (fused, from_geoms) == ("true", "true") else 0)


SHARED = """<mujoco><worldbody><body name="a"><joint name="j1" axis="0 1 0" actuatorfrcrange="-20 20"/>
<geom size="0.1"/><body name="b"><joint name="j2" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody>
<tendon><fixed name="t" actuatorfrcrange="-5 5"><joint joint="j1" coef="2"/><joint joint="j2" coef="1"/>
</fixed></tendon><actuator><motor name="m1" joint="j1" gear="-4"/><motor name="m2" joint="j1"/>
<motor name="m3" tendon="t"/><motor name="m4" tendon="t" gear="3"/></actuator></mujoco>"""


def test_motors_that_share_the_limit_of_a_joint_or_tendon_get_parts_of_it(tmp_path: Path) -> None:
    """The forces at the joint are MuJoCo's, which limits the sum of all motors there."""
    mujoco = extra("mujoco")
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_string(SHARED))
    for motors, controls in (((), (-1, 1, 1, 1)), (("m1", "m2"), (-1, 1, 0, 0))):
        path = tmp_path / "m.xml"
        path.write_text(SHARED, encoding="utf-8")
        arm = load(path, motors=motors)
        data.ctrl[:] = 1e6 * np.array(controls)
        mujoco.mj_forward(model, data)
        ratios = [(dict(motor.drives)["j1"], motor.force) for motor in arm.actuators]
        largest = sum(abs(arm.value(ratio)) * force for ratio, force in ratios)
        assert largest == pytest.approx(data.qfrc_actuator[0], rel=AGREEMENT) == 20.0
        assert "joint j1 limits the sum of the forces of m1, m2" in arm.description
    (motor,) = load(path, motors=("j1",)).actuators
    assert motor.force == 20.0
    m3, m4 = load(path, motors=("m3", "m4")).actuators
    assert m3.force == m4.force == 2.5

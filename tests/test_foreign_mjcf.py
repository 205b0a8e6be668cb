"""What the MJCFs of others say beside a machine: read as MuJoCo reads it, refused, or named; MuJoCo is the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tauloop.errors import DescriptionError
from tauloop.functions.loops import loops
from tauloop.mechanism import load
from tauloop.mechanism.model import Mechanism

#: Sums of a few products of size one.
AGREEMENT = 1e-12

INERTIAL = '<inertial mass="1.2" pos="0.1 0 0.05" diaginertia="0.02 0.03 0.04"/>'


def machine(
    *, compiler: str = "", option: str = "", top: str = "", body: str = "", joint: str = "", ends: str = ""
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
        ("option.flag.spring", {"option": '<flag spring="disable"/>'}),
        ("option.flag.damper", {"option": '<flag damper="disable"/>'}),
        ("option.flag.equality", {"option": '<flag equality="disable"/>'}),
        ("option.flag.constraint", {"option": '<flag constraint="disable"/>'}),
        ("j1", {"joint": 'springdamper="0.1 1"'}),
        ("weld_1", {"ends": '<equality><weld body1="b" body2="c" torquescale="0"/></equality>'}),
        ("flex_1", {"ends": '<equality><flex flex="f"/></equality>'}),
        ("tendon_1", {"ends": '<equality><tendon tendon1="t"/></equality>'}),
    ],
)
def test_what_would_make_another_machine_is_refused(tmp_path: Path, where: str, options: dict[str, str]) -> None:
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, machine(**options))
    assert [problem.where for problem in caught.value.problems] == [where]


def test_what_acts_from_outside_is_named(tmp_path: Path) -> None:
    text = machine(option='density="1.2" wind="1 0 0"', body='gravcomp="1"', compiler='boundmass="1e-14"')
    told = read(tmp_path, text).description
    assert "- the drag of a medium (density, wind) acts in MuJoCo and is not carried over" in told
    assert "- a: the compensation of weight (gravcomp) is not carried over: motors carry it" in told


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
def test_equalities_miss_by_what_they_miss_in_mujoco(tmp_path: Path, equality: str, rows: int) -> None:
    mujoco = pytest.importorskip("mujoco")
    defaults = '<default><default class="off"><equality active="false"/></default></default>'
    text = machine(top=defaults, ends=f"<equality>{equality}</equality>")
    found, model = loops(read(tmp_path, text)), mujoco.MjModel.from_xml_string(text)
    data, random = mujoco.MjData(model), np.random.default_rng(1)
    for _ in range(3):
        q = np.zeros(found.topology.n_q)
        for joint in ("j1", "j2", "j3"):
            value = random.uniform(-0.5, 0.5)
            q[found.topology.coordinate_names.index(joint)] = value
            data.qpos[model.joint(joint).qposadr[0]] = value
        mujoco.mj_forward(model, data)
        ours, theirs = found.residuals(q[None])[0][0], data.efc_pos[: data.ne]
        assert len(ours) == len(theirs) == rows
        assert np.abs(np.abs(ours) - np.abs(theirs)).max(initial=0.0) < AGREEMENT

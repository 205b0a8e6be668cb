"""Xacro files: what they expand to, what they may read and run, and what is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop import DescriptionError, InputError
from tauloop.formats import load
from tauloop.formats.options import ImportOptions
from tauloop.formats.xml import xacro

HEAD = '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">'
ARM = f"""<?xml version="1.0"?>
{HEAD}
<xacro:arg name="prefix" default=""/><xacro:arg name="length" default="0.3"/>
<xacro:property name="L" value="$(arg length)"/>
<xacro:include filename="parts/link.xacro"/><xacro:include filename="absent.xacro" optional="true"/>
<link name="base_link"/>
<xacro:arm_link name="$(arg prefix)upper" length="${{L}}" mass="${{2*0.5}}"/>
<joint name="shoulder" type="revolute"><parent link="base_link"/><child link="$(arg prefix)upper"/><axis xyz="0 1 0"/>
<limit lower="${{-pi/2}}" upper="${{radians(90)}}" effort="$(eval 2*5)"
velocity="${{max([x for x in (1, 2)])}}"/></joint>
</robot>"""
LINK = f"""{HEAD}
<xacro:macro name="arm_link" params="name length mass"><link name="${{name}}"><inertial>
<origin xyz="${{length/2}} 0 0"/><mass value="${{mass}}"/><inertia ixx="0.001" iyy="${{mass*length**2/12}}"
izz="${{'%.6f' % (mass*length**2/12)}}" ixy="0" ixz="0" iyz="0"/></inertial></link></xacro:macro></robot>"""
#: Texts of numbers that Python prints.
ROUNDING = 1e-12


def arm(folder: Path) -> Path:
    """Write the arm, whose link is a macro of another file; return its path."""
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "link.xacro").write_text(LINK, encoding="utf-8")
    path = folder / "arm.urdf.xacro"
    path.write_text(ARM, encoding="utf-8")
    return path


def refusal(path: Path, **options: object) -> tuple[str, str, str]:
    with pytest.raises((DescriptionError, InputError)) as caught:
        load(path, options=ImportOptions(**options))
    (problem,) = caught.value.problems
    return problem.where, problem.what, problem.remedy


def test_a_xacro_is_expanded_with_its_arguments(tmp_path: Path) -> None:
    extra("xacro")
    path = arm(tmp_path)
    for length, texts in ((0.3, ()), (0.6, ("length:=0.6", "prefix:=left_"))):
        machine = load(path, options=ImportOptions(xacro=texts))
        (body,) = machine.bodies
        assert body.name == ("left_upper" if texts else "upper")
        assert machine.value(body.inertia.mass) == 1.0
        assert machine.value(body.inertia.first_moment[0]) == pytest.approx(
            length / 2, abs=ROUNDING
        )
        (freedom,) = machine.joint("shoulder").freedoms
        assert (freedom.lower, freedom.upper, freedom.speed) == (-np.pi / 2, np.pi / 2, 2.0)
        torque = tl.inverse_dynamics(machine).forces.force
        assert torque == pytest.approx(np.array([[-9.81 * length / 2]]), rel=ROUNDING)
        assert "expanded by xacro" in machine.description
    assert machine.file == str(path)


def test_numbers_of_a_yaml_file_are_read(tmp_path: Path) -> None:
    extra("xacro")
    (tmp_path / "arm.yaml").write_text(
        "link: {mass: 2.5, angle: !degrees 90, length: !millimeters 250}\n"
    )
    (tmp_path / "arm.xacro").write_text(
        f"""{HEAD}<xacro:property name="arm" value="${{xacro.load_yaml('arm.yaml')['link']}}"/><link name="base"/>
        <link name="a"><inertial><origin xyz="${{arm.length}} 0 0"/><mass value="${{arm.mass}}"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
        <limit lower="0" upper="${{arm.angle}}" effort="1" velocity="1"/></joint></robot>"""
    )
    machine = load(tmp_path / "arm.xacro")
    assert machine.value(machine.bodies[0].inertia.first_moment[0]) == 2.5 * 0.25
    assert machine.joint("j").freedoms[0].upper == np.pi / 2


def test_a_file_of_another_encoding_is_read_and_warnings_are_notes(tmp_path: Path) -> None:
    extra("xacro")
    text = f"""<?xml version="1.0" encoding="windows-1252"?>{HEAD}<!-- für -->
    <xacro:include filename="no*.xacro"/><xacro:property name="x" value="a"/><link name="${{x}}"/><link name="b"/>
    <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
    (tmp_path / "r.xacro").write_bytes(text.encode("cp1252"))
    assert "matched no files" in load(tmp_path / "r.xacro").description


def test_a_template_that_prints_without_end_fills_its_own_memory_alone(tmp_path: Path) -> None:
    extra("xacro")
    body = expression("[xacro.message('x' * 10**7) for k in python.range(10**6)]")
    (tmp_path / "r.xacro").write_text(f'{HEAD}{body}<link name="base"/></robot>', encoding="utf-8")
    assert "exceeds the limits of size and time (MemoryError)" in refusal(tmp_path / "r.xacro")[1]
    body = expression("fatal('x' * 10**7)").replace("fatal", "xacro.fatal")
    (tmp_path / "r.xacro").write_text(f'{HEAD}{body}<link name="base"/></robot>', encoding="utf-8")
    assert len(refusal(tmp_path / "r.xacro")[1]) <= 500


def test_a_xacro_of_an_sdf_is_an_sdf(tmp_path: Path) -> None:
    extra("xacro")
    text = """<sdf version="1.9" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:property name="m" value="${1+1}"/>
<model name="m"><link name="a"/><link name="b"><inertial><mass>${m}</mass></inertial></link>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis/></joint></model></sdf>"""
    for name in ("m.sdf.xacro", "m.xacro", "m.sdf"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        machine = load(tmp_path / name)
        assert machine.value(machine.body("b").inertia.mass) == 2.0


def test_what_is_wrong_in_the_expanded_text_is_named_with_its_line(tmp_path: Path) -> None:
    extra("xacro")
    path = tmp_path / "r.xacro"
    path.write_text(
        f'{HEAD}<xacro:property name="m" value="-1"/>\n<link name="a"><inertial><mass value="${{m}}"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    with pytest.raises(DescriptionError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.what == "the mass is -1 kg"
    assert problem.file == f"{path} (expanded)"
    assert problem.line is not None


def test_a_xacro_without_the_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xacro, "_import_folder", lambda name: None)
    for name, text in (
        (
            "r.urdf.xacro",
            f'{HEAD}<xacro:property name="x" value="1"/><link name="${{x}}"/></robot>',
        ),
        ("r.xacro", '<robot name="r"><link name="${x}"/></robot>'),
        ("r.urdf", f"{HEAD}<link name=\"a\"/><xacro:if value='1'/></robot>"),
        ("r.urdf", f'{HEAD}<link name="${{x}}"/></robot>'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        _, what, remedy = refusal(tmp_path / name)
        assert what == "the file is a xacro template, which requires the package xacro"
        assert (
            remedy
            == "pip install 'tauloop[xacro]', or expand it first: `xacro NAME.xacro > NAME.urdf`"
        )


@pytest.mark.parametrize(
    "text", ["<robot>\n${x < 3}\n</robot>", "<robot>$(arg", '<robot><link name="${x}"></robot>']
)
def test_a_file_that_is_not_well_formed_is_no_xacro(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    _, what, remedy = refusal(tmp_path / "r.urdf")
    assert "not well-formed" in what
    assert remedy == "correct the XML at this position"


def test_a_folder_called_xacro_is_not_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages of ROS have such folders, and Python takes one on its path for a package without a file."""
    (tmp_path / "someones_xacro_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.util.find_spec("someones_xacro_folder") is not None
    assert xacro._import_folder("someones_xacro_folder") is None


def test_a_link_to_a_file_reads_what_is_next_to_that_file(tmp_path: Path) -> None:
    """As ROS installs packages: each file is a link to the one among the sources."""
    extra("xacro")
    path = arm(tmp_path / "source")
    installed = tmp_path / "installed"
    (installed / "parts").mkdir(parents=True)
    (installed / path.name).symlink_to(path)
    (installed / "parts" / "link.xacro").symlink_to(path.parent / "parts" / "link.xacro")
    assert load(installed / path.name).bodies[0].name == "upper"


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    extra("xacro")
    path = arm(tmp_path)
    assert refusal(path, xacro=("leng:=1",)) == (
        "--xacro",
        "there is no argument leng",
        "there are length, prefix",
    )
    assert refusal(path, xacro=("length=1",)) == (
        "xacro",
        "'length=1' is not of the form NAME:=VALUE",
        "write NAME:=VALUE",
    )
    assert refusal(path, xacro=("length:=1", "length:=2"))[1] == "'length' is given twice"
    (tmp_path / "plain.urdf").write_text(
        '<robot name="r"><link name="a"/></robot>', encoding="utf-8"
    )
    assert refusal(tmp_path / "plain.urdf", xacro=("length:=1",))[:2] == (
        "xacro",
        f"arguments are given, but {tmp_path / 'plain.urdf'} is not a xacro template",
    )
    path.write_text(f'{HEAD}<link name="$(arg name)"/></robot>', encoding="utf-8")
    assert refusal(path) == (
        "",
        "Undefined substitution argument name",
        "give its value: --xacro NAME:=VALUE",
    )


def test_packages_are_found_in_the_folders_that_are_named(tmp_path: Path) -> None:
    extra("xacro")
    path = arm(tmp_path / "arm_description" / "urdf")
    text = ARM.replace('filename="parts/', 'filename="$(find %s)/parts/')
    path.write_text(text % "tools", encoding="utf-8")
    (tmp_path / "else" / "tools" / "parts").mkdir(parents=True)
    (tmp_path / "else" / "tools" / "parts" / "link.xacro").write_text(LINK, encoding="utf-8")
    where, what, remedy = refusal(path)
    assert (where, what) == ("$(find tools)", "there is no folder of the package 'tools'")
    assert "--package-folder FOLDER" in remedy
    for folder in (tmp_path / "else", tmp_path / "else" / "tools"):
        assert (
            load(path, options=ImportOptions(package_folders=(folder,))).bodies[0].name == "upper"
        )
    # the package that the file itself is in is known, and what is not in the file's own folder is
    # not read
    path.write_text((text % "arm_description").replace("/parts/", "/urdf/parts/"), encoding="utf-8")
    assert load(path).bodies[0].name == "upper"
    (tmp_path / "arm_description" / "parts").mkdir()
    (tmp_path / "arm_description" / "parts" / "link.xacro").write_text(LINK, encoding="utf-8")
    path.write_text(text % "arm_description", encoding="utf-8")
    _, what, remedy = refusal(path)
    assert what.endswith("is outside the folder of the file")
    assert "--package-folder FOLDER" in remedy
    options = ImportOptions(package_folders=(tmp_path / "arm_description",))
    assert load(path, options=options).bodies[0].name == "upper"


def expression(text: str) -> str:
    return f'<xacro:property name="x" value="${{{text}}}"/><link name="${{x}}"/>'


HIDDEN = "could run arbitrary code"
OUTSIDE = "is outside the folder of the file"
HOSTILE = {
    "class in a comprehension": (expression("[c for c in [1] if c.__class__]"), HIDDEN),
    "class in a lambda": (expression("(lambda: ().__class__.__base__.__subclasses__())()"), HIDDEN),
    "frame of a generator": (
        expression("[g.gi_frame.f_back for g in [(y for y in [1])]][0]"),
        HIDDEN,
    ),
    "mro": (expression("str.mro()"), HIDDEN),
    "vars": (expression("python.vars(list)"), "name 'vars' is not defined"),
    "type": (expression("python.type(1)"), "name 'type' is not defined"),
    "open": (expression("open('secret').read()"), "name 'open' is not defined"),
    "eval": ("<link name=\"$(eval ${'open'}('x'))\"/>", "was never closed"),
    "eval of a text": (
        '<xacro:property name="x" value="open(\'secret\').read()"/><link name="$(eval ${x})"/>',
        "name 'open' is not defined",
    ),
    "eval of an import": (
        '<xacro:property name="x" value="__import__(\'os\')"/><link name="$(eval ${x})"/>',
        HIDDEN,
    ),
    "getattr in eval": (
        '<xacro:property name="x" value="getattr(1, \'real\')"/><link name="$(eval ${x})"/>',
        "name 'getattr' is not defined",
    ),
    "walrus": (expression("[(y := 1)]"), HIDDEN),
    "include of a path": ('<xacro:include filename="/etc/hostname"/>', OUTSIDE),
    "include above": ('<xacro:include filename="../secret"/>', OUTSIDE),
    "optional include above": ('<xacro:include filename="../secret" optional="true"/>', OUTSIDE),
    "pattern above": ('<xacro:include filename="../*.xacro"/>', OUTSIDE),
    "pattern through a link": ('<xacro:include filename="folder/*"/>', OUTSIDE),
    "link": ('<xacro:include filename="link.xacro"/>', OUTSIDE),
    "yaml above": (expression("xacro.load_yaml('../secret')"), OUTSIDE),
    "yaml of a link": (expression("xacro.load_yaml('link.xacro')"), OUTSIDE),
    "environment": ('<link name="$(env HOME)"/>', "environment variables are not supported"),
    "document type": (
        '<xacro:include filename="typed.xacro"/>',
        "document type and entity declarations are rejected",
    ),
    "endless macro": (
        '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>',
        "its expansion does not end",
    ),
    "endless include": ('<xacro:include filename="r.xacro"/>', "its expansion does not end"),
    "memory": (expression("'a' * 10**12"), "exceeds the limits of size and time"),
    "missing file": ('<xacro:include filename="absent.xacro"/>', "there is no file"),
    "unknown macro": ("<xacro:foo/>", "unknown macro name"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_template_runs_no_code_and_reads_nothing_elsewhere(tmp_path: Path, name: str) -> None:
    extra("xacro")
    body, what = HOSTILE[name]
    (tmp_path / "secret").write_text("hush: 1", encoding="utf-8")
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "link.xacro").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "typed.xacro").write_text('<!DOCTYPE r [<!ENTITY a "x">]><robot/>', encoding="utf-8")
    (folder / "r.xacro").write_text(f'{HEAD}{body}<link name="base"/></robot>', encoding="utf-8")
    answer = " ".join(refusal(folder / "r.xacro"))
    assert what in answer
    assert "hush" not in answer


def test_code_that_runs_in_spite_of_that_writes_starts_and_reads_nothing(tmp_path: Path) -> None:
    """The audit hook of the process, without the restrictions of expressions before it."""
    import subprocess
    import sys

    (tmp_path / "secret").write_text("hush", encoding="utf-8")
    folder = tmp_path / "machine"
    folder.mkdir()
    program = Path(xacro.__file__).with_name("xacro_process.py")
    begin = (
        f"import runpy, os, socket, subprocess, sys\nm = runpy.run_path({str(program)!r})\n"
        f"request = dict(file={str(folder / 'r.xacro')!r}, folders=[], arguments={{}}, bytes=9)\n"
        "m['_guard'](m['_Template'](request))\n"
    )
    for attempt in (
        f"open({str(tmp_path / 'secret')!r})",
        f"open({str(folder / 'new')!r}, 'w')",
        f"os.open({str(tmp_path / 'secret')!r}, 0)",
        f"os.listdir({str(tmp_path)!r})",
        "os.system('true')",
        "subprocess.run(['true'])",
        "os.fork()",
        f"os.remove({str(tmp_path / 'secret')!r})",
        "socket.socket()",
        "import wave",
    ):
        code = f"{begin}try:\n    {attempt}\nexcept m['Refused']:\n    os._exit(7)\n"
        ended = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 7, f"{attempt}: {ended.stderr}"


def test_a_template_has_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra("xacro")
    monkeypatch.setattr(xacro, "EXPANSION_TIMEOUT", 1)
    (tmp_path / "r.xacro").write_text(f"{HEAD}{expression('10**10**10')}</robot>", encoding="utf-8")
    assert refusal(tmp_path / "r.xacro")[1] == "the expansion took more than 1 s"

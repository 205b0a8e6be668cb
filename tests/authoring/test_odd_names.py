"""Names that mean something elsewhere are names, and nothing else, in C, XML, launch files, HAL and INI."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from compiled_machines import compilers
from hypothesis import given, settings, strategies as st

import tauloop as tl
from tauloop.compiler.c.printing.source import c_string
from tauloop.mechanism.model import Mechanism

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
#: What ends strings, comments, lines or tags, starts commands, or stands for something else.
ODD = (
    *(
        "a b",
        'a"b',
        "a'b",
        "\u00e9\u4e2d\U0001f600",
        "a; touch x",
        "$(touch x)",
        "`touch x`",
        "*/ int x; /*",
        "// x",
    ),
    *(
        "%s%n",
        "<b>&]]>",
        "{{x}}",
        "@NAME@",
        "@PACKAGE@",
        "n" * 300,
        "../x",
        "-rf",
        "9",
        "a\\\\",
        "#x",
        "loadrt x",
        "a??/",
        "[A]",
    ),
)
#: Names that a file may have, and that are words of C, of HAL, or alike once points are gone.
WORDS = (
    *(
        "int",
        "a.b",
        "a_b",
        "double",
        "x" * 64,
        "loadrt",
        "main",
        "NULL",
        "M_PI",
        "setp",
        "JOINTS",
        "machine",
    ),
    *("include", "if", "q", "theta", "EOF", "tauloop_pins", "net", "define"),
)

#: All of them in one by day, each by itself by night.
ONE_BY_ONE = pytest.mark.parametrize(
    "name", [" ".join(ODD), *(pytest.param(name, marks=pytest.mark.nightly) for name in ODD)]
)


def renamed(machine: Mechanism, names: Mapping[str, str], name: str) -> Mechanism:
    """The machine with other names of its bodies, joints and actuators."""

    def change(part: Any) -> Any:
        if isinstance(part, str):
            return names.get(part, part)
        if is_dataclass(part) and not isinstance(part, type):
            return replace(
                part, **{f.name: change(getattr(part, f.name)) for f in fields(part) if f.init}
            )
        if isinstance(part, tuple):
            return type(part)(change(item) for item in part)
        return part

    parts = {
        key: change(getattr(machine, key))
        for key in ("bodies", "joints", "rods", "actuators", "platform")
    }
    return replace(machine, name=name, **parts)


def odd_machine(kind: int) -> Mechanism:
    """A linear Delta with names that a file may have."""
    machine = tl.load("linear_delta")
    plain = dict.fromkeys(
        item.name for item in (*machine.bodies, *machine.joints, *machine.actuators)
    )
    kept = ("platform",)  # which names its coordinates
    names = {
        name: WORDS[(k + kind) % len(WORDS)]
        for k, name in enumerate(name for name in plain if name not in kept)
    }
    assert len(names) <= len(WORDS)
    return renamed(machine, names, WORDS[kind % len(WORDS)].partition(".")[0])


@settings(max_examples=50)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20))
def test_a_string_in_c_is_the_text(text: str) -> None:
    """Oracle: Python reads octal escapes as C does."""
    body = c_string(text)[1:-1]
    assert body.isascii()
    assert "?" not in body
    assert body.encode().decode("unicode_escape").encode("latin-1").decode() == text


def test_the_compiler_reads_the_same_strings(tmp_path: Path) -> None:
    lines = ", ".join(c_string(name) for name in ODD)
    (tmp_path / "names.c").write_text(
        f"const char *const names[] = {{{lines}}};\n", encoding="utf-8"
    )
    subprocess.run(
        [compilers()[0], *STRICT[:-1], "-shared", "-fPIC", "names.c", "-o", "names.so"],
        cwd=tmp_path,
        check=True,
    )
    read = (ctypes.c_char_p * len(ODD)).in_dll(ctypes.CDLL(str(tmp_path / "names.so")), "names")
    assert tuple(name.decode() for name in read) == ODD


@ONE_BY_ONE
def test_what_may_not_be_a_name_is_refused_where_a_machine_comes_in(
    name: str, tmp_path: Path
) -> None:
    """A machine file, and a URDF, whose names may be anything: refused, or others in the machine."""
    text = tl.dumps(tl.load("five_bar"))
    for old in ("name: five_bar", "crank_1:", "shoulder_1:", "motor_1:"):
        assert old in text
        with pytest.raises(tl.DescriptionError):
            tl.loads(
                text.replace(
                    old,
                    f"{json.dumps(name)}:" if old.endswith(":") else f"name: {json.dumps(name)}",
                    1,
                )
            )
    root = ElementTree.Element("robot", name=name)
    for link in (name, "other"):
        ElementTree.SubElement(root, "link", name=link)
    joint = ElementTree.SubElement(root, "joint", name=name, type="revolute")
    ElementTree.SubElement(joint, "parent", link=name)
    ElementTree.SubElement(joint, "child", link="other")
    (tmp_path / "odd.urdf").write_bytes(ElementTree.tostring(root))
    with suppress(tl.DescriptionError):
        machine = tl.load(tmp_path / "odd.urdf")
        for item in (machine, *machine.bodies, *machine.joints, *machine.actuators):
            assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", item.name)


@ONE_BY_ONE
def test_what_a_package_says_of_itself_is_text(name: str, tmp_path: Path) -> None:
    package = tl.export_ros2(
        tl.load("five_bar"),
        tl.Ros2Options(package="odd", maintainer=name, email=name, hardware=name),
    )
    described = ElementTree.fromstring(package.files["package.xml"]).find("maintainer")
    assert described is not None
    assert (described.text, described.get("email")) == (name, name)
    assert (
        ElementTree.fromstring(package.files["urdf/machine.urdf"]).findtext(
            "ros2_control/hardware/plugin"
        )
        == name
    )
    for other in ("src/machine_joints.h", "launch/display.launch.py", "CMakeLists.txt"):
        assert name == "9" or name not in package.files[other]


@pytest.mark.parametrize("text", ["a\x01", "a\nb", "\u202ea"])
def test_signs_that_xml_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(tl.InputError, match="cannot be printed"):
        tl.Ros2Options(maintainer=text)


@pytest.mark.parametrize(
    "kind", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1, len(WORDS)))]
)
def test_a_package_of_ros_compiles_with_words_of_other_languages(kind: int, tmp_path: Path) -> None:
    machine = odd_machine(kind)
    package = tl.export_ros2(machine, tl.Ros2Options(package="odd"), folder=tmp_path)
    for name in ("machine.c", "passive_joints.c"):
        subprocess.run([compilers()[0], *STRICT, name], cwd=tmp_path / "src", check=True)
    robot = ElementTree.fromstring(package.files["urdf/machine.urdf"])
    joints = [joint.get("name") for joint in robot.findall("joint")]
    assert len(set(joints)) == len(joints)
    assert set(package.joints) <= set(joints)
    assert len(package.driven) == 3
    plain = tl.export_ros2(tl.load("linear_delta"), tl.Ros2Options(package="odd"))
    for file in ("launch/display.launch.py", "CMakeLists.txt"):
        assert package.files[file] == plain.files[file], "no name of a machine stands in it"


@pytest.mark.parametrize(
    "kind", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(1, len(WORDS)))]
)
def test_a_module_for_linuxcnc_has_them_in_comments_alone(kind: int) -> None:
    machine = odd_machine(kind)
    options = tl.LinuxcncOptions(name="odd")
    export, plain = (
        tl.export_linuxcnc(machine, options),
        tl.export_linuxcnc(tl.load("linear_delta"), options),
    )
    assert set(export.files) == set(plain.files)
    for name, text in export.files.items():
        if name.endswith((".hal", ".ini")):
            assert statements(text) == statements(plain.files[name])


def statements(text: str) -> list[str]:
    """Lines of HAL or INI that are no comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


@ONE_BY_ONE
def test_a_module_s_name_is_refused_or_becomes_one(name: str) -> None:
    options, machine = tl.LinuxcncOptions(name=name), tl.load("linear_delta")
    if not name[0].isascii() or not name[0].isalpha():
        with pytest.raises(tl.InputError, match="identifier"):
            tl.export_linuxcnc(machine, options)
        return
    export = tl.export_linuxcnc(machine, options)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", export.name)
    assert all(re.fullmatch(r"[A-Za-z0-9_.]+", file) for file in export.files)

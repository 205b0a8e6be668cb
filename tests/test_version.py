"""The version of Tauloop has one place; all files that state it follow."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tauloop as tl
from conftest import ROOT
from tauloop.common import result
from tauloop.common.names.deprecated import REMOVED_IN
from tauloop.common.result import tauloop_version
from tauloop.study.workers import own_version

#: A version that no release has.
OTHER_VERSION = "98.76.54"


@pytest.fixture
def other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Tauloop with another version."""
    monkeypatch.setattr(tl, "__version__", OTHER_VERSION)
    result._package_version.cache_clear()
    own_version.cache_clear()
    yield OTHER_VERSION
    monkeypatch.undo()
    result._package_version.cache_clear()
    own_version.cache_clear()


def test_all_written_files_state_the_version_of_the_package(
    other_version: str, tmp_path: Path
) -> None:
    machine = tl.load("delta")
    texts: dict[str, Any] = {
        "result": json.dumps(tl.inverse_kinematics(machine).as_dict()["provenance"]),
        "C": json.dumps(tl.export_c(machine, tmp_path / "c").manifest),
        "FMU": tl.export_fmu(machine, binary=False).files["modelDescription.xml"],
        "ROS": tl.export_ros2(machine).files["package.xml"],
        "study": own_version(),
    }
    linuxcnc = tl.export_linuxcnc(machine)
    texts |= {"LinuxCNC": linuxcnc.files["delta_kins.c"], "manifest": str(linuxcnc.manifest)}
    controller = tl.export_controller(machine, controller="pd")
    texts["controller"] = str(controller.manifest)
    assert [name for name, text in texts.items() if other_version not in text] == []


def test_the_papers_have_the_version_and_need_it() -> None:
    text = (ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    major, minor, _ = tl.__version__.split(".")
    assert project["version"] == tl.__version__
    (tauloop,) = (item for item in project["dependencies"] if item.startswith("tauloop["))
    assert tauloop.endswith(f">={major}.{minor},<{major}.{int(minor) + 1}")


def test_old_names_are_removed_in_the_next_minor_version() -> None:
    major, minor, _ = tauloop_version().split(".")
    assert f"{major}.{int(minor) + 1}" == REMOVED_IN


def test_the_changelog_has_a_section_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{tl.__version__}] - " in text

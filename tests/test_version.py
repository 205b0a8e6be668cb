"""The version of Tauloop has one place; all files that state it follow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tauloop as tl
from tauloop.common import result
from tauloop.study.workers import own_version

#: A version that no release has.
OTHER_VERSION = "98.76.54"


@pytest.fixture
def other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Tauloop with another version."""
    monkeypatch.setattr(tl, "__version__", OTHER_VERSION)
    result._installed.cache_clear()
    own_version.cache_clear()
    yield OTHER_VERSION
    monkeypatch.undo()
    result._installed.cache_clear()
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
    controller = tl.export_controller(machine, law="pd")
    texts["controller"] = str(controller.manifest)
    assert [name for name, text in texts.items() if other_version not in text] == []

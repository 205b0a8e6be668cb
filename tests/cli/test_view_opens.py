"""`tauloop view --open` in a real browser: the one that the environment names goes to the printed address."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from browser import FLAGS, attached, executable
from extras import extra

extra("viser")


# software that draws in three dimensions takes all of a core while the page is open
@pytest.mark.nightly
@pytest.mark.skipif(executable() is None, reason="needs Chromium or Chrome, and none is installed")
def test_the_browser_of_the_environment_shows_the_machine_at_the_printed_address(
    tmp_path: Path,
) -> None:
    start = tmp_path / "browse"
    words = (executable(), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}")
    start.write_text(
        f'#!/bin/sh\necho $$ > {tmp_path / "pid"}\nexec {shlex.join(words)} "$1" 2> /dev/null\n'
    )
    start.chmod(0o700)
    (tmp_path / "profile").mkdir()
    command = [
        sys.executable,
        "-m",
        "tauloop",
        "view",
        "five_bar",
        "--port",
        "0",
        "--json",
        "--open",
    ]
    environment = os.environ | {"BROWSER": f"{start} %s &"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
        try:
            with attached(tmp_path / "profile", program) as page:
                page.wait(
                    lambda: "platform.x" in page.text(),
                    "the panel is there",
                )
                printed, _ = json.JSONDecoder().raw_decode(_until_closed(program))
                assert page.run("location.origin + location.pathname") == printed["url"]
                assert page.errors() == []
        finally:
            program.kill()
            subprocess.run(["kill", (tmp_path / "pid").read_text().strip()], check=False)


def _until_closed(program: subprocess.Popen[str]) -> str:
    """The lines of one JSON object that a program goes on after."""
    assert program.stdout is not None
    lines = [program.stdout.readline()]
    while not lines[-1].startswith("}"):
        lines.append(program.stdout.readline())
    return "".join(lines)

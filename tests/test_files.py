"""Files: whole or untouched, written through links and into devices, and refused before the work that makes them."""

from __future__ import annotations

import inspect
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import typing
from pathlib import Path
from typing import Any

import pytest
from commands import function_of, written_by
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.app import app
from tauloop.cli.commands import COMMANDS
from tauloop.common import files
from tauloop.common.errors import InputError
from tauloop.common.files import require_writable, write_file, write_text

needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0, reason="needs a user whom permissions bind; this one may write everywhere"
)
FULL = Path("/dev/full")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "data.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    assert write_text(link, "new") == link
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert names(tmp_path) == ["link.csv", "real"]
    assert names(tmp_path / "real") == ["data.csv"]


def test_a_link_to_nothing_makes_the_file_it_names(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("later.csv")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "later.csv").read_text() == "new"


def test_links_in_a_circle_are_refused(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(InputError, match="cannot be written"):
        write_text(first, "x")
    assert first.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_existing_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "run.sh"
    path.touch()
    path.chmod(mode)
    write_text(path, "x")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_masks(tmp_path):
    write_text(tmp_path / "a", "x")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_pipe_gets_the_bytes_and_stays(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_text(path, "through")
    reader.join(10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_device_gets_the_bytes_and_stays():
    before = os.stat(os.devnull)
    write_text(os.devnull, "nothing")
    assert os.stat(os.devnull).st_rdev == before.st_rdev
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not FULL.exists(), reason=f"needs {FULL}, a disk that is always full")
def test_a_full_device_is_reported():
    with pytest.raises(InputError, match="No space left on device") as error:
        write_text(FULL, "x" * 100_000)
    assert "free space" in error.value.problems[0].remedy


STANDARD_OUTPUT = """
import sys
from tauloop.common.files import write_text
print("before")
write_text(sys.argv[1], "written\\n")
print("after")
"""


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to_file", [False, True], ids=["pipe", "file"])
def test_standard_output_keeps_its_place_and_its_order(path, to_file, tmp_path):
    """Redirected to a file, that file is not replaced under the shell's feet."""
    command = [sys.executable, "-c", STANDARD_OUTPUT, path]
    if to_file:
        target = tmp_path / "all.txt"
        with target.open("wb") as stream:
            subprocess.run(command, stdout=stream, check=True)
        text = target.read_text()
        assert names(tmp_path) == ["all.txt"]
    else:
        text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert text == "before\nwritten\nafter\n"


def test_what_is_no_file_asks_for_room_elsewhere(tmp_path, monkeypatch):
    """The disk of temporary files is full or gone, not the one that a pipe or standard output leads to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(InputError) as error:
        write_text("/dev/null", "new")
    problem = error.value.problems[0]
    assert (problem.where, "TMPDIR" in problem.remedy) == ("/dev/null", True)
    assert "temporary file: No such file" in problem.what


def test_a_temporary_name_cannot_be_foreseen_nor_taken(tmp_path):
    """It is another one every time, and made by ourselves: a link that lies there is never followed."""
    seen: list[str] = []
    for _ in range(3):
        write_file(tmp_path / "data.csv", lambda temporary: seen.append(temporary.name))
    assert len(set(seen)) == 3
    assert all(name.startswith(".data.") and name.endswith(".csv") for name in seen)


def test_a_name_that_is_taken_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_token", lambda: "0" * 16)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".data.{'0' * 16}.csv").symlink_to(victim)
    with pytest.raises(InputError, match="File exists"):
        write_text(tmp_path / "data.csv", "x")
    assert victim.read_text() == "precious"


KILLED = """
import os, signal, sys
from pathlib import Path
from tauloop.common.files import write_file
def write(temporary):
    temporary.write_text("half")
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("there", flush=True)
    sys.stdin.read()
write_file(Path(sys.argv[1]), write)
"""


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), "kill"], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = set(names(tmp_path)) - {"data.csv"}
    assert path.read_text() == "old"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path), "wait"], **pipes) as living:
        living.stdout.readline()
        held = set(names(tmp_path)) - {"data.csv", left}
        for name in (left, *held):
            os.utime(tmp_path / name, (time.time() - 3600,) * 2)
        write_text(path, "new")
        assert set(names(tmp_path)) == {"data.csv", *held}
        living.communicate()
    assert names(tmp_path) == ["data.csv"]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda folder: folder, "the path is a folder"),
        (lambda folder: folder / "missing" / "a.csv", "No such file or directory"),
        (lambda folder: folder / "file" / "a.csv", "Not a directory"),
        (lambda folder: folder / ("x" * 300), "name too long"),
        (lambda folder: folder / "a\0b.csv", "zero byte"),
    ],
    ids=["folder", "no folder", "file as folder", "long name", "zero byte"],
)
def test_paths_that_cannot_be_are_refused_beforehand_and_then(tmp_path, make, what):
    (tmp_path / "file").touch()
    path = make(tmp_path)
    for refused in (lambda: require_writable(path), lambda: write_text(path, "x")):
        with pytest.raises(InputError, match=what) as error:
            refused()
        assert error.value.problems[0].remedy
    assert names(tmp_path) == ["file"]


def test_all_paths_are_tried_at_once(tmp_path):
    with pytest.raises(InputError) as error:
        require_writable(
            None,
            tmp_path,
            tmp_path / "good.csv",
            tmp_path / "missing" / "a",
            os.devnull,
            "/dev/stdout",
        )
    assert [problem.where for problem in error.value.problems] == [
        str(tmp_path),
        str(tmp_path / "missing" / "a"),
    ]
    assert names(tmp_path) == []


def test_longest_names_are_written(tmp_path):
    for name in ("x" * 251 + ".csv", "ä" * 125 + ".csv", "x" + "." * 5 + "ß" * 120):
        write_text(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


@needs_permissions
def test_a_file_that_is_read_only_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(InputError, match="read-only"):
        write_text(path, "new")
    assert path.read_text() == "old"


# Commands that write


@pytest.mark.parametrize("name", COMMANDS)
def test_every_file_that_a_command_writes_is_checked_before_its_work(name):
    """A parameter of a path is an input, or one of the files that the command declares to write."""
    command = function_of(name)
    hints = inspect.get_annotations(inspect.unwrap(command), eval_str=True)
    undeclared = {
        argument
        for argument, hint in hints.items()
        if hint == Path | None
        or (
            Path in _members(hint)
            and re.match("File (of|to write)|Condense each|Fold each", _help(hint))
        )
    }
    written = written_by(command)
    assert undeclared <= set(written)
    assert set(written) - undeclared <= {"figure", "json_file", "proof"}


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of an annotated hint."""
    base = typing.get_args(hint)[:1]
    return (*base, *typing.get_args(base and base[0]))


def _help(hint: object) -> str:
    """The help of an argument or option; "" of anything else."""
    return str(getattr(next(iter(getattr(hint, "__metadata__", ())), None), "help", ""))


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (
            "workspace {machine} --out {folder}/missing/map.nc --out {folder}/map.xyz",
            ("missing", "xyz"),
        ),
        ("simulate {machine} --out {folder}/run.txt --out {folder}/", ("run.txt", "{folder}")),
        ("export c {machine} --out {folder}/file/code", ("not a folder",)),
        ("paper reproduce two_run_identification --out {folder}/file", ("not a folder",)),
        ("modes {machine} --out {folder}/missing/a.png", ("missing",)),
    ],
)
def test_a_command_refuses_its_outputs_at_once_and_together(command, wrong, tmp_path):
    """Before it reads the machine: there is none of this name."""
    (tmp_path / "file").touch()
    words = command.format(folder=tmp_path, machine="no_such_machine").split()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "no machine with this name" not in result.output
    for word in wrong:
        assert word.format(folder=tmp_path) in result.output
    assert names(tmp_path) == ["file"]


def test_without_room_for_temporary_files_they_are_named_with_their_folder(monkeypatch, tmp_path):
    """Not the standard output, as which an OSError of a command counts."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    machine = tmp_path / "five.xml"
    with pytest.raises(InputError) as error:
        tl.convert("five_bar", machine)
    (problem,) = error.value.problems
    assert problem.where == "temporary files"
    assert "TMPDIR=FOLDER" in problem.remedy
    assert not machine.exists()

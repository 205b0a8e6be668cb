"""The cache of compiled code: nothing damaged or foreign is loaded, nothing unfinished stays, its size is bounded."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from compiled_machines import compiler, compilers
from printed import printed

from tauloop import load_function
from tauloop.common.errors import EngineError
from tauloop.common.result import Status
from tauloop.compiler.c import CacheOptions, compiled_cache
from tauloop.compiler.c.calling import cache, caller
from tauloop.compiler.c.calling.cache import (
    CompiledCache,
    cached_libraries,
    clear,
    ensure_private_folder,
    is_intact,
    store_with_checksum,
    sweep,
)
from tauloop.compiler.c.calling.compiler import build
from tauloop.display.tables.machines.cache_tables import cache_tables

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
NUMBER = 0.7320508075688772
SOURCE = f"double number(void);\ndouble number(void) {{ return {NUMBER!r}; }}\n"


def number(library: Path) -> float:
    function = ctypes.CDLL(str(library)).number
    function.restype = ctypes.c_double
    return function()


def changed(path: Path) -> None:
    """Another constant: a library that loads as well as before, and gives another number."""
    content, wanted = path.read_bytes(), np.float64(NUMBER).tobytes()
    assert content.count(wanted) == 1
    path.write_bytes(content.replace(wanted, np.float64(0.5).tobytes()))


@pytest.mark.parametrize(
    "damage",
    [
        changed,
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(b""),
        lambda path: path.with_name(path.name + ".sha256").unlink(),
        lambda path: path.with_name(path.name + ".sha256").write_text("0" * 64),
        lambda path: path.with_name(path.name + ".sha256").write_bytes(b"\xff\xfe"),
        lambda path: path.chmod(0o666),
    ],
    ids=[
        "another number",
        "cut",
        "empty",
        "no checksum",
        "another checksum",
        "no text",
        "anybody's to write",
    ],
)
def test_a_damaged_library_is_made_anew_and_never_loaded(damage, tmp_path):
    """Cut files used to end the process with a bus error, changed ones to give wrong numbers."""
    library = build(SOURCE, compiler(), folder=tmp_path)
    damage(library)
    assert not is_intact(library)
    assert build(SOURCE, compiler(), folder=tmp_path) == library
    assert is_intact(library)
    assert number(library) == NUMBER


def test_a_damaged_library_of_a_record_is_made_anew(tmp_path):
    first = load_function("pendulum_arm", folder=tmp_path)
    content = first.library.read_bytes()
    # this process has loaded it: the same file must not change under its feet
    first.library.unlink()
    first.library.write_bytes(content[:5000])
    code = "import sys, pathlib, tauloop; tauloop.load_function('pendulum_arm', folder=pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == 0
    assert first.library.read_bytes() == content


def test_a_damaged_extension_module_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(caller, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    if caller._binding.__wrapped__() is None:
        pytest.skip("Python's headers are not here")
    (module,) = tmp_path.glob("caller-*.so")
    content = module.read_bytes()
    module.unlink()
    module.write_bytes(content[:4096])
    assert caller._binding.__wrapped__() is not None
    assert module.read_bytes() == content


def test_the_folder_and_its_files_are_the_users_alone(tmp_path):
    """Also where the user lets a group write to whatever he makes."""
    before = os.umask(0o002)
    try:
        library = build(SOURCE, compiler(), folder=tmp_path / "cache")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert all(not path.stat().st_mode & 0o022 for path in (tmp_path / "cache").iterdir())
    assert is_intact(library)


def test_a_folder_to_which_others_may_write_is_refused(tmp_path):
    library = build(SOURCE, compiler(), folder=tmp_path)
    tmp_path.chmod(0o777)
    assert not is_intact(library)
    with pytest.raises(
        EngineError, match=r"(?s)other users may write to .* \(mode 777\).*chmod go-w"
    ):
        build(SOURCE, compiler(), folder=tmp_path)
    tmp_path.chmod(0o700)
    assert is_intact(library)


def test_the_users_own_folder_is_closed_to_others(tmp_path, monkeypatch):
    """One that an older version made under a generous mask."""
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    tmp_path.chmod(0o775)
    ensure_private_folder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
@pytest.mark.parametrize("spoil", ["world-writable", "foreign"])
def test_a_folder_that_others_could_exchange_is_refused(spoil, tmp_path):
    """Whoever may rename the cache itself could put another library there between the look and the loading."""
    above = tmp_path / "above"
    above.mkdir()
    built = build(SOURCE, compiler(), folder=above / "cache")
    assert cache.is_intact(built)
    if spoil == "world-writable":
        above.chmod(0o1777)
        assert cache.is_intact(built)  # sticky: nobody renames what is not theirs
        above.chmod(0o777)
    elif os.geteuid():
        pytest.skip("needs root, who may give files away")
    else:
        os.chown(above, 12345, -1)
    assert not cache.is_intact(built)
    with pytest.raises(
        EngineError, match=f"other users could replace {above / 'cache'}, .*{above}\n.*chmod go-w"
    ):
        build(SOURCE, compiler(), folder=above / "cache")


@pytest.mark.skipif(os.geteuid() != 0, reason="only the system's user may give files away")
def test_what_belongs_to_another_user_is_not_loaded(tmp_path):
    library = build(SOURCE, compiler(), folder=tmp_path)
    os.chown(library, 12345, -1)
    assert not is_intact(library)
    build(SOURCE, compiler(), folder=tmp_path)
    assert library.stat().st_uid == 0
    os.chown(tmp_path, 12345, -1)
    with pytest.raises(EngineError, match="belongs to user 12345"):
        build(SOURCE, compiler(), folder=tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from tauloop.compiler.c.calling import cache
with cache.scratch(Path(sys.argv[1])) as place:
    (place / "half.so").write_bytes(b"half")
    print("there", flush=True)
    sys.stdin.read()
"""


def test_what_killed_processes_left_is_removed_and_what_living_ones_make_is_not(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as living:
        for process in (killed, living):
            process.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 2
        assert sweep(tmp_path) == 0  # too young to tell
        for path in tmp_path.iterdir():
            os.utime(path, (time.time() - 3600,) * 2)
        assert sweep(tmp_path) == 1
        assert len(list(tmp_path.iterdir())) == 1
        living.communicate()
    assert list(tmp_path.iterdir()) == []


def test_files_reach_the_disk_before_their_names(tmp_path, monkeypatch):
    done: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("synced"), real_sync(file))[1])
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (done.append("renamed"), real_replace(self, to))[1]
    )
    made = tmp_path / "made"
    made.write_bytes(b"code")
    store_with_checksum(made, tmp_path / f"{'a' * 24}.so")
    assert done == ["synced", "renamed", "synced"] * 2  # file, name, folder; then the checksum


def test_what_was_used_longest_ago_goes_when_there_is_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_CACHE_SIZE", 3_500)
    made = tmp_path / "made"
    made.write_bytes(b"x" * 1000)
    libraries = [tmp_path / f"{letter * 24}.so" for letter in "abcde"]
    for age, library in enumerate(libraries):
        store_with_checksum(made, library)
        for path in (library, library.with_name(library.name + ".sha256")):
            if path.exists():
                os.utime(path, (1e9 + age,) * 2)
    # a fifth of the room is made at a time
    assert [path for path in libraries if path.exists()] == libraries[-3:]
    other = tmp_path / "notes.txt"
    other.write_bytes(b"x" * 10_000)
    store_with_checksum(made, tmp_path / f"{'f' * 24}.so")
    assert other.exists()


def test_clearing_removes_what_is_ours_and_nothing_else(tmp_path):
    load_function("pendulum_arm", folder=tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "benchmarks").mkdir()
    assert clear(tmp_path) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["benchmarks", "notes.txt"]
    assert clear(tmp_path / "missing") == 0


def test_what_is_kept_is_listed_and_cleared(tmp_path):
    made = load_function("pendulum_arm", folder=tmp_path)

    def listed(**options: bool) -> CompiledCache:
        return compiled_cache(CacheOptions(folder=tmp_path, **options))

    (library,) = listed().as_dict()["libraries"]
    assert listed().status is Status.OK
    assert library["name"] == made.library.name
    assert list(library["functions"]) == [made.function.name]
    assert library["state"] == "intact"
    assert (
        library["bytes"]
        == made.library.stat().st_size + next(tmp_path.glob("*.json")).stat().st_size
    )
    content = made.library.read_bytes()
    made.library.unlink()
    made.library.write_bytes(content[:-1] + b"?")
    assert listed().status is Status.DOUBTFUL
    assert "1 damaged" in printed(cache_tables(listed()))
    made.library.with_name(made.library.name + ".sha256").unlink()
    assert listed().status is Status.OK
    assert "1 unchecked" in printed(cache_tables(listed()))
    assert listed(clear=True).status is Status.OK
    assert list(tmp_path.iterdir()) == []
    assert listed().as_dict()["libraries"] == []
    assert cached_libraries(tmp_path / "missing") == ()


@pytest.mark.parametrize("stated", [None, "", "/tmp/elsewhere", "relative", "~/not-expanded"])
def test_the_cache_is_where_platformdirs_has_it(
    monkeypatch: pytest.MonkeyPatch, stated: str | None
) -> None:
    if stated is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", stated)
    assert cache.cache_folder() == Path(platformdirs.user_cache_dir("tauloop"))

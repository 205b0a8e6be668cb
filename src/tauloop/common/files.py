"""How results become files: whole or not at all, and never in the place of something that is no plain file."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from tauloop.common.errors import InputError, Problem, Problems

if sys.platform == "win32":  # there are no such locks there, and files of killed writers stay

    def _lock(file: int, *, wait: bool = False) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

else:
    from fcntl import LOCK_EX, LOCK_NB, flock

    def _lock(file: int, *, wait: bool = False) -> None:
        flock(file, LOCK_EX if wait else LOCK_EX | LOCK_NB)


#: Temporary files nobody holds are removed from this age on, s: a new one is not locked yet in its
#: first instant.
ABANDONED = 60.0
#: Signs of a file's name that its temporary file shares.
SHARED = 24
#: What to do about what the system says.
REMEDIES = {
    errno.ENOSPC: "make room on that disk, or name a file on another one",
    errno.EDQUOT: "your quota is used up there: make room, or name a file on another disk",
    errno.EROFS: "that disk is read-only: name a file on another one",
    errno.EISDIR: "name a file in it",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EEXIST: "name another one, or remove it",
}
#: Names of open streams, which have no folder to write beside.
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_STREAM = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})", re.ASCII)


def write_file(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Let `write` fill a file of another name in the same folder, then rename it to `path`.

    A link stays and what it leads to is written; an existing file keeps its mode; what is no plain
    file (a device, a pipe, ``/dev/stdout``) gets the bytes and is not replaced.

    Args:
        path: the file.
        write: opens the file whose path it gets and fills it; that file is there and empty.

    Raises:
        InputError: the folder is not there, the disk is full, the file is read-only, ...
    """
    path = Path(path)
    with _reported(path):
        target = _target(path)
        if target is None:
            _write_through(path, write)
            return path
        with _temporary(target) as (temporary, held):
            write(temporary)
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            os.fsync(held.fileno())
            held.close()
            temporary.replace(target)
        sync_folder(target.parent)
    return path


def write_folder(path: str | Path, fill: Callable[[Path], Path]) -> Path:
    """Let `fill` make a folder in one beside `path`, then rename that which it returns to `path`.

    Raises:
        InputError: there is something of that name already, the disk is full, ...
    """
    path = Path(path)
    with _reported(path):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "there is something of that name")
        stem, suffix = path.stem[:SHARED], path.suffix[:SHARED]
        _remove_abandoned(path.parent, stem, suffix)
        beside = path.with_name(f".{stem}.{secrets.token_hex(8)}{suffix}")
        beside.mkdir()
        held: int | None = None
        try:
            with suppress(OSError):  # some systems open no folders
                held = os.open(beside, os.O_RDONLY)
                hold(held)
            made = fill(beside)
            for file in made.iterdir():
                with file.open("rb+") as stream:
                    os.fsync(stream.fileno())
            made.rename(path)
        finally:
            if held is not None:
                os.close(held)
            shutil.rmtree(beside, ignore_errors=True)
        sync_folder(path.parent)
    return path


def unreadable(path: Path) -> tuple[str, str] | None:
    """What is wrong with a path that is to be read, and what to do about it; None for a plain file that is not empty.

    Whoever opens it must still expect an OSError: the file may vanish, or its disk fail.
    """
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file", "check the path"
    except OSError as error:
        return (
            f"the file cannot be read: {error.strerror or error}",
            "check the path and its permissions",
        )
    except ValueError:
        return "the file's name holds a zero byte or no text", "check the path"
    if stat.S_ISDIR(state.st_mode):
        return "this is a folder, not a file", "name the file itself"
    if not stat.S_ISREG(state.st_mode):
        return "this is a device or a pipe, not a plain file", "copy it to a file first"
    if not os.access(path, os.R_OK):
        return "the file cannot be read: Permission denied", "check its permissions"
    return None if state.st_size else ("the file is empty (0 bytes)", "export it again")


def write_text(path: str | Path, text: str) -> Path:
    """Write a text in UTF-8, as `write_file` does."""
    return write_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def require_writable(*paths: str | Path | None) -> None:
    """Refuse paths that `write_file` could not write, before the long work whose results they are to hold.

    Raises:
        InputError: they are folders, their folders are not there or cannot be written, ...; all of
            them at once.
    """
    problems = Problems()
    for path in paths:
        if path is None:
            continue
        with problems.collecting(InputError), _reported(Path(path)):
            target = _target(Path(path))
            if target is not None:
                with _temporary(target):
                    pass
            elif _stream(Path(path)) is None and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    InputError.raise_if_any(problems)


def unwritable_folder(path: Path) -> Problem | None:
    """Why no files could be written into a folder, which need not be there yet; None if they could."""
    try:
        with _reported(path):
            there = next(
                place for place in (path, *path.absolute().parents) if os.path.lexists(place)
            )
            if not there.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{there} is no folder")
            if not os.access(there, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"{there} is read-only")
    except InputError as error:
        return error.problems[0]
    return None


def _target(path: Path) -> Path | None:
    """The plain file, there or not, that a path leads to; None where it leads to something else.

    Raises:
        OSError: a folder, or a file that is read-only, or one that cannot be looked at.
    """
    if _stream(path) is not None:
        return None
    real = Path(os.path.realpath(path))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        return None
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    return real


def _stream(path: Path) -> int | None:
    """The number of the open stream that a path names, or None."""
    text = str(path)
    match = _STREAM.fullmatch(text)
    return _STREAMS.get(text) if match is None else int(match[1])


def _write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Fill a file elsewhere and copy its bytes into what cannot be replaced."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tauloop-"))
            temporary = Path(folder) / f"result{path.suffix[:SHARED]}"
            temporary.touch()
            write(temporary)
        except OSError as error:
            what = f"cannot be written by way of a temporary file: {error.strerror or error}"
            remedy = "make room for temporary files, or name another folder for them: TMPDIR=FOLDER"
            raise InputError.of(str(path), what, remedy) from error
        with temporary.open("rb") as source, _opened(path) as target:
            shutil.copyfileobj(source, target)


def _opened(path: Path) -> IO[bytes]:
    number = _stream(path)
    if number is None:
        return path.open("wb")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # what was printed before comes before
    return os.fdopen(os.dup(number), "wb")


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A new file beside another one, of a name that nobody can foresee; held, and gone afterwards unless renamed."""
    stem, suffix = target.stem[:SHARED], target.suffix[:SHARED]
    _remove_abandoned(target.parent, stem, suffix)
    temporary = target.with_name(f".{stem}.{secrets.token_hex(8)}{suffix}")
    held = os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), "r+b")
    try:
        hold(held.fileno())
        yield temporary, held
    finally:
        held.close()
        with suppress(FileNotFoundError):
            temporary.unlink()


def _remove_abandoned(folder: Path, stem: str, suffix: str) -> None:
    """Remove temporary files and folders whose writers were killed."""
    name = re.compile(rf"\.{re.escape(stem)}\.[0-9a-f]{{16}}{re.escape(suffix)}")
    with suppress(OSError):
        for entry in os.scandir(folder):
            if name.fullmatch(entry.name) and is_abandoned(Path(entry.path)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                with suppress(OSError):
                    os.unlink(entry.path)


def hold(file: int) -> None:
    """Mark an open file or folder as in use for as long as this process keeps it open."""
    with suppress(OSError):  # a system without locks
        _lock(file)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a stretch of code with this folder."""
    file = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a system without locks
            _lock(file, wait=True)
        yield
    finally:
        os.close(file)


@contextmanager
def held_alone(folder: Path) -> Iterator[None]:
    """Hold a folder while no other process holds it so.

    Raises:
        InputError: another process does.
    """
    file = os.open(folder, os.O_RDONLY)
    try:
        try:
            _lock(file)
        except BlockingIOError:
            what, remedy = (
                "another process is at work in this folder",
                "wait for it, or name another folder",
            )
            raise InputError.of(str(folder), what, remedy) from None
        except OSError:  # a system without locks
            pass
        yield
    finally:
        os.close(file)


def is_abandoned(path: Path) -> bool:
    """Whether a temporary file or folder is held by no process any more, and not new."""
    try:
        if time.time() - path.lstat().st_mtime < ABANDONED:
            return False
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            _lock(file)
        finally:
            os.close(file)
    except OSError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """See that the names in a folder reach the disk."""
    with suppress(OSError):  # some systems cannot
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Turn what the system refuses into a problem of that path."""
    try:
        if "\0" in str(path):
            raise OSError(errno.EINVAL, "its name holds a zero byte")
        yield
    except OSError as error:
        remedy = REMEDIES.get(
            error.errno or 0, "name a file in an existing folder that you may write to"
        )
        raise InputError.of(
            str(path), f"cannot be written: {error.strerror or error}", remedy
        ) from error

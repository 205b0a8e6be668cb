"""Atomic writing of files: completely or not at all. Only plain files are replaced."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from tauloop.common.errors import InputError, Problem, Problems

if sys.platform == "win32":  # Without these locks, temporary files of killed processes remain.

    def _lock(file: int, *, wait: bool = False) -> None:
        """Raise an error, because there are no locks."""
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

else:
    from fcntl import LOCK_EX, LOCK_NB, flock

    def _lock(file: int, *, wait: bool = False) -> None:
        """Lock an open file exclusively.

        Raises:
            BlockingIOError: another process holds the lock, and `wait` is False.
        """
        flock(file, LOCK_EX if wait else LOCK_EX | LOCK_NB)


#: Smallest age, s, at which temporary files without a lock are removed. A new file is not locked
#: immediately.
MIN_ABANDONED_AGE = 60.0
#: Maximum number of characters of a file's name in the name of its temporary file.
SHARED_NAME_LENGTH = 24
#: Remedies for errors of the operating system, by their numbers.
REMEDIES = {
    errno.ENOSPC: "free space on that disk, or name a file on another disk",
    errno.EDQUOT: "your quota on that disk is used up: free space, or name a file on another disk",
    errno.EROFS: "that disk is read-only: name a file on another disk",
    errno.EISDIR: "name a file in this folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EEXIST: "choose another name, or remove the existing file or folder",
}
#: Remedy for errors on temporary files.
TEMPORARY_REMEDY = "free space for temporary files, or set another folder for them: TMPDIR=FOLDER"
#: Names of open streams, which cannot be replaced by a temporary file.
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_STREAM = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})", re.ASCII)


def write_file(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Call `write` with a temporary file in the same folder, then rename this file to `path`.

    For a symbolic link, the target of the link is written. An existing file keeps its mode. A path
    that is not a plain file (a device, a pipe, ``/dev/stdout``) receives the bytes and is not
    replaced.

    Args:
        path: the file.
        write: function that receives the path of the temporary file, opens the file and fills it.
            The file exists and is empty.

    Returns:
        The path.

    Raises:
        InputError: the folder does not exist, the disk is full, the file is read-only, ...
    """
    path = Path(path)
    with _reported(path):
        target = _target(path)
        if target is None:
            _write_through(path, write)
            return path
        with _temporary(target) as (temporary, file):
            write(temporary)
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
            file.close()
            temporary.replace(target)
        sync_folder(target.parent)
    return path


def write_folder(path: str | Path, fill: Callable[[Path], Path]) -> Path:
    """Call `fill` with a temporary folder, then rename the folder that `fill` returns to `path`.

    Args:
        path: the folder, which must not exist.
        fill: function that creates a folder with files inside the temporary folder, and returns its
            path.

    Returns:
        The path.

    Raises:
        InputError: the path already exists, the disk is full, ...
    """
    path = Path(path)
    with _reported(path):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "a file or folder of that name exists")
        stem, suffix = path.stem[:SHARED_NAME_LENGTH], path.suffix[:SHARED_NAME_LENGTH]
        _remove_abandoned(path.parent, stem, suffix)
        temporary = path.with_name(f".{stem}.{_token()}{suffix}")
        temporary.mkdir()
        lock_file: int | None = None
        try:
            with suppress(OSError):  # Some systems cannot open folders.
                lock_file = os.open(temporary, os.O_RDONLY)
                lock_until_closed(lock_file)
            folder = fill(temporary)
            for file in folder.iterdir():
                with file.open("rb+") as stream:
                    os.fsync(stream.fileno())
            folder.rename(path)
        finally:
            if lock_file is not None:
                os.close(lock_file)
            _remove_folder(temporary)
        sync_folder(path.parent)
    return path


def unreadable(path: Path) -> tuple[str, str] | None:
    """Return why a path cannot be read, and a remedy; None for a plain file that is not empty.

    Opening the file may still raise an OSError, for example if the file is deleted meanwhile.
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
        return "the file's name contains a zero byte or invalid text", "check the path"
    if stat.S_ISDIR(state.st_mode):
        return "this is a folder, not a file", "name the file itself"
    if not stat.S_ISREG(state.st_mode):
        return "this is a device or a pipe, not a plain file", "copy it to a file first"
    if not os.access(path, os.R_OK):
        return "the file cannot be read: Permission denied", "check its permissions"
    if not state.st_size:
        return "the file is empty (0 bytes)", "export it again"
    return None


def write_text(path: str | Path, text: str) -> Path:
    """Write a text in UTF-8 with `write_file`.

    Returns:
        The path.
    """
    return write_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the text of a CSV file; numbers are written with all digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def require_writable(*paths: str | Path | None) -> None:
    """Check that `write_file` can write to paths, before their contents are calculated.

    Raises:
        InputError: a path is a folder, its folder does not exist or is not writable, ...; all
            problems are listed.
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
    """Return the problem that prevents writing files into a folder; None if there is none.

    The folder may be missing if it can be created.
    """
    try:
        with _reported(path):
            existing = next(
                folder for folder in (path, *path.absolute().parents) if os.path.lexists(folder)
            )
            if not existing.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{existing} is not a folder")
            if not os.access(existing, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"{existing} is read-only")
    except InputError as error:
        return error.problems[0]
    return None


def _target(path: Path) -> Path | None:
    """Return the plain file, existing or not, that a path refers to; None for devices and pipes.

    Raises:
        OSError: the path is a folder, is read-only, or cannot be accessed.
    """
    if _stream(path) is not None:
        return None
    real = Path(os.path.realpath(path))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "the path is a folder")
    if not stat.S_ISREG(mode):
        return None
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    return real


def _stream(path: Path) -> int | None:
    """Return the file descriptor of the open stream that a path names; None for other paths."""
    text = str(path)
    match = _STREAM.fullmatch(text)
    return _STREAMS.get(text) if match is None else int(match[1])


def _write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Fill a temporary file and copy its bytes to a device, pipe or stream."""
    # Imported late: this takes milliseconds, and most processes do not write.
    import shutil
    import tempfile

    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tauloop-"))
            temporary = Path(folder) / f"result{path.suffix[:SHARED_NAME_LENGTH]}"
            temporary.touch()
            write(temporary)
        except OSError as error:
            what = f"cannot be written through a temporary file: {error.strerror or error}"
            raise InputError.of(str(path), what, TEMPORARY_REMEDY) from error
        with temporary.open("rb") as source, _opened(path) as target:
            shutil.copyfileobj(source, target)


def _opened(path: Path) -> IO[bytes]:
    """Open a device, pipe or stream for writing."""
    descriptor = _stream(path)
    if descriptor is None:
        return path.open("wb")
    # Earlier output must precede the bytes.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return os.fdopen(os.dup(descriptor), "wb")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder for temporary files, which is removed afterwards.

    Raises:
        InputError: the folder cannot be created, or its disk is full.
    """
    import tempfile  # see `_write_through`

    with temporary_files_reported(), tempfile.TemporaryDirectory(prefix="tauloop-") as folder:
        yield Path(folder)


@contextmanager
def temporary_files_reported() -> Iterator[None]:
    """Convert errors of the operating system on temporary files into a problem with a remedy.

    Otherwise the command line would report a failure of its standard output.
    """
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise InputError.of("temporary files", what, TEMPORARY_REMEDY) from error


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield a locked temporary file next to a target; remove it unless it was renamed."""
    stem, suffix = target.stem[:SHARED_NAME_LENGTH], target.suffix[:SHARED_NAME_LENGTH]
    _remove_abandoned(target.parent, stem, suffix)
    temporary = target.with_name(f".{stem}.{_token()}{suffix}")
    file = os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666), "r+b")
    try:
        lock_until_closed(file.fileno())
        yield temporary, file
    finally:
        file.close()
        with suppress(FileNotFoundError):
            temporary.unlink()


def _remove_abandoned(folder: Path, stem: str, suffix: str) -> None:
    """Remove temporary files and folders of processes that were killed."""
    name = re.compile(rf"\.{re.escape(stem)}\.[0-9a-f]{{16}}{re.escape(suffix)}")
    with suppress(OSError):
        for entry in os.scandir(folder):
            if name.fullmatch(entry.name) and is_abandoned(Path(entry.path)):
                if entry.is_dir(follow_symlinks=False):
                    _remove_folder(entry.path)
                    continue
                with suppress(OSError):
                    os.unlink(entry.path)


def _token() -> str:
    """Return 16 random hexadecimal digits, for an unpredictable name."""
    return os.urandom(8).hex()


def _remove_folder(path: Path | str) -> None:
    """Remove a folder with its files; errors are ignored."""
    import shutil  # see `_write_through`

    shutil.rmtree(path, ignore_errors=True)


def lock_until_closed(file: int) -> None:
    """Lock an open file or folder until this process closes it, if the system has locks."""
    with suppress(OSError):  # The system may not have locks.
        _lock(file)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder in a context, after waiting for it."""
    file = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # The system may not have locks.
            _lock(file, wait=True)
        yield
    finally:
        os.close(file)


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder in a context, without waiting for it.

    Raises:
        InputError: another process holds the lock.
    """
    file = os.open(folder, os.O_RDONLY)
    try:
        try:
            _lock(file)
        except BlockingIOError:
            what = "another process is using this folder"
            remedy = "wait until that process ends, or name another folder"
            raise InputError.of(str(folder), what, remedy) from None
        except OSError:  # The system does not have locks.
            pass
        yield
    finally:
        os.close(file)


def is_abandoned(path: Path) -> bool:
    """Return whether a temporary file or folder is old and no process holds its lock."""
    try:
        if time.time() - path.lstat().st_mtime < MIN_ABANDONED_AGE:
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
    """Flush the directory entries of a folder to the disk."""
    with suppress(OSError):  # Some systems cannot open folders.
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Convert an error of the operating system into a problem of a path."""
    try:
        if "\0" in str(path):
            raise OSError(errno.EINVAL, "the name contains a zero byte")
        yield
    except OSError as error:
        default = "name a file in an existing folder that you may write to"
        remedy = REMEDIES.get(error.errno or 0, default)
        what = f"cannot be written: {error.strerror or error}"
        raise InputError.of(str(path), what, remedy) from error

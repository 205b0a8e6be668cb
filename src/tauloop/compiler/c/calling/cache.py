"""Where compiled code is kept: a folder of the user's own, whose files are checked before they are loaded.

Machine code runs with all the user's rights, and a damaged library ends the process or gives wrong
numbers. So nothing is loaded that someone else could have written, or that is not what its SHA-256,
kept beside it, says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

import platformdirs

from tauloop.common.errors import InputError
from tauloop.common.files import hold, is_abandoned, locked, write_file
from tauloop.common.options import Options
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.common.shown import Shown

#: Bytes that all files together may have; beyond, those go that were used longest ago. A library
#: has some hundred thousand.
LARGEST_CACHE = 500_000_000
#: Share of these bytes that stays when some must go, so that the next library does not drive out
#: another one.
STAYS = 0.8
CHECKSUM = ".sha256"
#: Mode of files here; and the permissions of others that make a file or folder worthless.
MODE, OTHERS_WRITE = 0o644, stat.S_IWGRP | stat.S_IWOTH
#: Names of what lies here: nothing else is counted or removed.
_LIBRARY = re.compile(r"(?:caller-)?[0-9a-f]{24}\.(?:so|cubin)")
_OURS = re.compile(r"(?:caller-)?[0-9a-f]{24}(?:\.(?:so|cubin|ptxas)(?:\.sha256)?|\.json)")
_TEMPORARY = re.compile(
    r"\.build-.{1,40}|\.(?:caller-)?[0-9a-f]{1,24}[^/]{0,7}\.[0-9a-f]{16}\.\w{1,7}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A library in the cache.

    Attributes:
        path: the library.
        size: bytes, with the records that name it.
        used: when it was read last, as far as the file system tells, s since 1970.
        functions: names of the functions that records call in it.
        state: "intact", which is loaded; "damaged" (or not written by this user alone) or
            "unchecked" (without a checksum, of an older version), which are made anew when they are
            needed.
    """

    path: Path = field(metadata=json_keys(name="name"))
    size: int = field(metadata=json_keys("bytes"))
    used: float = field(metadata=OMITTED)
    functions: tuple[str, ...]
    state: str

    @property
    @in_json("used")
    def used_second(self) -> int:
        """The second, since 1970, when it was read last."""
        return round(self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions(Options):
    """What is done with the cache, and which.

    Attributes:
        clear: remove them all; they are made again when needed.
        folder: folder of the compiled libraries; the user's own without it.
    """

    clear: bool = False
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCache(PlainData, Shown):
    """The compiled libraries that are kept.

    Attributes:
        folder: where they lie.
        libraries: those used last first.
        removed: number of files that were removed; None where nothing was asked to go.
        largest: bytes that all together may have.
    """

    folder: Path
    libraries: tuple[Kept, ...] = ()
    removed: int | None = field(default=None, metadata=json_keys(optional=True))
    largest: int = LARGEST_CACHE

    @property
    @in_json("bytes")
    def size(self) -> int:
        """Bytes of all together."""
        return sum(entry.size for entry in self.libraries)

    @property
    @in_json()
    def status(self) -> Status:
        """Doubtful where one is damaged, or could have been written by another user."""
        return (
            Status.DOUBTFUL
            if any(entry.state == "damaged" for entry in self.libraries)
            else Status.OK
        )


def compiled_cache(options: CacheOptions | None = None) -> CompiledCache:
    """List the compiled libraries that are kept, or remove them.

    Raises:
        InputError: something cannot be removed.
    """
    options = options or CacheOptions()
    folder = cache_folder() if options.folder is None else options.folder
    if not options.clear:
        return CompiledCache(folder=folder, libraries=kept(folder))
    try:
        return CompiledCache(folder=folder, removed=clear(folder))
    except OSError as error:
        what = f"cannot be removed: {error.strerror or error}"
        place = str(error.filename or folder)
        raise InputError.of(place, what, "check permissions") from error


def cache_folder() -> Path:
    """Where compiled libraries are kept: the user's cache folder."""
    return Path(platformdirs.user_cache_dir("tauloop"))


def private(folder: Path) -> Path:
    """The folder, made for this user alone where it is missing.

    Raises:
        PermissionError: it belongs to another user, or others may write to it or exchange it.
        OSError: it cannot be made or looked at.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = folder.stat()
    if not _is_ours(state):
        raise PermissionError(
            f"{folder} belongs to the user {state.st_uid}, not to {os.geteuid()}, who runs this"
        )
    if state.st_mode & OTHERS_WRITE:
        if folder != cache_folder():
            raise PermissionError(
                f"others may write to {folder} (mode {stat.S_IMODE(state.st_mode):o})"
            )
        folder.chmod(stat.S_IMODE(state.st_mode) & ~OTHERS_WRITE)
    if (place := _exposed(folder)) is not None:
        raise PermissionError(
            f"others could put another folder in its place, for they may write to {place}"
        )
    return folder


def _exposed(folder: Path) -> Path | None:
    """A folder on the way to this one in which others may rename what is not theirs; None without one.

    Between the look at a library and its loading they could exchange it. Sticky folders (/tmp) do
    not let them.
    """
    if not hasattr(os, "geteuid"):
        return None
    for place in folder.resolve().parents:
        state = place.stat()
        if not _is_ours(state) or (
            state.st_mode & stat.S_IWOTH and not state.st_mode & stat.S_ISVTX
        ):
            return place
    return None


def is_own(path: Path) -> bool:
    """Whether nobody but this user, and the system's, could have written a file or folder.

    Raises:
        OSError: it is not there, or cannot be looked at.
    """
    state = path.stat()
    return _is_ours(state) and not state.st_mode & OTHERS_WRITE


def _is_ours(state: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or state.st_uid in (os.geteuid(), 0)


def is_intact(path: Path) -> bool:
    """Whether a file of the cache is as it was written: the user's own, and what the SHA-256 beside it says.

    Raises:
        OSError: it cannot be read.
    """
    try:
        wanted = _beside(path).read_text(encoding="ascii").strip()
        if (
            not all(map(is_own, (path.parent, path, _beside(path))))
            or _exposed(path.parent) is not None
        ):
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == wanted
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


def keep(made: Path, target: Path) -> Path:
    """Copy a finished file to its place, with its SHA-256 beside it; both reach the disk before their names do.

    Raises:
        InputError: the disk is full, ...
    """
    content = made.read_bytes()
    # two processes that make the same: neither's checksum goes with the other's file
    with locked(target.parent):
        put(target, content)
        put(_beside(target), f"{hashlib.sha256(content).hexdigest()}\n".encode())
    _make_room(target.parent, target)
    return target


def put(target: Path, content: bytes) -> None:
    """Write a file that only this user may change.

    Raises:
        InputError: the disk is full, ...
    """

    def fill(temporary: Path) -> None:
        temporary.write_bytes(content)
        temporary.chmod(MODE)

    with suppress(OSError):
        target.chmod(MODE)  # where there is one; it would keep its mode
    write_file(target, fill)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder in the cache to work in, gone afterwards; those of killed processes go first."""
    # with a fifth of the time that a function from the cache takes, which needs none
    import tempfile

    sweep(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as place:
        held = os.open(place, os.O_RDONLY)
        try:
            hold(held)
            yield Path(place)
        finally:
            os.close(held)


def sweep(folder: Path) -> int:
    """Remove what killed processes left unfinished; the number of files and folders."""
    left = [
        path for path in _listed(folder) if _TEMPORARY.fullmatch(path.name) and is_abandoned(path)
    ]
    for path in left:
        _remove(path)
    return len(left)


def kept(folder: Path) -> tuple[Kept, ...]:
    """The libraries of a cache, those used last first."""
    records: dict[str, list[tuple[str, int]]] = {}
    for path in _listed(folder):
        if path.suffix == ".json" and _OURS.fullmatch(path.name):
            with suppress(OSError, ValueError, KeyError, TypeError):
                record = json.loads(path.read_text(encoding="ascii").partition("\n")[2])
                records.setdefault(str(record["library"]), []).append(
                    (str(record["name"]), path.stat().st_size)
                )
    entries = []
    for path in _listed(folder):
        if not _LIBRARY.fullmatch(path.name):
            continue
        with suppress(FileNotFoundError):  # another process clears it at this moment
            state, called = path.stat(), records.get(path.name, [])
            entries.append(
                Kept(
                    path=path,
                    size=state.st_size + sum(size for _, size in called),
                    used=max(state.st_atime, state.st_mtime),
                    functions=tuple(sorted({name for name, _ in called})),
                    state=_state(path),
                )
            )
    return tuple(sorted(entries, key=lambda entry: -entry.used))


def clear(folder: Path) -> int:
    """Remove all libraries, records and what killed processes left; the number of files and folders.

    What else lies in the folder stays; so does what another process is making.

    Raises:
        OSError: something cannot be removed.
    """
    ours = [path for path in _listed(folder) if _OURS.fullmatch(path.name)]
    for path in ours:
        path.unlink(missing_ok=True)
    return len(ours) + sweep(folder)


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the files that were used longest ago where there are too many bytes; the newest one stays."""
    sizes = {}
    for path in _listed(folder):
        if _OURS.fullmatch(path.name):
            with suppress(OSError):
                state = path.stat()
                sizes[path] = (max(state.st_atime, state.st_mtime), state.st_size)
    total = sum(size for _, size in sizes.values())
    if total <= LARGEST_CACHE:
        return
    for path, (_, size) in sorted(sizes.items(), key=lambda item: item[1]):
        if total <= STAYS * LARGEST_CACHE:
            return
        if path not in (newest, _beside(newest)):
            total -= size
            with suppress(OSError):
                path.unlink()


def _state(path: Path) -> str:
    with suppress(OSError):
        if is_intact(path):
            return "intact"
    return "damaged" if _beside(path).exists() else "unchecked"


def _beside(path: Path) -> Path:
    return path.with_name(path.name + CHECKSUM)


def _listed(folder: Path) -> list[Path]:
    """What lies in a folder, none if there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()

"""Cache of compiled code: a private folder of the user, whose files are checked before loading.

Machine code runs with all permissions of the user, and a damaged library can crash the process or
return wrong numbers. So a library is loaded only if no other user could have written it and if it
matches the SHA-256 stored next to it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from tauloop.common.errors import InputError
from tauloop.common.files import is_abandoned, lock_until_closed, locked, write_file
from tauloop.common.options import Options
from tauloop.common.plain import OMITTED, PlainData, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.common.shown import ReprMixin

#: Maximum total size of the files, bytes. If it is exceeded, the least recently used files are
#: removed. A library has a few hundred thousand bytes.
MAX_CACHE_SIZE = 500_000_000
#: Fraction of this size that remains after files are removed, so that the next library does not
#: require another removal.
FRACTION_AFTER_CLEANUP = 0.8
CHECKSUM = ".sha256"
#: Mode of the files.
MODE = 0o644
#: Write permissions of others. A file or folder with such a permission is not trusted.
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: Names of the cache's files: no other file is counted or removed.
_LIBRARY = re.compile(r"(?:caller-)?[0-9a-f]{24}\.(?:so|cubin)")
_CACHE_FILE = re.compile(r"(?:caller-)?[0-9a-f]{24}(?:\.(?:so|cubin|ptxas)(?:\.sha256)?|\.json)")
_TEMPORARY = re.compile(
    r"\.build-.{1,40}|\.(?:caller-)?[0-9a-f]{1,24}[^/]{0,7}\.[0-9a-f]{16}\.\w{1,7}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLibrary:
    """A library in the cache.

    Attributes:
        path: path of the library.
        size: size of the library and of the records that refer to it, bytes.
        used: time of the last read as reported by the file system, s since 1970.
        functions: names of the library's functions in these records.
        state: "intact" (it is loaded), "damaged" (its checksum differs, or another user
            could have written it) or "unchecked" (without a checksum, from an older version).
            Damaged and unchecked libraries are compiled again when needed.
    """

    path: Path = field(metadata=json_keys(name="name"))
    size: int = field(metadata=json_keys("bytes"))
    used: float = field(metadata=OMITTED)
    functions: tuple[str, ...]
    state: str

    @property
    @in_json("used")
    def used_second(self) -> int:
        """Time of the last read, in whole seconds since 1970."""
        return round(self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions(Options):
    """Options of the command that lists or clears the cache.

    Attributes:
        clear: whether to remove all libraries; they are compiled again when needed.
        folder: folder of the compiled libraries; the default is the user's cache.
    """

    clear: bool = False
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCache(PlainData, ReprMixin):
    """The compiled libraries in the cache.

    Attributes:
        folder: folder of the cache.
        libraries: libraries, the last used first.
        removed: number of removed files; None if no removal was requested.
        largest: maximum total size of the files, bytes.
    """

    folder: Path
    libraries: tuple[CachedLibrary, ...] = ()
    removed: int | None = field(default=None, metadata=json_keys(optional=True))
    largest: int = MAX_CACHE_SIZE

    @property
    @in_json("bytes")
    def size(self) -> int:
        """Size of all libraries, bytes."""
        return sum(entry.size for entry in self.libraries)

    @property
    @in_json()
    def status(self) -> Status:
        """DOUBTFUL if a library is damaged or could have been written by another user."""
        if any(entry.state == "damaged" for entry in self.libraries):
            return Status.DOUBTFUL
        return Status.OK


def compiled_cache(options: CacheOptions | None = None) -> CompiledCache:
    """Return the compiled libraries in the cache, or remove them (`CacheOptions.clear`).

    Raises:
        InputError: a file cannot be removed.
    """
    options = options or CacheOptions()
    folder = cache_folder() if options.folder is None else options.folder
    if not options.clear:
        return CompiledCache(folder=folder, libraries=cached_libraries(folder))
    try:
        return CompiledCache(folder=folder, removed=clear(folder))
    except OSError as error:
        what = f"cannot be removed: {error.strerror or error}"
        place = str(error.filename or folder)
        raise InputError.of(place, what, "check permissions") from error


def cache_folder() -> Path:
    """Return the user's cache folder for compiled libraries."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    if sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        if os.path.isabs(cache_home):
            return Path(cache_home, "tauloop")
        if not cache_home:
            return Path("~/.cache/tauloop").expanduser()
    # The import takes half of the time of calling a function from the cache.
    import platformdirs

    return Path(platformdirs.user_cache_dir("tauloop"))


class ExposedFolderError(PermissionError):
    """A cache folder belongs to another user, or others may write to it or replace it."""


def storage_remedy(error: OSError) -> str:
    """Return the remedy that makes a cache folder usable after an error."""
    if isinstance(error, ExposedFolderError):
        return "remove the write permission of others (chmod go-w FOLDER), or use your own folder"
    return "free disk space, or allow your user to write to this folder"


def ensure_private_folder(folder: Path) -> Path:
    """Create a folder that only this user may write to, if needed, and return it.

    Raises:
        ExposedFolderError: the folder belongs to another user, or other users may write to it or
            replace it.
        OSError: the folder cannot be created or checked.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = folder.stat()
    if not _is_ours(state):
        raise ExposedFolderError(
            f"{folder} belongs to user {state.st_uid}, but this process runs as user {os.geteuid()}"
        )
    if state.st_mode & WRITABLE_BY_OTHERS:
        if folder != cache_folder():
            raise ExposedFolderError(
                f"other users may write to {folder} (mode {stat.S_IMODE(state.st_mode):o})"
            )
        folder.chmod(stat.S_IMODE(state.st_mode) & ~WRITABLE_BY_OTHERS)
    if (place := _exposed(folder)) is not None:
        raise ExposedFolderError(
            f"other users could replace {folder}, because they may write to {place}"
        )
    return folder


def _exposed(folder: Path) -> Path | None:
    """Return a parent folder in which other users may rename this user's files, or None.

    In such a folder, another user could replace a library between its check and its loading.
    Folders with the sticky bit (/tmp) prevent this.
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
    """Return whether only this user or root could have written a file or folder.

    Raises:
        OSError: the path does not exist or cannot be checked.
    """
    state = path.stat()
    return _is_ours(state) and not state.st_mode & WRITABLE_BY_OTHERS


def _is_ours(state: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or state.st_uid in (os.geteuid(), 0)


def _checksum(content: bytes) -> str:
    """Return the SHA-256 of the content of a file."""
    import hashlib  # the import takes 2 ms, and code in memory does not need it

    return hashlib.sha256(content).hexdigest()


def is_intact(path: Path) -> bool:
    """Return whether only the user could have written a file of the cache, and its SHA-256 matches.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        wanted = _checksum_path(path).read_text(encoding="ascii").strip()
        if (
            not all(map(is_own, (path.parent, path, _checksum_path(path))))
            or _exposed(path.parent) is not None
        ):
            return False
        return _checksum(path.read_bytes()) == wanted
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


def store_with_checksum(made: Path, target: Path) -> Path:
    """Copy a finished file to its place, with its SHA-256 next to it.

    Both files are flushed to disk before they are renamed to their final names.

    Returns:
        Path of the copy.

    Raises:
        InputError: the file cannot be written, for example because the disk is full.
    """
    content = made.read_bytes()
    # two processes may build the same library; the lock keeps file and checksum consistent
    with locked(target.parent):
        write_private(target, content)
        write_private(_checksum_path(target), f"{_checksum(content)}\n".encode())
    _make_room(target.parent, target)
    return target


def write_private(target: Path, content: bytes) -> None:
    """Write a file that only this user may change.

    Raises:
        InputError: the file cannot be written, for example because the disk is full.
    """

    def fill(temporary: Path) -> None:
        temporary.write_bytes(content)
        temporary.chmod(MODE)

    with suppress(OSError):
        target.chmod(MODE)  # writing to an existing file does not change its mode
    write_file(target, fill)


def read_record(path: Path) -> Any:
    """Return the content of a record; None if it is missing, damaged or not only the user's."""
    try:
        if not is_own(path.parent) or not is_own(path) or _exposed(path.parent) is not None:
            return None
        checksum, _, body = path.read_text(encoding="ascii").partition("\n")
        return json.loads(body) if checksum == _checksum(body.encode()) else None
    except (OSError, ValueError):
        return None


def write_record(path: Path, content: object) -> None:
    """Write a record, which is plain data in JSON after its SHA-256.

    Raises:
        InputError: the file cannot be written, for example because the disk is full.
    """
    body = json.dumps(content)
    write_private(path, f"{_checksum(body.encode())}\n{body}".encode("ascii"))


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder in the cache; leftovers of killed processes are removed first."""
    # the import takes a fifth of the time of loading a function from the cache, which does not need
    # it
    import tempfile

    sweep(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as place:
        descriptor = os.open(place, os.O_RDONLY)
        try:
            lock_until_closed(descriptor)
            yield Path(place)
        finally:
            os.close(descriptor)


def sweep(folder: Path) -> int:
    """Remove unfinished files of killed processes; return the number of files and folders."""
    leftovers = [
        path for path in _listed(folder) if _TEMPORARY.fullmatch(path.name) and is_abandoned(path)
    ]
    for path in leftovers:
        _remove(path)
    return len(leftovers)


def cached_libraries(folder: Path) -> tuple[CachedLibrary, ...]:
    """Return the libraries of a cache, the last used first."""
    records: dict[str, list[tuple[str, int]]] = {}
    for path in _listed(folder):
        if path.suffix == ".json" and _CACHE_FILE.fullmatch(path.name):
            with suppress(OSError, ValueError, KeyError, TypeError):
                record = json.loads(path.read_text(encoding="ascii").partition("\n")[2])
                records.setdefault(str(record["library"]), []).append(
                    (str(record["name"]), path.stat().st_size)
                )
    entries = []
    for path in _listed(folder):
        if not _LIBRARY.fullmatch(path.name):
            continue
        with suppress(FileNotFoundError):  # another process may clear the cache at the same time
            state = path.stat()
            functions = records.get(path.name, [])
            entries.append(
                CachedLibrary(
                    path=path,
                    size=state.st_size + sum(size for _, size in functions),
                    used=max(state.st_atime, state.st_mtime),
                    functions=tuple(sorted({name for name, _ in functions})),
                    state=_state(path),
                )
            )
    return tuple(sorted(entries, key=lambda entry: -entry.used))


def clear(folder: Path) -> int:
    """Remove all libraries, records and leftovers; return the number of files and folders.

    Other files in the folder, and files that another process is writing, remain.

    Raises:
        OSError: a file cannot be removed.
    """
    files = [path for path in _listed(folder) if _CACHE_FILE.fullmatch(path.name)]
    for path in files:
        path.unlink(missing_ok=True)
    return len(files) + sweep(folder)


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the least recently used files if the cache is too large; keep the newest file."""
    sizes = {}
    for path in _listed(folder):
        if _CACHE_FILE.fullmatch(path.name):
            with suppress(OSError):
                state = path.stat()
                sizes[path] = (max(state.st_atime, state.st_mtime), state.st_size)
    total = sum(size for _, size in sizes.values())
    if total <= MAX_CACHE_SIZE:
        return
    for path, (_, size) in sorted(sizes.items(), key=lambda item: item[1]):
        if total <= FRACTION_AFTER_CLEANUP * MAX_CACHE_SIZE:
            return
        if path not in (newest, _checksum_path(newest)):
            total -= size
            with suppress(OSError):
                path.unlink()


def _state(path: Path) -> str:
    with suppress(OSError):
        if is_intact(path):
            return "intact"
    return "damaged" if _checksum_path(path).exists() else "unchecked"


def _checksum_path(path: Path) -> Path:
    return path.with_name(path.name + CHECKSUM)


def _listed(folder: Path) -> list[Path]:
    """Return the entries of a folder; empty if the folder does not exist."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()

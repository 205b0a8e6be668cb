"""Checks of an FMU's archive before anything of it is unpacked: how much it becomes, and where its members go."""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

from tauloop.common.errors import InputError, Problems

#: Bytes that an FMU may unpack to, and how many times its own size that may be where it is more
#: than `UNCHECKED` bytes; both without a limit of the caller's.
LARGEST, RATIO, UNCHECKED = 2_000_000_000, 200, 100_000_000
#: Members of an archive, without a limit of the caller's; with one each counts for a block of a
#: disk at least.
MEMBERS, BLOCK = 10_000, 4096
#: Faulty members that are named one by one.
_LISTED = 5


def require_unpackable(path: Path, limit: float | None = None) -> None:
    """Refuse an archive that would fill the disk, or whose members leave the folder that it is unpacked into.

    The sizes are those that the archive states; a member that has more ends with an error where it
    is unpacked.

    Args:
        path: the file.
        limit: bytes that it may unpack to; then its ratio and its number of members are not
            limited.

    Raises:
        InputError: all that is wrong.
        zipfile.BadZipFile: it is not an archive.
    """
    with zipfile.ZipFile(path) as packed:
        members = packed.infolist()
    problems, name = Problems(), str(path)
    size, own = sum(max(member.file_size, BLOCK) for member in members), path.stat().st_size
    larger = (
        "raise the limit (fmu_limit, --fmu-limit, in MB) if you trust the file, or export it "
        "without large resources"
    )
    stated = f"unpacks to {size / 1e6:.5g} MB"
    if size > (LARGEST if limit is None else limit):
        allowed = (LARGEST if limit is None else limit) / 1e6
        problems.add("fmu", f"{stated}, and {allowed:.5g} MB are allowed", larger, file=name)
    elif limit is None and size > max(UNCHECKED, RATIO * own):
        what = f"{stated}, {size / own:.4g} times its size, and {RATIO} times are allowed"
        problems.add("fmu", what, larger, file=name)
    if limit is None and len(members) > MEMBERS:
        what = f"has {len(members)} members, and {MEMBERS} are allowed"
        problems.add("fmu", what, larger, file=name)
    checked = [(member.filename, _fault(member)) for member in members]
    faults = [(name, fault) for name, fault in checked if fault]
    counts = Counter(member.filename for member in members)
    twice = [(name, "is there twice") for name, count in counts.items() if count > 1]
    for member, fault in [*faults, *twice][:_LISTED]:
        remedy = "it is damaged or made to do harm: export it again"
        problems.add("fmu", f"the member {member!r} {fault}", remedy, file=name)
    InputError.raise_if_any(problems)


def _fault(member: zipfile.ZipInfo) -> str:
    """Return why a member is not unpacked; empty where it may be."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link" if kind == stat.S_IFLNK else "is neither a file nor a folder"
    if member.flag_bits & 1:
        return "is encrypted"
    name = member.filename
    if "\\" in name or ":" in name or name.startswith("/") or ".." in PurePosixPath(name).parts:
        return "leads out of the folder that it is unpacked into"
    return ""

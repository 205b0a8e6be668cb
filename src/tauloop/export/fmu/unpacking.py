"""Checks of an FMU's archive before it is unpacked: total size, and paths of its members."""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

from tauloop.common.errors import InputError, Problems

#: Default limit of the unpacked size, bytes.
MAX_UNPACKED_SIZE = 2_000_000_000
#: Default limit of the ratio of unpacked to packed size.
MAX_SIZE_RATIO = 200
#: Unpacked size below which the ratio is not checked, bytes.
UNCHECKED_SIZE = 100_000_000
#: Default limit of the number of members.
MAX_MEMBERS = 10_000
#: Size of a disk block, bytes. Smaller members count as one block.
DISK_BLOCK = 4096
#: Number of faulty members that an error lists.
_LISTED_FAULTS = 5


def require_unpackable(path: Path, limit: float | None = None) -> None:
    """Reject an archive that would fill the disk, or that writes outside of its folder.

    The check uses the sizes that the archive states. Unpacking a member with more data fails with
    an error.

    Args:
        path: path of the archive.
        limit: largest unpacked size, bytes; it replaces all default limits.

    Raises:
        InputError: the archive exceeds limits; all errors are reported together.
        zipfile.BadZipFile: the file is not an archive.
    """
    with zipfile.ZipFile(path) as packed:
        members = packed.infolist()
    problems, name = Problems(), str(path)
    size = sum(max(member.file_size, DISK_BLOCK) for member in members)
    packed_size = path.stat().st_size
    remedy = (
        "raise the limit (fmu_limit, --fmu-limit, in MB) if you trust the file, or export it "
        "without large resources"
    )
    stated = f"unpacks to {size / 1e6:.5g} MB"
    max_size = MAX_UNPACKED_SIZE if limit is None else limit
    if size > max_size:
        problems.add("fmu", f"{stated} (limit {max_size / 1e6:.5g} MB)", remedy, file=name)
    elif limit is None and size > max(UNCHECKED_SIZE, MAX_SIZE_RATIO * packed_size):
        ratio = size / packed_size
        message = f"{stated}, {ratio:.4g} times its size (limit {MAX_SIZE_RATIO} times)"
        problems.add("fmu", message, remedy, file=name)
    if limit is None and len(members) > MAX_MEMBERS:
        message = f"has {len(members)} members (limit {MAX_MEMBERS})"
        problems.add("fmu", message, remedy, file=name)
    checked = [(member.filename, _fault(member)) for member in members]
    faults = [(name, fault) for name, fault in checked if fault]
    counts = Counter(member.filename for member in members)
    repeated = [(name, "is in the archive twice") for name, count in counts.items() if count > 1]
    for member, fault in [*faults, *repeated][:_LISTED_FAULTS]:
        remedy = "the file is damaged or malicious: export it again"
        problems.add("fmu", f"the member {member!r} {fault}", remedy, file=name)
    InputError.raise_if_any(problems)


def _fault(member: zipfile.ZipInfo) -> str:
    """Return the reason why a member must not be unpacked; empty if it may be unpacked."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link" if kind == stat.S_IFLNK else "is neither a file nor a folder"
    if member.flag_bits & 1:
        return "is encrypted"
    name = member.filename
    if "\\" in name or ":" in name or name.startswith("/") or ".." in PurePosixPath(name).parts:
        return "has a path outside of the folder that it is unpacked into"
    return ""

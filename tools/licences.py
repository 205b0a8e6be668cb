"""``python licences.py``: write docs/dependencies.md and the list of development packages.

Both follow from pyproject.toml and the installed packages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DEPENDENCIES_PAGE = ROOT / "docs" / "dependencies.md"
#: The list of packages that only developers of Tauloop install, in the form of the page's list.
DEVELOPMENT_LIST = ROOT / "tools" / "development_licences.txt"
#: This program writes the page between these lines.
BEGIN, END_OF_TABLES = "<!-- written by tools/licences.py -->", "<!-- end -->"
#: Licenses that packages state only in their license file.
IN_FILE = {"atheris": "Apache-2.0", "fmpy": "BSD-2-Clause", "xacro": "BSD-3-Clause"}
#: Families of licenses by a pattern of their names: copyleft (those who pass changes on must pass
#: on the source too), and others.
COPYLEFT = {
    "LGPL": r"LGPL|Lesser General",
    "GPL": r"(?<!L)GPL|(?<!Lesser )General Public",
    "MPL": r"MPL|Mozilla",
    "EPL": r"EPL|Eclipse",
}
FREE = {
    "BSD": r"BSD",
    "MIT": r"MIT",
    "Apache": r"Apache",
    "PSF": r"PSF|Python Software Foundation",
    "Zlib": r"Zlib",
    "CC0": r"CC0",
    "ISC": r"ISC",
    "BSD (Exudyn)": r"EXUDYN",
}
#: Licenses of closed software that is free of charge.
CLOSED = {"closed": r"NVIDIA|Proprietary"}
#: Extras for work on Tauloop itself: users do not install them, and wheels do not contain them.
INTERNAL = ("dev", "docs", "fuzz", "bench")


class Dependency(NamedTuple):
    name: str
    extra: str


def direct() -> list[Dependency]:
    """Return all dependencies that pyproject.toml names, in its order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    lines = [
        (re.match(r"[\w.-]+", line), extra) for extra, lines in wanted.items() for line in lines
    ]
    rows = [Dependency(match[0], extra) for match, extra in lines if match is not None]
    # the extra "all" names the others
    return [need for need in rows if need.name != project["name"]]


def license(name: str) -> str | None:
    """Return the license that an installed package states; None where it is not installed."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return None
    classified = [
        line.split(" :: ")[-1]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    text = (metadata.get("License") or "").strip()
    candidates = (
        metadata.get("License-Expression"),
        *(line for line in classified if line != "OSI Approved"),
        text if "\n" not in text else None,
        IN_FILE.get(name),
    )
    return next((candidate for candidate in candidates if candidate), "not stated")


def families(text: str, among: dict[str, str] = COPYLEFT | FREE | CLOSED) -> set[str]:
    """Return the families that a license's text names."""
    return {family for family, pattern in among.items() if re.search(pattern, text)}


def brought_along(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the direct and indirect requirements of packages, each with the first of `names` that needs it."""
    seen = {_plain(name) for name in names}
    for name in names:
        waiting = [name]
        while waiting:
            try:
                needs = distribution(waiting.pop()).requires or []
            except PackageNotFoundError:
                continue
            for need in needs:
                other = _plain(re.match(r"[\w.-]+", need)[0])
                if "extra ==" not in need and other not in seen:
                    seen.add(other)
                    waiting.append(other)
                    yield other, name


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def written(page: str) -> dict[tuple[str, str], str]:
    """Return the licenses on a page by name and extra."""
    return {
        (name, extra): text.strip("*")
        for name, extras, text in re.findall(r"^- (\S+) \(([\w, ]+)\): (.*)$", page, re.MULTILINE)
        for extra in extras.split(", ")
    }


def all_written() -> dict[tuple[str, str], str]:
    """Return the licenses on the page and in the list of development packages, by name and extra."""
    files = [path for path in (DEPENDENCIES_PAGE, DEVELOPMENT_LIST) if path.exists()]
    return {key: text for path in files for key, text in written(path.read_text("utf-8")).items()}


def package_lines(internal: bool) -> list[str]:
    """Return a line for each package of the user's extras, or of the internal ones.

    A package that is not installed keeps its license.
    """
    before = all_written()
    extras: dict[str, list[str]] = {}
    for need in direct():
        if (need.extra in INTERNAL) == internal:
            extras.setdefault(need.name, []).append(need.extra or "always")
    lines = []
    for name, wanted_by in extras.items():
        text = license(name) or before.get((name, wanted_by[0]), "not installed here")
        strong = "**" if families(text, COPYLEFT) else ""
        lines.append(f"- {name} ({', '.join(wanted_by)}): {strong}{text}{strong}")
    return lines


def tables() -> str:
    """Return the page's list."""
    lines = package_lines(internal=False)
    names = [need.name for need in direct() if need.extra not in INTERNAL]
    along = []
    for other, name in brought_along(names):
        text = license(other)
        if text is not None:
            along.append((other, name, text))
    copyleft = [
        f"{other} ({text}, through {name})"
        for other, name, text in along
        if families(text, COPYLEFT)
    ]
    unstated = [f"{other} (through {name})" for other, name, text in along if text == "not stated"]
    lines += [
        "",
        f"They pull in {len(along)} transitive dependencies. Copyleft among these: {', '.join(copyleft)}.",
    ]
    lines += [f"Without a statement in their metadata: {', '.join(unstated)}."] if unstated else []
    return "\n".join(lines)


if __name__ == "__main__":
    development = "\n".join(package_lines(internal=True)) + "\n"
    page = DEPENDENCIES_PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    DEPENDENCIES_PAGE.write_text(
        f"{head}{BEGIN}\n{tables()}\n{END_OF_TABLES}{rest.split(END_OF_TABLES)[1]}",
        encoding="utf-8",
    )
    DEVELOPMENT_LIST.write_text(development, encoding="utf-8")

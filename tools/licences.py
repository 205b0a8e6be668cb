"""``python licences.py``: write the tables of docs/dependencies.md from pyproject.toml and what is installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
#: Between these lines the page is written by this program.
BEGIN, END = "<!-- written by tools/licences.py -->", "<!-- end -->"
#: What packages say in their licence file only.
IN_FILE = {"atheris": "Apache-2.0", "fmpy": "BSD-2-Clause", "xacro": "BSD-3-Clause"}
#: Families of licences by what their names hold: copyleft (whoever passes changes on owes their
#: source), and others.
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
}
#: Closed ones, free of charge.
CLOSED = {"closed": r"NVIDIA|Proprietary"}
#: Extras for work on Tauloop itself: nothing that a user installs or that a wheel holds.
INTERNAL = ("dev", "docs", "fuzz", "bench")


class Dependency(NamedTuple):
    name: str
    range: str
    extra: str


def direct() -> list[Dependency]:
    """All that pyproject.toml names, in its order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    lines = [
        (re.match(r"([\w.-]+)([^;\s]*)", line), extra)
        for extra, lines in wanted.items()
        for line in lines
    ]
    rows = [Dependency(match[1], match[2], extra) for match, extra in lines if match is not None]
    # the extra "all" names the others
    return [need for need in rows if need.name != project["name"]]


def licence(name: str) -> str | None:
    """What an installed package says of its licence; None where it is not installed."""
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
    """The families that a licence's text names."""
    return {family for family, pattern in among.items() if re.search(pattern, text)}


def brought_along(names: list[str]) -> Iterator[tuple[str, str]]:
    """Packages that these need, and those need, with the first of `names` that does."""
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


def written(page: str) -> dict[tuple[str, str], tuple[str, str]]:
    """The rows of a page: range and licence by name and extra."""
    rows = (
        tuple(cell.strip(" `*") for cell in line.strip("|").split("|"))
        for line in page.splitlines()
        if "|" in line
    )
    return {(row[0], row[2]): (row[1], row[3]) for row in rows if len(row) == 4}


def tables() -> str:
    """The page's tables; a package that is not installed keeps its line."""
    before = written(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    lines = ["| Package | Range | Extra | Licence |", "| --- | --- | --- | --- |"]
    for name, span, extra in direct():
        text = licence(name) or before.get((name, extra or "always"), ("", "not installed here"))[1]
        strong = "**" if families(text, COPYLEFT) else ""
        code = f"`{span}`" if span else "any"
        lines.append(f"| {name} | {code} | {extra or 'always'} | {strong}{text}{strong} |")
    names = [need.name for need in direct() if need.extra not in INTERNAL]
    along = [
        (other, name, text)
        for other, name in brought_along(names)
        if (text := licence(other)) is not None
    ]
    copyleft = [
        f"{other} ({text}, through {name})"
        for other, name, text in along
        if families(text, COPYLEFT)
    ]
    unstated = [f"{other} (through {name})" for other, name, text in along if text == "not stated"]
    lines += [
        "",
        f"They bring {len(along)} further packages along. Copyleft among these: {', '.join(copyleft)}.",
    ]
    lines += [f"Without a statement in their metadata: {', '.join(unstated)}."] if unstated else []
    return "\n".join(lines)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}", encoding="utf-8")

"""``python tools/api_pages.py``: update docs/api/*.md to the current public names; a test fails if they differ."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import tauloop

API_PAGES = Path(__file__).parents[1] / "docs" / "api"
#: The names that mkdocstrings shows: members of the page's package, the first list of the page.
MEMBERS = re.compile(r"(::: (tauloop[\w.]*)\n    options:\n      members:\n)((?:        - \w+\n)*)")
#: How a page shows a name: as a member, as a function that has its module's name, or in a table.
SHOWN = re.compile(
    r"^        - (\w+)$|^::: [\w.]+\.(\w+)\n.*\n +show_root_heading|^\| `(\w+)` \|", re.M
)


def public() -> dict[str, list[str]]:
    """Return the public names by the page that lists them; re-exports of `simulation` and `tauloop` are skipped."""
    names = [
        item.name for item in pkgutil.walk_packages(tauloop.__path__, "tauloop.") if item.ispkg
    ]
    packages = [importlib.import_module(name) for name in ("tauloop", *names)]
    table: dict[str, list[str]] = {}
    taken: set[str] = set()
    for package in sorted(
        packages, key=lambda package: (package is tauloop, package.__name__ == "tauloop.simulation")
    ):
        own = [name for name in getattr(package, "__all__", ()) if name not in taken]
        taken |= set(own)
        if own:
            table[package.__name__.removeprefix("tauloop.")] = own
    return table


def index() -> str:
    """Return the first page: every package that has a page, with the first sentence of its docstring."""
    stems = {path.stem for path in API_PAGES.glob("*.md")} - {"index", "tauloop"}
    table = ""
    for stem, name in [
        ("tauloop", "tauloop"),
        *((stem, f"tauloop.{stem}") for stem in sorted(stems)),
    ]:
        sentence = (importlib.import_module(name).__doc__ or "").splitlines()[0]
        table += f"| [{name}]({stem}.md) | {sentence} |\n"
    text = (API_PAGES / "index.md").read_text(encoding="utf-8")
    return re.sub(r"(\|---\|---\|\n)(?:\|.*\n)*", lambda match: match[1] + table, text, count=1)


def main() -> None:
    """Write the pages that have changed."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in API_PAGES.glob("*.md")}
    everywhere = {name for names in public().values() for name in names}
    for page, names in public().items():
        text = (
            texts.get(page)
            or f"# tauloop.{page}\n\n::: tauloop.{page}\n    options:\n      members:\n"
        )
        otherwise = {"".join(match) for match in SHOWN.findall(MEMBERS.sub("", text, count=1))}
        listed = "".join(f"        - {name}\n" for name in names if name not in otherwise)
        texts[page] = MEMBERS.sub(lambda match, listed=listed: match[1] + listed, text, count=1)
    places = {name: page for page, names in public().items() for name in names if page != "tauloop"}
    rows: dict[str, list[str]] = {}
    for name in sorted(set(tauloop.__all__) & places.keys()):
        rows.setdefault(places[name], []).append(f"`{name}`")
    table = "".join(
        f"| [{page}]({page}.md) | {', '.join(names)} |\n" for page, names in sorted(rows.items())
    )
    texts["tauloop"] = re.sub(
        r"(\|---\|---\|\n)(?:\|.*\n)*", lambda match: match[1] + table, texts["tauloop"], count=1
    )
    texts["index"] = index()
    for page, text in texts.items():
        (API_PAGES / f"{page}.md").write_text(text, encoding="utf-8")
    print(f"{len(everywhere)} public names on {len(texts)} pages")


if __name__ == "__main__":
    main()

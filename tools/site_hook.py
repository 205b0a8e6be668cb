"""MkDocs hook: the version in the head and the foot of each page, and the weights of pages in the search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: Pages that answer a frequent question, by their weight in the search; others have 1.
SEARCH_WEIGHTS = {
    "how-to/choose-motors.md": 4.0,
    "how-to/stiffness.md": 4.0,
    "kinematics.md": 4.0,
}
#: Pages without the columns of navigation and contents.
WIDE_PAGES = ("index.md",)
VERSION_FILE = Path(__file__).resolve().parents[1] / "src" / "tauloop" / "__init__.py"


def version() -> str:
    """Return the version that the sources state, without importing them."""
    match = re.search(r'^__version__ = "([^"]+)"', VERSION_FILE.read_text(encoding="utf-8"), re.M)
    assert match is not None
    return match[1]


def on_config(config: Any) -> Any:
    """Return the configuration of the site with the version."""
    config.site_name = f"{config.site_name} {version()}"
    config.copyright = f"Tauloop {version()}, Apache-2.0"
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page as it is, after its weight in the search and its columns are set."""
    weight = SEARCH_WEIGHTS.get(page.file.src_uri)
    if weight is not None:
        page.meta["search"] = {"boost": weight}
    if page.file.src_uri in WIDE_PAGES:
        page.meta["hide"] = ["navigation", "toc"]
    return markdown

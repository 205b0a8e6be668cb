"""The templates that there are: machine files whose named values have bounds and a note.

A template is a machine file like any other, in the folder `files`: `check` reads it, and no code
knows its name. Its named values with `bounds` are what a user is asked for, and `note` says in
words what each is. Whoever has another file of that kind hands over its path; a package brings one
as a `pathlib.Path`, by an entry point of the group `tauloop.authoring`.
"""

from __future__ import annotations

from pathlib import Path

from tauloop.common.extensions import Offered

_FILES = Path(__file__).parent / "files"
#: All templates by name: Tauloop's own, then those that installed packages bring.
TEMPLATES = Offered(
    "tauloop.templates", Path, {path.stem: path for path in sorted(_FILES.glob("*.yaml"))}
)


def title(path: Path) -> str:
    """The first sentence of a template's description, up to a colon or a full stop."""
    _, _, text = path.read_text(encoding="utf-8").partition("description: |\n")
    return " ".join(text.split()).partition(".")[0].partition(":")[0]

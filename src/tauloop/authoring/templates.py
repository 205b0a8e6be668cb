"""The available templates: machine files whose named values have bounds and notes.

A template is an ordinary machine file in the folder `files`. The user is asked for its named values
with `bounds`; `note` describes each of them. Other files of this form can be given by path. A
plugin provides a template as a `pathlib.Path`, with an entry point of the group
`tauloop.templates`.
"""

from __future__ import annotations

from pathlib import Path

from tauloop.common.extensions import Registry

_FILES = Path(__file__).parent / "files"
#: All templates by name: Tauloop's own, then those of installed plugins.
TEMPLATES = Registry(
    "tauloop.templates", Path, {path.stem: path for path in sorted(_FILES.glob("*.yaml"))}
)


def title(path: Path) -> str:
    """Return the first sentence of a template's description, up to a colon or a full stop."""
    _, _, text = path.read_text(encoding="utf-8").partition("description: |\n")
    return " ".join(text.split()).partition(".")[0].partition(":")[0]

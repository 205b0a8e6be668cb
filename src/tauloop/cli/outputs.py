"""Files that commands write: ``--out`` names them, and their extensions select the contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.files import require_writable, unwritable_folder
from tauloop.common.records import dataclass

#: Maximum number of extensions that the help lists for a kind of file.
_MAX_EXTENSIONS = 3


def _accept(_: Path) -> None:
    """Accept every path."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file.

    Attributes:
        content: description of the content, which follows "Write" in the help.
        endings: file extensions that select this kind, the most usual ones first.
        is_folder: whether the files are in a folder, which a name without an extension selects too.
        problem: function that returns the problem of a path with one of these extensions, or None.
    """

    content: str
    endings: tuple[str, ...] = ()
    is_folder: bool = False
    problem: Callable[[Path], Problem | None] = _accept

    def of(self, content: str) -> FileKind:
        """Return the same kind of file with another description of its content."""
        return replace(self, content=content)

    @property
    def description(self) -> str:
        """The content, with the usual extensions in parentheses."""
        extensions = "DIR/" if self.is_folder else ", ".join(self.endings[:_MAX_EXTENSIONS])
        return f"{self.content} ({extensions})"

    def takes(self, text: str) -> bool:
        """Return whether the extension of a path selects this kind."""
        has_extension = Path(text).name.lower().endswith(self.endings) if self.endings else False
        if self.is_folder:
            return (
                has_extension or not Path(text).suffix or text.endswith("/") or Path(text).is_dir()
            )
        return has_extension and not text.endswith("/")


def _table_problem(path: Path) -> Problem | None:
    from tauloop.logs.files.writing import unknown_extension

    return unknown_extension(path)


def _figure_problem(path: Path) -> Problem | None:
    from tauloop.display.renderers.figure_style import unknown_figure_extension

    return unknown_figure_extension(path)


def _film_problem(path: Path) -> Problem | None:
    from tauloop.viewer.film import film_problem

    return film_problem(path)


#: A table of samples.
TABLE = FileKind(
    content="a table",
    endings=(".csv", ".parquet", ".mcap", ".csv.gz", ".db3", ".rosbag2"),
    problem=_table_problem,
)
#: The description of a log, a YAML file.
LOG_DESCRIPTION = FileKind(content="the description", endings=(".yaml", ".yml"))
#: A recording of a machine in motion for a viewer.
RECORDING = FileKind(content="a recording for Rerun or Foxglove", endings=(".rrd", ".mcap"))
CSV = FileKind(content="a table", endings=(".csv",))
#: The load cases of joints. It is listed before `CSV`, because its name ends in ``.csv`` too.
LOAD_CASES = FileKind(content="the load cases of all joints", endings=(".cases.csv",))
#: The JSON file of a whole result, for `tauloop report`.
RESULT = FileKind(content="the whole result, for `tauloop report`", endings=(".json",))
#: A picture.
FIGURE = FileKind(
    content="a picture",
    endings=(".png", ".pdf", ".svg", ".jpg", ".jpeg", ".eps", ".ps", ".tif", ".tiff", ".webp"),
    problem=_figure_problem,
)
FILM = FileKind(content="an animation", endings=(".html", ".gif", ".mp4"), problem=_film_problem)
PAGE = FileKind(content="the page", endings=(".html", ".htm"))
MACHINE_FILE = FileKind(content="the machine", endings=(".yaml", ".yml"))
MAP = FileKind(content="the map as NetCDF", endings=(".nc",))
C_ARRAY = FileKind(content="the actuators' motion as C arrays", endings=(".c", ".h"))
HAL = FileKind(content="the geometry as HAL lines for LinuxCNC", endings=(".hal",))
INI = FileKind(content="the joints' sections of an INI file for LinuxCNC", endings=(".ini",))
TEXT = FileKind(content="the text", endings=(".txt",))
LATEX = FileKind(content="a LaTeX document", endings=(".tex",))
PYTHON = FileKind(content="a Python module that needs only NumPy", endings=(".py",))
CONDENSED_LOGS = FileKind(content="the condensed logs, for a later --add", endings=(".npz",))
#: A folder of files.
FOLDER = FileKind(content="files", is_folder=True, problem=unwritable_folder)


def out_option(kinds: Mapping[str, FileKind], default: str = "") -> Any:
    """Return the annotation of ``--out`` for a command that writes files of these kinds.

    Args:
        kinds: kinds of files by the command's parameter.
        default: sentence of the help on the file that is written without ``--out``.
    """
    *first, last = [kind.description for kind in kinds.values()]
    if first:
        contents = f"{', '.join(first)} or {last}; the extension selects which"
        repetition = "May be repeated"
    else:
        contents = last
        repetition = ""
    sentences = [f"Write {contents}", default, repetition]
    text = " ".join(f"{sentence}." for sentence in sentences if sentence)
    return Annotated[list[str] | None, typer.Option("--out", "-o", metavar="PATH", help=text)]


def chosen_files(
    texts: Sequence[str], kinds: Mapping[str, FileKind]
) -> tuple[dict[str, Path], Problems]:
    """Return the files that ``--out`` names, by the command's parameter, and their problems.

    A file has a problem if its extension does not belong to this command, if another file has the
    same kind, or if it cannot be written.
    """
    problems = Problems()
    chosen: dict[str, Path] = {}
    for text in texts:
        name = _kind_of(text, kinds)
        if not name:
            descriptions = "; ".join(kind.description for kind in kinds.values())
            problems.add(
                "out",
                f"{text!r} does not have the extension of a file that this command writes",
                f"use the extension of its content: {descriptions}",
            )
        elif name in chosen:
            content = kinds[name].content
            problems.add(
                "out", f"{chosen[name]} and {text} are both files for {content}", "give one of them"
            )
        else:
            chosen[name] = Path(text)
    for name, path in chosen.items():
        problem = kinds[name].problem(path)
        problems += [problem] if problem else []
    with problems.collecting(InputError):
        require_writable(*(path for name, path in chosen.items() if not kinds[name].is_folder))
    return chosen, problems


def _kind_of(text: str, kinds: Mapping[str, FileKind]) -> str:
    """Return the parameter whose kind of file a path selects, or ""."""
    if len(kinds) == 1:
        name, kind = next(iter(kinds.items()))
        return name if kind.is_folder or kind.takes(text) else ""
    names = [name for name, kind in kinds.items() if not kind.is_folder and kind.takes(text)]
    folders = [name for name, kind in kinds.items() if kind.is_folder and kind.takes(text)]
    return next(iter([*names, *folders]), "")

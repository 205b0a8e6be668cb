"""C files of this package, and the helper functions in them that generated code calls."""

from __future__ import annotations

import functools
import re
from importlib import import_module
from pathlib import Path

from tauloop.compiler.c.printing.single import in_single
from tauloop.equations.assembly.nearest import (
    DEPENDENCE_TOLERANCE,
    MAX_CHANGES,
    VIOLATION_TOLERANCE,
)

#: Pieces that other pieces call, each with the pieces that call it.
_CALLERS = {
    "tl_reduced": ("tl_sin", "tl_cos"),
    "TL_SHUFFLE": ("tl_turn", "tl_back", "tl_squares"),
    "tl_wholef": ("tl_floorf", "tl_sinf", "tl_cosf", "tl_expf"),
    "tl_reducedf": ("tl_sinf", "tl_cosf"),
}
#: C text of the constants of `tl_nearest`, in double precision.
_CONSTANTS = (
    f"#define TL_MOST_CHANGES {MAX_CHANGES}\n"
    f"#define TL_MISSED {VIOLATION_TOLERANCE!r}\n"
    f"#define TL_DEPENDENT {DEPENDENCE_TOLERANCE!r}\n"
)
#: The same constants in single precision, in which conditions of cables are satisfied to a
#: millionth of the largest right-hand side.
_SINGLE_CONSTANTS = (
    f"#define TL_MOST_CHANGES {MAX_CHANGES}\n#define TL_MISSED 1e-6f\n#define TL_DEPENDENT 1e-5f\n"
)


def c_file(package: str, name: str) -> str:
    """Return the text of a C file in a package.

    `importlib.resources` is not used, because it imports readers of archives, which takes longer
    than reading the file.
    """
    module = import_module(package)
    return Path(str(module.__file__)).with_name(name).read_text(encoding="utf-8")


@functools.cache
def pieces() -> dict[str, str]:
    """Return the pieces of `helpers.c` and `single.c` by name, without leading comments."""
    texts = _pieces("helpers.c") | _pieces("single.c")
    nearest = texts["tl_nearest"]
    return texts | {
        "tl_nearest": _CONSTANTS + nearest,
        "tl_nearestf": _SINGLE_CONSTANTS + in_single(nearest),
    }


def _pieces(file: str) -> dict[str, str]:
    """Return the pieces of a C file by name."""
    header = r"^/\* piece: (\w+) \*/\n(?:/\*.*?\*/\n)*"
    _, *parts = re.split(
        header, c_file("tauloop.compiler.c.printing", file), flags=re.MULTILINE | re.DOTALL
    )
    return {name: f"{text.strip()}\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def mathematics() -> str:
    """Return the C text of all elementary functions."""
    return "\n".join(
        pieces()[name] for name in ("tl_reduced", "tl_sin", "tl_cos", "tl_atan2", "tl_exp")
    )


def used_helpers(body: str) -> list[str]:
    """Return only the helpers that a text calls, because compilers warn about unused functions."""
    called = {name for name in pieces() if f"{name}(" in body} | (
        {"TL_APART"} if "TL_APART" in body else set()
    )
    called |= {name for name, callers in _CALLERS.items() if called & set(callers)}
    return [text for name, text in pieces().items() if name in called]

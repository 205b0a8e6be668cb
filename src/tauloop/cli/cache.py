"""``tauloop cache``: the compiled libraries that are kept, and their removal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.codegen.cache import LARGEST_CACHE, Kept, cache_folder, clear, kept
from tauloop.errors import InputError, Problem

#: Libraries that are listed as text.
LISTED = 20
#: What is meant by the states of libraries that are not loaded.
STATES = {
    "damaged": "not what the checksum beside it says, or not written by you alone",
    "unchecked": "without a checksum, of an older version",
}


@reports_errors
def cache(
    empty: Annotated[bool, typer.Option("--clear", help="Remove them all; they are made again when needed.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Another folder than the user's own.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the compiled libraries that are kept, or remove them.

    Exit code 1 when one of them is damaged or could have been written by another user: it is not loaded but made anew.
    """
    place = cache_folder() if folder is None else folder
    if empty:
        _clear(place, as_json)
        return
    found = kept(place)
    damaged = [entry for entry in found if entry.state == "damaged"]
    total = sum(entry.size for entry in found)
    if as_json:
        print_json(
            {
                "status": "doubtful" if damaged else "ok",
                "folder": str(place),
                "bytes": total,
                "largest": LARGEST_CACHE,
                "libraries": [
                    {
                        "name": entry.path.name,
                        "bytes": entry.size,
                        "used": round(entry.used),
                        "functions": entry.functions,
                        "state": entry.state,
                    }
                    for entry in found
                ],
            }
        )
    else:
        _print(place, found, total)
    if damaged:
        raise typer.Exit(FAILED)


def _clear(place: Path, as_json: bool) -> None:
    try:
        removed = clear(place)
    except OSError as error:
        what = f"cannot be removed: {error.strerror or error}"
        raise InputError(Problem(where=str(error.filename or place), what=what, remedy="check permissions")) from error
    if as_json:
        print_json({"status": "ok", "folder": str(place), "removed": removed})
    else:
        console().print(f"{place}: {removed} files removed", soft_wrap=True)


def _print(place: Path, found: tuple[Kept, ...], total: int) -> None:
    screen = console()
    screen.print(
        f"{place}: {len(found)} libraries, {total / 1e6:.1f} MB of at most {LARGEST_CACHE / 1e6:.0f} MB", soft_wrap=True
    )
    if not found:
        return
    rows = table("Used last", "library", "kB", "used", "state", "functions", numeric=(0, 1, 2))
    for entry in found[:LISTED]:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        rows.add_row(entry.path.stem, f"{entry.size / 1e3:.0f}", used, entry.state, ", ".join(entry.functions))
    screen.print(rows)
    if len(found) > LISTED:
        screen.print(f"and {len(found) - LISTED} more; --json lists all")
    for state, what in STATES.items():
        if count := sum(entry.state == state for entry in found):
            screen.print(f"{count} {state}: {what}; made anew when needed", style="yellow")

"""Exported C code for the terminal: its functions and how to check them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.linuxcnc import LinuxcncExport
from tauloop.model import Export
from tauloop.report.tables import table


def export_tables(exported: Export) -> Iterator[RenderableType]:
    """Sizes of the functions and their operations."""
    rows = (
        (
            item["name"],
            *(sum(port["size"] for port in item[key]) for key in ("inputs", "outputs")),
            *(sum(item["operations"][key].values()) for key in ("once", "each_iteration")),
        )
        for item in exported.manifest["functions"]
    )
    heads = ((head, "") for head in ("in", "out", "operations", "each Newton step"))
    yield table("Functions", "name", *heads, rows=rows)
    yield Text(f"check, in that folder: cc -std=c99 -O2 {exported.name}.c {exported.name}_check.c -lm && ./a.out")


def linuxcnc_tables(exported: LinuxcncExport) -> Iterator[RenderableType]:
    """Pins of the geometry, and how the module is built and tried."""
    rows = ((f"{exported.name}.{pin.name}", pin.value, pin.unit, pin.parameter) for pin in exported.pins)
    yield table("Geometry on HAL pins", "pin", ("value", ""), ("unit", ""), ("parameter", ""), rows=rows)
    name = exported.name
    yield Text(f"build, in that folder, as root: halcompile --install {name}.c")
    yield Text(f"try, as an ordinary user: linuxcnc {name.removesuffix('_kins')}.ini")
    yield Text(
        "both come with Debian's linuxcnc-uspace and linuxcnc-uspace-dev; "
        f"the module is under the {exported.manifest['licence']}"
    )

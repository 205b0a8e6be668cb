"""Exported C code for the terminal: functions and controllers, how to check them, and how well floats do."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table
from tauloop.export.c import Export
from tauloop.export.controller import ControllerExport
from tauloop.export.linuxcnc import LinuxcncExport


def export_tables(exported: Export) -> Iterator[Printed]:
    """Sizes of the functions and their operations; for a microcontroller its own figures."""
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
    if "target" in exported.manifest:
        yield from _target(exported)
    if exported.accuracy is not None:
        yield from _accuracy(exported)
    check = f"cc -std=c99 -O2 {exported.name}.c {exported.name}_check.c -lm && ./a.out"
    if "CMakeLists.txt" in exported.files:
        check = "cmake -S . -B build && cmake --build build && ctest --test-dir build"
    yield f"check, in that folder: {check}"


def _target(exported: Export) -> Iterator[Printed]:
    """What the target's compiler made of it."""
    target, most = exported.manifest["target"], exported.manifest["most"]
    if "not_measured" in target:
        yield f"{target['name']}: code and stack are not measured: {target['not_measured']}"
        return
    rows = (
        (name, target["stack_bytes"][name], limits["operations"], limits["newton_steps"])
        for name, limits in most.items()
    )
    heads = (
        (head, "") for head in ("deepest stack, bytes", "most operations", "most Newton steps")
    )
    yield table(
        f"{target['name']}: {target['code_bytes']} bytes of code", "name", *heads, rows=rows
    )
    calls = ", ".join(target["calls"]) or "nothing"
    yield f"{target['compiler']}; it calls {calls} outside of itself"


def _accuracy(exported: Export) -> Iterator[Printed]:
    """Largest errors of single precision, and where they are."""
    accuracy = exported.accuracy
    assert accuracy is not None
    rows = (
        (
            f"{item.function} {item.output} [{item.unit}]",
            *(
                f"{figure:.1e}"
                for figure in (item.largest, item.error, item.fused_error, item.share, item.enough)
            ),
        )
        for item in accuracy.outputs
    )
    title = f"Single precision at {accuracy.states} states; its own health refuses {accuracy.refused} of them"
    heads = ((head, "") for head in ("largest", "error", "fused", "share", "enough"))
    yield table(title, "output", *heads, rows=rows)
    for item in accuracy.outputs:
        place = ", ".join(f"{name} {value:.4g}" for name, value in item.pose.items())
        yield (
            f"{item.function} {item.output} [{item.unit}]: largest error in {item.column} at {place}"
        )
    yield from (Paragraph(text=line, tone="failed") for line in exported.advice)


def controller_tables(exported: ControllerExport) -> Iterator[Printed]:
    """What a sample reads, the hash of the parameters, and how the code is checked."""
    manifest, name = exported.manifest, exported.name
    channels = (*manifest["inputs"], {**manifest["forces"], "name": "out: force"})
    rows = (
        (item["name"], ", ".join(item["columns"]), ", ".join(dict.fromkeys(item["units"])))
        for item in channels
    )
    yield table("A sample", "channel", "numbers", "unit", rows=rows)
    yield (
        f"{1 / manifest['period_s']:g} samples a second; parameters {manifest['parameters']['hash']}"
    )
    yield f"check, in that folder: cc -std=c99 -O2 {name}.c {name}_check.c -lm && ./a.out"


def linuxcnc_tables(exported: LinuxcncExport) -> Iterator[Printed]:
    """Pins of the geometry, and how the module is built and tried."""
    rows = (
        (f"{exported.name}.{pin.name}", pin.value, pin.unit, pin.parameter) for pin in exported.pins
    )
    yield table(
        "Geometry on HAL pins", "pin", ("value", ""), ("unit", ""), ("parameter", ""), rows=rows
    )
    name = exported.name
    yield f"build, in that folder, as root: halcompile --install {name}.c"
    yield f"try, as an ordinary user: linuxcnc {name.removesuffix('_kins')}.ini"
    yield (
        "both come with Debian's linuxcnc-uspace and linuxcnc-uspace-dev; "
        f"the module is under the {exported.manifest['licence']}"
    )

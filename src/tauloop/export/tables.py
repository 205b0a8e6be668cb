"""Tables of exported C code: functions, controllers, checks, and accuracy of single precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table
from tauloop.export.c import CompensationExport, Export
from tauloop.export.c.single_accuracy import OutputAccuracy
from tauloop.export.controller import ControllerExport
from tauloop.export.linuxcnc import LinuxcncExport
from tauloop.export.transmission import TransmissionExport
from tauloop.mechanism.suggestions import listing


def export_tables(exported: Export) -> Iterator[Printed]:
    """Yield the sizes and operation counts of the functions, and their code size on the target."""
    rows = [_function_row(item) for item in exported.manifest["functions"]]
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


def compensation_export_tables(exported: CompensationExport) -> Iterator[Printed]:
    """Yield the order of the temperatures, and the tool's error caused by single precision."""
    if exported.parts:
        yield f"temperatures in this order: {listing(exported.parts, 20)}"
    if exported.tool_error is not None:
        error = 1e9 * exported.tool_error
        yield f"single precision moves the tool by at most {error:.3g} nm at the sampled poses"


def _function_row(item: Mapping[str, Any]) -> tuple[object, ...]:
    """Return a function's name, its numbers of inputs and outputs, and its operation counts."""
    inputs = sum(port["size"] for port in item["inputs"])
    outputs = sum(port["size"] for port in item["outputs"])
    once = sum(item["operations"]["once"].values())
    each_iteration = sum(item["operations"]["each_iteration"].values())
    return item["name"], inputs, outputs, once, each_iteration


def _target(exported: Export) -> Iterator[Printed]:
    """Yield code size, stack and loop bounds on the target processor."""
    target, limits = exported.manifest["target"], exported.manifest["most"]
    if "not_measured" in target:
        yield f"{target['name']}: code and stack are not measured: {target['not_measured']}"
        return
    rows = (
        (name, target["stack_bytes"][name], limit["operations"], limit["newton_steps"])
        for name, limit in limits.items()
    )
    heads = (
        (head, "") for head in ("deepest stack, bytes", "most operations", "most Newton steps")
    )
    yield table(
        f"{target['name']}: {target['code_bytes']} bytes of code", "name", *heads, rows=rows
    )
    calls = ", ".join(target["calls"]) or "nothing"
    yield f"{target['compiler']}; external calls: {calls}"


def _accuracy(exported: Export) -> Iterator[Printed]:
    """Yield the largest errors of single precision and their poses."""
    accuracy = exported.accuracy
    assert accuracy is not None
    rows = [_accuracy_row(item) for item in accuracy.outputs]
    title = f"Single precision at {counted(accuracy.states, 'state')}; "
    title += f"the diagnostics in single precision reject {accuracy.refused} of them"
    heads = ((head, "") for head in ("largest", "error", "fused", "relative", "limit"))
    yield table(title, "output", *heads, rows=rows)
    for item in accuracy.outputs:
        pose = ", ".join(f"{name} {value:.4g}" for name, value in item.pose.items())
        yield (
            f"{item.function} {item.output} [{item.unit}]: largest error in {item.column} at {pose}"
        )
    yield from (Paragraph(text=line, tone="failed") for line in exported.advice)


def _accuracy_row(item: OutputAccuracy) -> tuple[str, ...]:
    """Return an output's largest absolute value, errors, relative error and limit."""
    values = (item.largest, item.error, item.fused_error, item.share, item.enough)
    name = f"{item.function} {item.output} [{item.unit}]"
    return name, *(f"{value:.1e}" for value in values)


def controller_tables(exported: ControllerExport) -> Iterator[Printed]:
    """Yield the inputs of a sample, the hash of the parameters, and the check command."""
    manifest, name = exported.manifest, exported.name
    channels = (*manifest["inputs"], {**manifest["forces"], "name": "out: force"})
    rows = (
        (item["name"], ", ".join(item["columns"]), ", ".join(dict.fromkeys(item["units"])))
        for item in channels
    )
    yield table("A sample", "channel", "numbers", "unit", rows=rows)
    yield (
        f"{1 / manifest['period_s']:g} samples per second; parameters {manifest['parameters']['hash']}"
    )
    yield f"check, in that folder: cc -std=c99 -O2 {name}.c {name}_check.c -lm && ./a.out"


def linuxcnc_tables(exported: LinuxcncExport) -> Iterator[Printed]:
    """Yield the HAL pins of the geometry, and the commands to build the module and run it."""
    rows = (
        (f"{exported.name}.{pin.name}", pin.value, pin.unit, pin.parameter) for pin in exported.pins
    )
    yield table(
        "Geometry on HAL pins", "pin", ("value", ""), ("unit", ""), ("parameter", ""), rows=rows
    )
    name = exported.name
    yield f"build, in that folder, as root: halcompile --install {name}.c"
    yield f"run, as an ordinary user: linuxcnc {name.removesuffix('_kins')}.ini"
    yield (
        "both come with Debian's linuxcnc-uspace and linuxcnc-uspace-dev; "
        f"the module is under the {exported.manifest['licence']}"
    )


def transmission_tables(exported: TransmissionExport) -> Iterator[Printed]:
    """Yield the order of joints and actuators, and commands to check the functions in C."""
    pairs = zip(exported.joints, exported.actuators, strict=True)
    yield table("Order of all arrays", "joint", "actuator", rows=pairs)
    for item in exported.diagnostics:
        if not item.is_good:
            yield Paragraph(text=str(item), tone="failed")
    for precision, code in exported.code.items():
        name = code.name
        yield (
            f"check {precision} precision, in its folder: "
            f"cc -std=c99 -O2 {name}.c {name}_check.c -lm && ./a.out"
        )

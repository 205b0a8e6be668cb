"""Exported C of single precision: floats alone, known accuracy and bytes, the same bits on an emulated Cortex-M."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers, model
from core_machines import CORE_MACHINES
from emulated import BOARDS, COMPILER, INSTRUCTIONS_OF_A_TICK, emulated, firmware, require_emulator
from page_tables import page_table

import tauloop as tl
from conftest import ROOT
from tauloop import Model, load
from tauloop.common.errors import EngineError
from tauloop.common.result import Status
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.c.calling.target import COMMON_FLAGS, TARGETS, deepest, target_figures
from tauloop.compiler.c.printing import single
from tauloop.equations.ports import ACTUATORS, PLATFORM, Entry
from tauloop.export.c import Export

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
STRICT = (
    *(
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wdouble-promotion",
        "-Wfloat-conversion",
        "-pedantic",
    ),
    *("-Werror", "-fno-math-errno"),
)
#: By day a machine that closed forms solve and one of Newton's loops, for positions; by night all,
#: with their forces.
DAILY = {"delta": PLATFORM, "five_bar": ACTUATORS}
FORCES = ("positions", "inverse_dynamics")
MACHINES = [
    *((name, entry, ("positions",)) for name, entry in DAILY.items()),
    *(
        pytest.param(name, entry, FORCES, marks=pytest.mark.nightly)
        for name in CORE_MACHINES
        for entry in Entry
    ),
]
TARGETS_BY_DAY = [
    target if target == "cortex-m4f" else pytest.param(target, marks=pytest.mark.nightly)
    for target in BOARDS
]


@functools.cache
def exported(
    name: str,
    entry: Entry = PLATFORM,
    functions: tuple[str, ...] = ("positions",),
    target: str = "generic",
) -> Export:
    options = tl.ExportOptions(
        functions=functions, coordinates=entry, precision="single", target=target
    )
    return tl.export_c(model(name), options)


def written(export: Export, folder: Path) -> Path:
    for name, text in export.files.items():
        (folder / name).write_text(text)
    return folder


def ran(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "entry", "functions"), MACHINES)
def test_floats_alone_that_check_themselves(name, entry, functions, tmp_path):
    export = exported(name, entry, functions)
    written(export, tmp_path)
    words = re.sub(r"/\*.*?\*/", "", export.files[f"{name}.c"], flags=re.DOTALL)
    # behind it parameters are checked, as integers
    words, _, _ = words.partition("static const unsigned long long")
    assert not re.search(r"\bdouble\b|malloc|\blong\b", words)
    assert not re.search(r"(?<![\w.])\d+\.\d*(e[-+]?\d+)?(?![\w.])", words), "a constant without f"
    for compiler in compilers():
        ran(
            [compiler, *STRICT, "-O1", f"{name}.c", f"{name}_check.c", "-o", "check", "-lm"],
            tmp_path,
        )
        assert ran(["./check"], tmp_path).splitlines()[-1] == "all agree"


def test_one_altered_number_is_found(tmp_path):
    """A part in ten thousand of the largest number of a port."""
    export = exported("delta")
    check = written(export, tmp_path) / "delta_check.c"
    text = check.read_text()
    start = text.index("delta_positions_out_q")
    stop = text.index("};", start)
    largest = max(re.findall(r"(?<![\w.])\d+\.\d+(?=f)", text[start:stop]), key=float)
    check.write_text(text[:start] + text[start:].replace(largest, str(float(largest) * 1.0001), 1))
    ran([compilers()[0], *STRICT, "delta.c", "delta_check.c", "-o", "check", "-lm"], tmp_path)
    done = subprocess.run(["./check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "positions" in next(line for line in done.stdout.splitlines() if "FAILED" in line)


def test_the_stated_largest_error_is_there_where_it_is_stated(tmp_path):
    """Positions at the stated pose, by the model in doubles and by the exported floats through another program."""
    export, machine = exported("delta"), model("delta")
    (item,) = (item for item in export.accuracy.outputs if (item.output, item.unit) == ("q", "rad"))
    position, start = np.array(list(item.pose.values())), machine.assembly.q
    exact = machine.platform.evaluate(position[None], start=start[None]).q[0]
    column = list(machine.topology.coordinate_names).index(item.column)
    computed = by_program(export, "delta_positions", position, start, written(export, tmp_path))[
        column
    ]
    assert abs(abs(computed - exact[column]) - item.error) < 1e-3 * item.error
    assert item.error <= item.largest * item.share


def by_program(
    export: Export, function: str, position: np.ndarray, start: np.ndarray, folder: Path
) -> list[float]:
    """What a small program prints that calls a function once."""
    (item,) = (item for item in export.manifest["functions"] if item["name"] == function)
    arrays = {"position": position, "start": start}
    declared = "".join(
        f"    const float {port['name']}[] = {{{', '.join(float(x).hex() for x in arrays[port['name']])}}};\n"
        for port in item["inputs"]
    )
    (size,) = (port["size"] for port in item["outputs"])
    call = ", ".join(port["name"] for port in item["inputs"])
    lines = ["#include <stdio.h>", f'#include "{export.name}.h"', "int main(void)", "{", declared]
    lines += [f"    float q[{size}], health[4];", f"    {function}({call}, q, health);"]
    lines += [
        f'    for (int i = 0; i < {size}; ++i) printf("%.17g\\n", (double)q[i]);',
        "    return 0;",
        "}",
        "",
    ]
    (folder / "main.c").write_text("\n".join(lines))
    ran(
        [
            compilers()[0],
            "-O1",
            "-ffp-contract=off",
            f"{export.name}.c",
            "main.c",
            "-o",
            "once",
            "-lm",
        ],
        folder,
    )
    return [float(line) for line in ran(["./once"], folder).split()]


def test_accuracy_is_that_of_floats_and_far_from_the_limits():
    export = exported("delta")
    assert export.status is Status.OK
    assert export.advice == ()
    accuracy = export.accuracy
    assert accuracy.states > 1000
    assert accuracy.refused == 0
    assert [(item.output, item.unit) for item in accuracy.outputs] == [("q", "m"), ("q", "rad")]
    for item in accuracy.outputs:
        assert item.share < item.enough / 5
    assert max(item.error for item in accuracy.outputs) > 1e-8
    (stated,) = (
        row
        for row in export.manifest["accuracy"]["outputs"]
        if row["output"] == "q" and row["unit"] == "rad"
    )
    assert 1e-8 < stated["error"] < 1e-5
    assert set(stated["pose"]) == {"platform.x", "platform.y", "platform.z"}


def test_a_machine_that_floats_are_not_good_enough_for_is_said_so():
    """Arms of 60 m beside towers 59.9 m away: heights are differences of squares of 3600 m2, 2e-4 m of rounding."""
    sizes = {
        f"tower{i}.{name}": value
        for i in (1, 2, 3)
        for name, value in (("arm", 60.0), ("radius", 59.9))
    }
    machine = Model(load("linear_delta").with_values(sizes), evaluator=Interpreted())
    export = tl.export_c(machine, tl.ExportOptions(functions=("positions",), precision="single"))
    assert export.status is Status.DOUBTFUL
    assert 1e-5 < max(item.error for item in export.accuracy.outputs) < 1e-3
    (line,) = export.advice
    assert re.search(
        r"linear_delta_positions: largest error of q as a fraction of its largest value, \S+ m .*"
        "at most 1e-05.*--precision double",
        line,
    )


# Bytes, stack, calls


@pytest.mark.parametrize("target", TARGETS_BY_DAY)
def test_nothing_of_double_precision_is_called_on_a_cortex(target, tmp_path):
    if shutil.which(COMPILER) is None:
        pytest.skip(f"needs {COMPILER}, which is not here (Debian's gcc-arm-none-eabi)")
    export = exported("five_bar", ACTUATORS, target=target)
    figures = export.manifest["target"]
    assert figures["calls"] == []
    assert figures["data_bytes"] == 0
    assert 500 < figures["code_bytes"] < 20_000
    for function, most in export.manifest["most"].items():
        assert 0 < figures["stack_bytes"][function] < 2000
        assert most["newton_steps"] == single.NEWTON_ITERATIONS
        (item,) = (item for item in export.manifest["functions"] if item["name"] == function)
        counts = {key: sum(item["operations"][key].values()) for key in ("once", "each_iteration")}
        assert (
            most["operations"] == counts["once"] + most["newton_steps"] * counts["each_iteration"]
        )
    written(export, tmp_path)
    ran(
        [
            COMPILER,
            *COMMON_FLAGS,
            *TARGETS[target].flags,
            *STRICT,
            "-c",
            "five_bar.c",
            "-o",
            "five_bar.o",
        ],
        tmp_path,
    )
    text = ran(["arm-none-eabi-objdump", "-d", "five_bar.o"], tmp_path)
    assert "vadd.f32" in text
    assert not re.search(r"\.f64|__aeabi_d", text)


def test_a_stack_is_the_longest_way_through_the_calls():
    """Frames of gcc: main 8 bytes or more, and below it the deeper of two ways."""
    frames = {"main": 16, "left": 100, "right": 40, "low": 50}
    calls = {"main": ["left", "right"], "right": ["low", "outside"], "low": []}
    assert deepest("main", frames, calls) == 16 + 100
    assert deepest("right", frames, calls) == 40 + 50
    with pytest.raises(EngineError, match="calls itself: right -> low -> right"):
        deepest("right", frames, {**calls, "low": ["right"]})


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, and it is not here")
def test_a_compiler_that_fails_says_what_it_said():
    with pytest.raises(EngineError, match="unknown type name"):
        target_figures(TARGETS["generic"], {"bad.c": "integer x;"}, "bad.c", ["x"])


def test_a_target_without_its_compiler_is_exported_and_said_so(monkeypatch, tmp_path):
    """Only the host's compilers are on the path."""
    for name in ("gcc", "cc"):
        if shutil.which(name):
            (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    options = tl.ExportOptions(functions=("positions",), precision="single", target="cortex-m7")
    figures = tl.export_c(model("delta"), options).manifest["target"]
    assert figures == {
        "name": "cortex-m7",
        "not_measured": "arm-none-eabi-gcc was not found: install gcc-arm-none-eabi (Debian)",
    }


def test_single_precision_needs_a_compiler_to_be_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="none was found"):
        tl.export_c(model("delta"), tl.ExportOptions(functions=("positions",), precision="single"))


def test_doubles_for_a_cortex_have_no_kernels():
    if shutil.which(COMPILER) is None:
        pytest.skip(f"needs {COMPILER}, which is not here (Debian's gcc-arm-none-eabi)")
    export = tl.export_c(
        model("delta"), tl.ExportOptions(functions=("positions",), target="cortex-m7")
    )
    assert "_batch" not in "".join(
        text for name, text in export.files.items() if not name.endswith("_manifest.json")
    )
    assert export.manifest["precision"] == "double"
    assert export.accuracy is None
    assert export.manifest["target"]["code_bytes"] > 500


# An emulated Cortex-M

BITS = """\
#include <stdint.h>
#include <string.h>
#include "NAME.h"

void put(const char *text);
uint32_t ticks(void);

static void put_word(uint32_t word)
{
    char text[10];
    for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[(word >> (28 - 4 * i)) & 15u];
    text[8] = '\\n';
    text[9] = '\\0';
    put(text);
}

static void put_all(const float *numbers, int count)
{
    for (int i = 0; i < count; ++i) {
        uint32_t word;
        memcpy(&word, numbers + i, sizeof word);
        put_word(word);
    }
}

"""
HOST = (
    "#include <stdint.h>\n#include <stdio.h>\nvoid put(const char *text);\nuint32_t ticks(void);\n"
)
HOST += "void put(const char *text)\n{\n    fputs(text, stdout);\n}\nuint32_t ticks(void)\n{\n    return 0u;\n}\n"
ROUNDS = 100


def bits_program(export: Export) -> str:
    """Prints the bits of all outputs at the test program's samples, and behind them the ticks of many calls."""
    check = export.files[f"{export.name}_check.c"]
    arrays = re.findall(r"static const float \w+_in_\w+\[\d+\] = \{.*?\};\n", check, re.DOTALL)
    lines = [
        BITS.replace("NAME", export.name),
        *arrays,
        "int main(void)",
        "{",
        "    uint32_t start;",
    ]
    for item in export.manifest["functions"]:
        ports = [*item["outputs"], {"name": "health", "size": 4}]
        name = item["name"]
        inputs = ", ".join(
            f"{name}_in_{port['name']} + s * {port['size']}" for port in item["inputs"]
        )
        lines += ["    {", *(f"        float {port['name']}[{port['size']}];" for port in ports)]
        call = f"{name}({inputs}, {', '.join(port['name'] for port in ports)});"
        lines += ["        for (int s = 0; s < 5; ++s) {", f"            {call}"]
        lines += [f"            put_all({port['name']}, {port['size']});" for port in ports]
        lines += ["        }", "        start = ticks();"]
        lines += [
            f"        for (int k = 0; k < {ROUNDS}; ++k)",
            f"            for (int s = 0; s < 5; ++s) {call}",
        ]
        lines += ["        put_word((ticks() - start) & 0xFFFFFFu);", "    }"]
    return "\n".join([*lines, "    return 0;", "}", ""])


@pytest.mark.parametrize("target", TARGETS_BY_DAY)
@pytest.mark.parametrize(("name", "entry", "functions"), MACHINES)
def test_an_emulated_cortex_gives_the_hosts_numbers_to_the_last_bit(
    name, entry, functions, target, tmp_path
):
    require_emulator()
    export = exported(name, entry, functions)
    written(export, tmp_path)
    (tmp_path / "bits.c").write_text(bits_program(export))
    (tmp_path / "host.c").write_text(HOST)
    ran(
        [
            compilers()[0],
            *STRICT,
            "-O2",
            "-ffp-contract=off",
            f"{name}.c",
            "bits.c",
            "host.c",
            "-o",
            "host",
            "-lm",
        ],
        tmp_path,
    )
    host = ran(["./host"], tmp_path).split()
    text = emulated(firmware(tmp_path, target, ["bits.c", f"{name}.c"]), target).split()
    counted = [
        sum(port["size"] for port in item["outputs"]) + 4 for item in export.manifest["functions"]
    ]
    ends = np.cumsum([5 * count + 1 for count in counted]) - 1
    assert len(text) == len(host) == ends[-1] + 1
    for i, (here, there) in enumerate(zip(host, text, strict=True)):
        if i not in ends:
            assert here == there, f"number {i}"
    for end, item in zip(ends, export.manifest["functions"], strict=True):
        instructions = int(text[end], 16) * INSTRUCTIONS_OF_A_TICK / (5 * ROUNDS)
        operations = item["operations"]
        least = sum(operations["once"].values())
        most = least + single.NEWTON_ITERATIONS * sum(operations["each_iteration"].values())
        # where nothing is computed, a call copies
        assert least < instructions < 60 * (most + 1), (
            "an operation is one instruction, a sine some forty"
        )


@pytest.mark.nightly
@pytest.mark.parametrize(
    "row",
    page_table("microcontrollers.md", "| machine | what |").rows,
    ids=lambda row: " ".join(row[:2]),
)
def test_sizes_and_errors_of_the_page(row, tmp_path):
    """Bytes and stack are of one version of the compiler, hence to a tenth; errors of the page have one digit."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"needs {COMPILER}, which is not here (Debian's gcc-arm-none-eabi)")
    name, what, code, stack, _, _, error = row
    entry = ACTUATORS if what.startswith("motors") else PLATFORM
    (function,) = re.findall(r"`(\w+)`", what)
    export = exported(name, entry, (function,), "cortex-m4f")
    figures = export.manifest["target"]
    assert figures["code_bytes"] == pytest.approx(float(code), rel=0.1)
    assert max(figures["stack_bytes"].values()) == pytest.approx(float(stack), rel=0.1, abs=16)
    last = "force" if function == "inverse_dynamics" else "q"
    of_unit = error.split()[-1] if "of" not in error else None
    errors = [
        item
        for item in export.accuracy.outputs
        if item.output == last and of_unit in (None, item.unit)
    ]
    largest = max(item.error for item in errors)
    assert float(error.split()[0]) / 1.6 < largest < 1.6 * float(error.split()[0])


@pytest.mark.nightly
@pytest.mark.parametrize(
    "row",
    page_table("microcontrollers.md", "| machine | what |").rows,
    ids=lambda row: " ".join(row[:2]),
)
def test_instructions_of_the_page(row, tmp_path):
    require_emulator()
    name, what, _, _, *printed, _ = row
    entry = ACTUATORS if what.startswith("motors") else PLATFORM
    (function,) = re.findall(r"`(\w+)`", what)
    export = exported(name, entry, (function,))
    written(export, tmp_path)
    (tmp_path / "bits.c").write_text(bits_program(export))
    for contraction, instructions in zip(("off", "fast"), printed, strict=True):
        image = firmware(
            tmp_path, "cortex-m4f", ["bits.c", f"{name}.c"], f"-ffp-contract={contraction}"
        )
        ticks = int(emulated(image, "cortex-m4f").split()[-1], 16)
        assert ticks * INSTRUCTIONS_OF_A_TICK / (5 * ROUNDS) == pytest.approx(
            float(instructions), rel=0.1
        )


def test_fused_products_change_bits_and_stay_within_what_is_stated(tmp_path):
    """The same firmware with products and sums rounded once: other bits, the manifest's accuracy."""
    require_emulator()
    export = exported("delta")
    written(export, tmp_path)
    (tmp_path / "bits.c").write_text(bits_program(export))
    runs = {}
    for contraction in ("off", "fast"):
        image = firmware(
            tmp_path, "cortex-m4f", ["bits.c", "delta.c"], f"-ffp-contract={contraction}"
        )
        runs[contraction] = [int(word, 16) for word in emulated(image, "cortex-m4f").split()]
    counted = [
        sum(port["size"] for port in item["outputs"]) + 4 for item in export.manifest["functions"]
    ]
    ends = [5 * counted[0]]
    values = {
        key: np.array([w for i, w in enumerate(run) if i not in ends], np.uint32).view(np.float32)
        for key, run in runs.items()
    }
    differences = np.abs(values["off"].astype(float) - values["fast"])
    assert 0 < differences.max() < 1e-4
    assert all(runs["fast"][end] < runs["off"][end] for end in ends), "fewer instructions"


BOARD_H = """\
int read_target(float *position);
void set_motors(const float *angles);
void stop_motors(void);
"""
BOARD_C = """\
#include <stdint.h>
#include <string.h>
#include "board.h"

void put(const char *text);

static const float targets[3][3] = {{0.0f, 0.0f, -0.5f}, {0.05f, 0.125f, -0.5625f}, {0.0f, 0.0f, -1.0f}};

int read_target(float *position)
{
    static int next = 0;
    if (next == 3) return 0;
    memcpy(position, targets[next], sizeof targets[0]);
    ++next;
    return 1;
}

void set_motors(const float *angles)
{
    char text[12] = "";
    for (int k = 0; k < 3; ++k) {
        uint32_t word;
        memcpy(&word, angles + k, sizeof word);
        for (int i = 0; i < 8; ++i) text[i] = "0123456789abcdef"[(word >> (28 - 4 * i)) & 15u];
        text[8] = '\\n';
        put(text);
    }
}

void stop_motors(void)
{
    put("stopped\\n");
}
"""


def test_the_firmware_of_the_page_moves_the_motors_and_stops_out_of_reach(tmp_path):
    """The ten lines as they stand there, beside a board whose motors print what they are told."""
    require_emulator()
    page = (ROOT / "docs" / "microcontrollers.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```c title=\"firmware.c\"\n(.*?)```", page, re.DOTALL)
    assert len(lines.splitlines()) == 10
    folder = written(exported("delta"), tmp_path)
    for name, text in (("firmware.c", lines), ("board.h", BOARD_H), ("board.c", BOARD_C)):
        (folder / name).write_text(text)
    image = firmware(folder, "cortex-m4f", ["firmware.c", "board.c", "delta.c"])
    *words, last = emulated(image, "cortex-m4f").split()
    assert last == "stopped"
    angles = np.array([int(word, 16) for word in words], np.uint32).view(np.float32).reshape(2, 3)
    exact = model("delta").platform.evaluate([[0.0, 0.0, -0.5], [0.05, 0.125, -0.5625]]).q[:, 3:]
    assert np.abs(angles - exact).max() < 1e-6

"""C text of a generated controller: header and source."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.parameter_check import parameter_declarations, parameter_source
from tauloop.compiler.c.printing.source import comment, number
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT
from tauloop.export.controller.equations import ControllerChannel, ControllerEquations
from tauloop.integrate.routine import functions_text

#: Flags of a sample: bit and meaning.
SAMPLE_FLAGS: Mapping[str, tuple[int, str]] = {
    "NOT_A_NUMBER": (0x1, "a measurement or its stamp is not a finite number"),
    "REFERENCE": (0x2, "the reference is not finite, out of reach or singular"),
    "STALE": (
        0x4,
        "the stamp has not changed since the last sample, or an encoder that should move has not",
    ),
    "LOST": (
        0x8,
        "the pose cannot be computed, is singular or far from its prediction, or gives no forces",
    ),
    "SATURATED": (0x10, "a force was limited"),
    "LATE": (0x20, "the sample is late, or the clock stopped or went backwards"),
    "HOLDS": (0x40, "the last good forces are held"),
    "STOPS": (0x80, "a controlled stop is under way"),
    "BRAKES": (
        0x100,
        "all forces are zero and the brakes must hold until the controller is started again",
    ),
    "PARAMETERS": (
        0x200,
        "the host has other parameters, or the parameters in the code are damaged: the controller does not start",
    ),
}
#: Types that the generated routines use.
_TYPES = """\
typedef void (*tl_own)(double time, const double *seen, double *made);
typedef struct {
    const double *in, *held, *p;
    double *z, *worst;
    tl_own own;
} tl_data;
typedef struct {
    double *s, *guess, *known;
    void *data;
} tl_run;

/* Whether the results of a program are valid. */
static int tl_healthy(const double *health, double pivot, double *worst)
{
    (void)worst;
    return health[0] >= 0.0 && health[1] > pivot && health[2] < TL_CONVERGED;
}
"""
#: Generated code may leave functions and parameters unused.
_QUIET = (
    "#ifdef __GNUC__",
    '#pragma GCC diagnostic ignored "-Wunused-function"',
    '#pragma GCC diagnostic ignored "-Wunused-parameter"',
    "#endif",
)


def controller_header(
    stem: str, equations: ControllerEquations, values: Mapping[str, float]
) -> str:
    """Return the header: the inputs of a sample, its flags, and the four functions.

    Args:
        stem: first part of every name.
        equations: the controller.
        values: all parameters by name, in the order of their hash.
    """
    model, options, up = equations.model, equations.options, stem.upper()
    name, memory = comment(model.mechanism.name), memory_size(equations)
    description = (
        f"Controller of the machine {name!r}: {options.controller}, errors of the "
        f"{_SPACE[options.space]}, {options.rate:g} samples per second. SI units, angles in radians."
    )
    wrapped = [f" * {line}" for line in textwrap.wrap(comment(description), 110)]
    lines = [f"/* {stem}: made by Tauloop; do not edit.", " *", *wrapped, " *"]
    lines += [
        " * The forces are finite and within their limits for any input; see docs/generated-controllers.md."
    ]
    lines += [
        " */",
        f"#ifndef {up}_H",
        f"#define {up}_H",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    lines += [*parameter_declarations(stem, values), ""]
    lines += [
        f"#define {up}_PERIOD {number(options.period)} /* s */",
        f"#define {up}_FORCES {equations.forces.size}",
        "",
    ]
    lines += ["/* Flags of a sample. */", "enum {"]
    lines += [
        f"    {up}_{flag} = 0x{bit:x}, /* {text} */" for flag, (bit, text) in SAMPLE_FLAGS.items()
    ]
    lines += ["};", "", "/* Inputs of a sample. */", "typedef struct {"]
    lines += [line for channel in equations.inputs for line in _field(channel)]
    lines += [f"}} {stem}_input;", ""]
    lines += [
        "/* Parameters that may be changed after the start; a new start resets them. */",
        "typedef struct {",
    ]
    lines += [line for channel in equations.parameters for line in _field(channel)]
    lines += [f"}} {stem}_parameters;", ""]
    columns = ", ".join(comment(column) for column in equations.forces.columns)
    lines += [
        "/* State of the controller, as numbers only; a copy is a second, independent controller. */",
        f"typedef struct {{ double memory[{memory}]; }} {stem}_controller;",
        "",
        "/* Starts the controller, given the hash of the host's parameters. Returns 0, or flags if it fails. */",
        f"unsigned {stem}_begin({stem}_controller *controller, unsigned long long hash);",
        "",
        f"/* One sample: forces {columns}",
        f"   [{', '.join(equations.forces.units)}]. Returns flags. */",
        f"unsigned {stem}_step({stem}_controller *controller, const {stem}_input *input, double *force);",
        "",
        "/* Watchdog, for another thread: returns 1 if no sample has arrived for so long that the forces",
        "   must be zero and the brakes must hold. */",
        f"int {stem}_expired(const {stem}_controller *controller, double time);",
        "",
    ]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


_SPACE = {"joint": "actuators", "platform": "platform"}


def _field(channel: ControllerChannel) -> list[str]:
    size = "" if channel.columns == (channel.name,) else f"[{channel.size}]"
    kinds = ", ".join(dict.fromkeys(channel.units))
    which = "" if not size else f": {', '.join(channel.columns)}"
    text = textwrap.wrap(comment(f"{channel.meaning}{which} [{kinds}]"), 100)
    head = [f"    /* {text[0]}", *(f"       {line}" for line in text[1:])]
    head[-1] += " */"
    return [*head, f"    double {channel.name}{size};"]


def memory_size(equations: ControllerEquations) -> int:
    """Return the number of doubles in a controller's state, the C struct `ctl_memory`."""
    n_p = len(equations.defaults)
    n_q = equations.model.topology.n_q
    n_u = len(equations.model.mechanism.actuators)
    n_f = equations.forces.size
    loops = _loops(equations)
    # the sections of the struct, in their order
    return (n_p + 1) + 11 + 4 * n_u + n_u + 2 * n_u + n_f + 2 * n_u + (loops + 1) + 4 * n_q + 6


def _loops(equations: ControllerEquations) -> int:
    """Return the number of states of the control loops."""
    loop = equations.work.slices["loop"]
    return loop.stop - loop.start


def controller_source(
    stem: str, equations: ControllerEquations, values: Mapping[str, float]
) -> str:
    """Return the source, without the line that includes its header; see `controller_header`."""
    work, model = equations.work, equations.model
    inputs = _offsets("IN", equations.inputs)
    reference = sum(c.size for c in equations.inputs if c.name.startswith("reference"))
    sizes: dict[str, object] = {
        "NI": sum(channel.size for channel in equations.inputs),
        "NF": equations.forces.size,
        "NU": len(model.mechanism.actuators),
        "NQ": model.topology.n_q,
        "NR": reference,
        "NP": len(equations.defaults),
        "NW": work.size,
        "NL": _loops(equations),
        "CTL_PERIOD": number(equations.options.period),
        "CTL_DIFFERENCES": int(equations.options.velocity_differences),
        "CTL_MODEL": int(equations.needs_model),
        "TL_CONVERGED": number(CONVERGED),
        "CTL_PIVOT": number(SMALLEST_PIVOT),
        "CTL_DEFAULTS": ", ".join(number(float(value)) for value in equations.defaults),
        "CTL_Q": ", ".join(number(float(value)) for value in model.assembly.q),
        **inputs,
        **_offsets("P", equations.parameters),
        **{f"W_{name.upper()}": place.start for name, place in work.slices.items()},
    }
    signature = "(tl_run *run, double time, double *y, double *rate, double *guards);"
    body = (
        c_file("tauloop.export.controller", "controller.c")
        .replace("@NAME@", stem)
        .replace("@UP@", stem.upper())
    )
    return "\n".join(
        [
            *_QUIET,
            "#include <math.h>",
            "#include <string.h>",
            parameter_source(stem, values),
            *(f"#define {name} {size}" for name, size in sizes.items()),
            _TYPES,
            functions_text(equations.routines.values(), "control"),
            *(f"static int system_{name}{signature}" for name in equations.routines),
            body,
            *(routine.text(f"system_{name}") for name, routine in equations.routines.items()),
        ]
    )


def _offsets(prefix: str, channels: tuple[ControllerChannel, ...]) -> dict[str, int]:
    """Return the index of the first number of each channel, by name of the C macro."""
    offsets = {}
    start = 0
    for channel in channels:
        offsets[f"{prefix}_{channel.name.upper()}"] = start
        start += channel.size
    return offsets

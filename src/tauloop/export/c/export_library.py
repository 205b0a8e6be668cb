"""Exported C code as a library folder for CMake, Arduino and PlatformIO, with a header for C++.

Names in these files are C identifiers. Texts of a machine file become single lines of printable
ASCII.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing import single as single_precision
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.single import in_single, single_number
from tauloop.compiler.c.printing.source import comment, number
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.export.c.export_texts import Case, HeaderNotes

#: Keywords of C++ that are valid names in C.
_CPP_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class compl concept consteval "
    "constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false "
    "friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast requires static_assert static_cast std template this thread_local throw true try typeid typename "
    "using virtual wchar_t xor xor_eq".split()
)
#: Maximum length of a field of library.properties that the Arduino IDE shows on one line.
MAX_FIELD_LENGTH = 200


def library_files(
    stem: str,
    files: Mapping[str, str],
    cases: Sequence[Case],
    notes: HeaderNotes,
    version: str,
    *,
    single: bool,
) -> dict[str, str]:
    """Return the files of a library by path: the exported files and the library's description.

    Args:
        stem: first part of every name.
        files: source, header and test program by name.
        cases: functions with test inputs and expected outputs.
        notes: notes in the header that apply to all functions.
        version: version of the library.
        single: whether the functions use floats.
    """
    digits = [part for part in version.split(".") if part.isdigit()]
    numbers = ".".join([*digits, "0", "0", "0"][:3])
    paragraph = comment(f"Kinematics and dynamics of {notes.made_from}. {notes.description}")
    description = paragraph[:MAX_FIELD_LENGTH].rstrip("\\ ")
    return {
        f"src/{stem}.c": files[f"{stem}.c"],
        f"src/{stem}.h": files[f"{stem}.h"],
        f"src/{stem}.hpp": cpp_text(stem, cases, single=single),
        f"test/{stem}_check.c": files[f"{stem}_check.c"],
        f"examples/{stem}_example/{stem}_example.ino": _sketch(stem, cases[0], single=single),
        "CMakeLists.txt": c_file("tauloop.export.c", "library.cmake")
        .replace("@NAME@", stem)
        .replace("@VERSION@", numbers),
        "library.properties": _properties(stem, description, numbers),
        "library.json": _platformio(stem, description, numbers),
    }


def cpp_text(stem: str, cases: Sequence[Case], *, single: bool) -> str:
    """Return the header for C++: each function with a view of fixed size for every array.

    Args:
        stem: first part of every name.
        cases: functions with test inputs and expected outputs.
        single: whether the functions use floats.
    """
    real = "float" if single else "double"
    namespace = f"{stem}_" if stem in _CPP_KEYWORDS else stem
    pivot, converged, literal = SMALLEST_PIVOT, CONVERGED, number
    if single:
        pivot, converged = single_precision.SMALLEST_PIVOT, single_precision.CONVERGED
        literal = single_number
    title = (
        f"/* {stem}.h for C++. A view accepts only an array, a std::array or a std::span of its "
        "size. */"
    )
    lines = [
        title,
        f"#ifndef {stem.upper()}_HPP",
        f"#define {stem.upper()}_HPP",
        "",
        f'#include "{stem}.h"',
        "",
        c_file("tauloop.export.c", "view.hpp").replace("@NAME@", namespace).strip(),
        "",
        "/* Returns whether the pose is within reach and regular, and the results are converged and finite. */",
        f"inline bool is_good(view<const {real}, 4> health) noexcept",
        "{",
        f"    return health[0] >= {literal(0.0)} && health[1] > {literal(pivot)} && health[2] < {literal(converged)};",
        "}",
        "",
    ]
    for case in cases:
        function = case.function
        ports = ", ".join(
            _view(port, real, is_input=port in function.inputs) for port in function.arguments
        )
        call = ", ".join(f"{port.name}.data()" for port in function.arguments)
        name = function.name.removeprefix(f"{stem}_")
        lines += [f"/* {case.meaning} */", f"inline void {name}({ports}) noexcept"]
        lines += ["{", f"    ::{function.name}({call});", "}", ""]
    return "\n".join([*lines, f"}} /* namespace {namespace} */", "", "#endif", ""])


def _view(port: CPort, real: str, *, is_input: bool) -> str:
    const = "const " if is_input else ""
    return f"view<{const}{real}, {port.size}> {port.name}"


def _sketch(stem: str, case: Case, *, single: bool) -> str:
    """Return an Arduino example that calls a function at a pose and prints its outputs."""
    function = case.function
    lines = [f"/* {case.meaning}: at one pose, once a second. */", f"#include <{stem}.h>", ""]
    for port in function.inputs:
        values = ", ".join(number(value) for value in case.inputs[port.name][0].tolist())
        lines.append(f"static const double {port.name}[{port.size}] = {{{values}}};")
    results = function.arguments[len(function.inputs) :]
    lines += [f"static double {port.name}[{port.size}];" for port in results]
    call = ", ".join(port.name for port in function.arguments)
    lines += ["", "void setup()", "{", "    Serial.begin(115200);", "}", "", "void loop()", "{"]
    lines += [f"    {function.name}({call});"]
    for port in results:
        lines.append(f'    Serial.println(F("{port.name}"));')
        lines.append(
            f"    for (int i = 0; i < {port.size}; ++i) Serial.println({port.name}[i], 6);"
        )
    text = "\n".join([*lines, "    delay(1000);", "}", ""])
    return in_single(text) if single else text


def _properties(stem: str, description: str, version: str) -> str:
    """Return Arduino's description of a library, one field per line."""
    fields = {
        "name": stem,
        "version": version,
        "author": "Tauloop",
        "maintainer": "Tauloop",
        "sentence": f"{stem}: C code for a parallel robot, generated by Tauloop.",
        "paragraph": description,
        "category": "Device Control",
        "architectures": "*",
        "includes": f"{stem}.h",
    }
    return "".join(f"{key}={value}\n" for key, value in fields.items())


def _platformio(stem: str, description: str, version: str) -> str:
    """Return PlatformIO's description of a library."""
    fields = {
        "name": stem,
        "version": version,
        "description": description,
        "keywords": ["robot", "kinematics", "dynamics"],
        "authors": [{"name": "Tauloop"}],
        "headers": f"{stem}.h",
        "frameworks": "*",
        "platforms": "*",
        "export": {
            "include": [
                "src/*",
                "examples/*",
                "test/*",
                "library.json",
                "library.properties",
                f"{stem}_manifest.json",
            ]
        },
    }
    return json.dumps(fields, indent=2, ensure_ascii=True) + "\n"

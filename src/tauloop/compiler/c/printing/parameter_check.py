"""Parameters of exported code with a hash, which the code and the host compare at start-up.

The hash is FNV-1a with 64 bits over the bytes of all values as IEEE doubles, lowest byte first, one
value after the other. Any code can compute it without a library.

Source: Fowler, Noll, Vo, draft-eastlake-fnv (64-bit FNV-1a).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from tauloop.common.result import tauloop_version
from tauloop.compiler.c.printing.source import comment

_OFFSET, _PRIME, _BITS = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


def parameter_hash(values: Mapping[str, float]) -> str:
    """Return the hash of the values in order as 16 hexadecimal digits; -0 counts as 0.

    Names do not affect the hash.

    Examples:
        >>> parameter_hash({"length": 0.25, "mass": 1.0})
        'fe9bb5d6bbbfc3c5'
    """
    total = _OFFSET
    for value in values.values():
        for byte in struct.pack("<d", value + 0.0):
            total = (total ^ byte) * _PRIME & _BITS
    return f"{total:016x}"


def parameter_manifest(values: Mapping[str, float]) -> dict[str, Any]:
    """Return hash, values in order (SI), and the version of Tauloop, for a manifest."""
    return {
        "hash": parameter_hash(values),
        "tauloop": tauloop_version(),
        "values": dict(values),
    }


def parameter_declarations(stem: str, values: Mapping[str, float]) -> list[str]:
    """Return the lines of a header: the hash as a constant, and the function that checks it."""
    return [
        f"/* Hash of the {len(values)} parameters in this code, as in its manifest (SI, FNV-1a of their bytes). */",
        f"#define {stem.upper()}_PARAMETER_HASH 0x{parameter_hash(values)}ULL",
        "",
        "/* To be called at start-up with the hash of the host's parameters: 0 all is well; 1 the table of parameters",
        "   in this code is damaged; 2 the host's parameters are others. With 1 or 2 no motion may begin. */",
        f"int {stem}_check_parameters(unsigned long long hash);",
    ]


def parameter_source(stem: str, values: Mapping[str, float]) -> str:
    """Return the C text of the table and the function, without floating-point numbers."""
    rows = [
        f"    0x{struct.pack('>d', value + 0.0).hex()}ULL, /* {comment(name)} = {value!r} */"
        for name, value in values.items()
    ]
    table = []
    if values:
        head = f"static const unsigned long long {stem}_table[{len(values)}] = {{"
        table = [head, *rows, "};", ""]
    # a shift by a variable would be a function call on small processors
    loop = [
        f"    for (int i = 0; i < {len(values)}; ++i) {{",
        f"        unsigned long long value = {stem}_table[i];",
        f"        for (int k = 0; k < 8; ++k, value >>= 8) sum = (sum ^ (value & 255ULL)) * 0x{_PRIME:x}ULL;",
        "    }",
    ]
    return "\n".join(
        [
            *table,
            f"int {stem}_check_parameters(unsigned long long hash)",
            "{",
            f"    unsigned long long sum = 0x{_OFFSET:016x}ULL;",
            *(loop if values else []),
            f"    if (sum != 0x{parameter_hash(values)}ULL) return 1;",
            "    return hash == sum ? 0 : 2;",
            "}",
            "",
        ]
    )

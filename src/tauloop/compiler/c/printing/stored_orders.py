"""Orders of code in the cache, so that a computer reorders the same code only once.

The name of a record is a hash of everything that defines an order: the operations and operands of
the code, the function that orders it, the files of this package and CasADi's version. Constants do
not affect an order, so machines that differ only in their parameters share it. A damaged record is
written again.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import casadi as ca

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.cache import (
    cache_folder,
    ensure_private_folder,
    read_record,
    write_record,
)
from tauloop.compiler.c.calling.compiler import file_stamp
from tauloop.compiler.c.printing.straight import HIDDEN, Instruction
from tauloop.compiler.c.printing.sums import SUMMING

#: A function that reorders code.
Order = Callable[[Sequence[Instruction]], tuple[Instruction, ...]]
#: Operations of the instructions that reordering adds: partial sums, copies of values, and values
#: that are computed again.
_ADDED_OPERATIONS = (*SUMMING, ca.OP_ASSIGN, HIDDEN, ca.OP_MUL, ca.OP_SQ, ca.OP_TWICE)


def stored_order(order: Order, code: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """Return the reordered code, from the cache if possible.

    Args:
        order: function at module level that reorders code; the order must not depend on constants.
        code: instructions to reorder, every value before its use.
    """
    folder = cache_folder()
    record = folder / f"{_key(order, code)}.json"
    ordered = _read(read_record(record), code)
    if ordered is None:
        ordered = order(code)
        # Without a record, the next process only has to search again.
        with suppress(InputError, OSError):
            ensure_private_folder(folder)
            write_record(record, _entries(ordered, code))
    return ordered


def _key(order: Order, code: Sequence[Instruction]) -> str:
    """Return a hash of everything that defines an order."""
    import hashlib  # the import takes 2 ms, and short code does not need it

    instructions = [(item.number, item.operation, item.operands) for item in code]
    texts = (order.__module__, order.__qualname__, *_stamps(), repr(instructions))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


@functools.cache
def _stamps() -> list[str]:
    """Return the identity of this package and of CasADi, which numbers the operations."""
    folder = Path(__file__).parent
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [ca.CasadiMeta.version(), *(f"{name} {file_stamp(folder / name)}" for name in names)]


def _entries(ordered: Sequence[Instruction], code: Sequence[Instruction]) -> list[int | list[int]]:
    """Return an entry for each instruction: its index in the code, or a new instruction.

    A new instruction is listed as its number, its operation and its operands.
    """
    index_of_value = {item.number: i for i, item in enumerate(code)}
    entries: list[int | list[int]] = []
    for item in ordered:
        index = index_of_value.get(item.number)
        if index is not None and code[index][:3] == item[:3]:
            entries.append(index)
        else:
            entries.append([item.number, item.operation, *item.operands])
    return entries


def _read(entries: object, code: Sequence[Instruction]) -> tuple[Instruction, ...] | None:
    """Return the instructions of a record's entries; None if they are not a complete order."""
    if not isinstance(entries, list):
        return None
    ordered: list[Instruction] = []
    for entry in entries:
        if type(entry) is int and 0 <= entry < len(code):
            ordered.append(code[entry])
        elif isinstance(entry, list) and len(entry) > 2 and all(type(k) is int for k in entry):
            ordered.append(Instruction(entry[0], entry[1], tuple(entry[2:])))
        else:
            return None
    return tuple(ordered) if _is_complete(ordered, code) else None


def _is_complete(ordered: Sequence[Instruction], code: Sequence[Instruction]) -> bool:
    """Return whether each value is computed once, before its use, and all outputs are stored."""
    computed: set[int] = set()
    original = {item.number: item for item in code}
    for item in ordered:
        if item.number in computed or not computed.issuperset(item.operands):
            return False
        before = original.get(item.number)
        has_new_operands = before is not None and before.operation == item.operation
        is_added = has_new_operands or item.operation in _ADDED_OPERATIONS
        if before is not item and not is_added:
            return False
        computed.add(item.number)
    return all(item.number in computed for item in code if item.operation == ca.OP_OUTPUT)

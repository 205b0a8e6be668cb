"""Instructions by kind, to show where a kernel spends its time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from machine_code.assembly import Assembly, Instruction
from machine_code.walk import Step

#: In the order of tables. Transposing rows into lanes counts as shuffles, or as moves of single numbers.
KINDS = (
    "fused",
    "sums and products",
    "divisions",
    "roots",
    "comparisons and masks",
    "shuffles",
    "loads",
    "stores",
    "copies",
    "integers",
    "spills",
    "reloads",
)
_PATTERNS = (
    (re.compile(r"vf[n]?m(add|sub)"), "fused"),
    (re.compile(r"v(add|sub|mul)[ps]d"), "sums and products"),
    (re.compile(r"vdiv"), "divisions"),
    (re.compile(r"vsqrt"), "roots"),
    (
        re.compile(r"v(perm|unpck|insert|extract|shuf|align|pextr|movh|movl|movddup|p?broadcast)"),
        "shuffles",
    ),
    (re.compile(r"vmov"), "copies"),
)


def kind(one: Instruction) -> str:
    """Return the kind of an instruction."""
    if not one.is_vector:
        return "integers"
    if one.writes_memory:
        return "stores"
    if one.memory is not None and re.match(r"v(mov(?!h|l)|broadcast)", one.name):
        return "loads"
    return next(
        (name for pattern, name in _PATTERNS if pattern.match(one.name)), "comparisons and masks"
    )


def counts(code: Assembly, steps: Sequence[Step]) -> dict[str, int]:
    """Count the instructions of each kind in a stretch of a walk, several rounds of its loops included.

    A spill is a store to a place on the stack that every round of a loop over lanes overwrites;
    values of lanes have one place each. Reloads are all reads from there, also as operands of other
    instructions.
    """
    found = Counter(kind(code.instructions[step.place]) for step in steps)
    stores = Counter(
        (step.place, step.address)
        for step in steps
        if step.address is not None
        and _is_packed(code.instructions[step.place])
        and code.instructions[step.place].writes_memory
    )
    slots = {address for (_, address), times in stores.items() if times > 1}
    found["spills"] = sum(times for (_, address), times in stores.items() if address in slots)
    found["reloads"] = sum(
        1
        for step in steps
        if step.address in slots and not code.instructions[step.place].writes_memory
    )
    return {name: found[name] for name in KINDS}


def _is_packed(one: Instruction) -> bool:
    return one.is_vector and ("%ymm" in one.text or "%zmm" in one.text)


def widest(code: Assembly, steps: Sequence[Step]) -> int:
    """Return the most frequent register size of products, in numbers."""
    sizes: Counter[int] = Counter()
    for step in steps:
        one = code.instructions[step.place]
        if kind(one) in ("fused", "sums and products"):
            sizes[_numbers_in_register(one)] += 1
    return sizes.most_common(1)[0][0] if sizes else 1


def _numbers_in_register(one: Instruction) -> int:
    if "%zmm" in one.text:
        return 8
    if "%ymm" in one.text:
        return 4
    return 2 if one.name.endswith("pd") else 1

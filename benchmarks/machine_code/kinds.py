"""Instructions by kind: what a kernel's time is spent on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from machine_code.assembly import Assembly, Instruction
from machine_code.walk import Step

#: In the order of tables. Turning rows into lanes shows as shuffles, or as moves of single numbers.
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
    """The kind of an instruction."""
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
    """How many instructions of each kind a stretch of a walk passes, several rounds of its loops included.

    A spill is a store to a place on the stack that every round of a loop over lanes writes again;
    values of lanes have a place each. Reloads are all reads from there, those within other
    instructions included.
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
    """Numbers in the registers that products use most."""
    sizes = Counter(
        8 if "%zmm" in text else 4 if "%ymm" in text else 2 if name.endswith("pd") else 1
        for step in steps
        if kind(one := code.instructions[step.place]) in ("fused", "sums and products")
        for name, text in ((one.name, one.text),)
    )
    return sizes.most_common(1)[0][0] if sizes else 1

"""Assembly as compilers write it (AT&T syntax), cut into instructions with their operands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_LABEL = re.compile(r"^([.\w$]+):")
_LINE = re.compile(r"^\s+([a-z][\w]*)\s*(.*?)\s*$")
_MEMORY = re.compile(r"^(-?\w*|[.\w$+-]*)\((%\w+)?(?:,(%\w+))?(?:,(\d+))?\)(?:\{.*\})?$")
#: Prefixes that are separate words.
_PREFIXES = ("rep", "lock", "notrack")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction.

    Attributes:
        name: its mnemonic.
        operands: as written, sources first.
        text: the line.
    """

    name: str
    operands: tuple[str, ...]
    text: str

    @property
    def memory(self) -> str | None:
        """Return the operand in memory; `lea` has none, as it only computes an address."""
        if self.name.startswith("lea"):
            return None
        return next((operand for operand in self.operands if "(" in operand), None)

    @property
    def writes_memory(self) -> bool:
        """Return whether the operand in memory is the one written to."""
        compares = self.name.startswith(("cmp", "test", "vcomi", "vucomi", "push", "jmp", "call"))
        return (
            bool(self.operands)
            and "(" in self.operands[-1]
            and not compares
            and self.memory is not None
        )

    @property
    def is_vector(self) -> bool:
        """Return whether it works on vector or mask registers, or on one lane of them."""
        return self.name.startswith(("v", "k")) and self.name != "vzeroupper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An operand in memory: offset + base + index * scale."""

    offset: int | str
    base: str | None
    index: str | None
    scale: int


@dataclass(frozen=True, slots=True)
class Assembly:
    """Instructions of one or more files, and the positions of their labels.

    Local labels of a file (`.L12`) carry the number of their file.
    """

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def parsed(texts: Iterable[str]) -> Assembly:
    """Return the instructions and labels of assembly files that are linked together."""
    found = Assembly()
    for k, text in enumerate(texts):
        for line in text.splitlines():
            line = line.split("#")[0].rstrip()
            if label := _LABEL.match(line):
                found.labels[_own(label[1], k)] = len(found.instructions)
            elif (match := _LINE.match(line)) and not match[1].startswith("."):
                found.instructions.append(_instruction(match[1], match[2], k))
    return found


def address(operand: str) -> Address:
    """Return the parts of an operand in memory."""
    match = _MEMORY.match(operand)
    if match is None:
        raise ValueError(f"no operand in memory: {operand}")
    offset = match[1] or "0"
    return Address(
        offset=int(offset, 0) if re.fullmatch(r"-?\d+|0x[0-9a-f]+", offset) else offset,
        base=match[2],
        index=match[3],
        scale=int(match[4] or 1),
    )


def _own(label: str, k: int) -> str:
    return f"{label}@{k}" if label.startswith(".") else label


def _instruction(name: str, rest: str, k: int) -> Instruction:
    if name in _PREFIXES:
        follower, _, rest = rest.lstrip("; ").partition(" ")
        name = f"{name} {follower}"
    operands = tuple(_split(rest))
    text = f"\t{name}\t{rest}"
    if name.startswith(("j", "call")) and operands:
        operands = (_own(operands[0].removesuffix("@PLT"), k),)
    return Instruction(name=name, operands=operands, text=text)


def _split(rest: str) -> Iterator[str]:
    """Yield the operands; commas within brackets do not separate them."""
    yield from (part.strip() for part in re.split(r",(?![^(]*\))", rest) if part.strip())

"""Find the instructions that a function runs, without running them: only the integers that steer loops are computed.

A processor that lacks the instructions cannot show which of them a kernel executes. Generated
kernels branch only on counters and addresses, except for the end of Newton's loop; so it is enough
to follow the integer registers and their copies on the stack. Numbers in vector registers stay
unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from machine_code.assembly import Assembly, Instruction, address

#: Names of the integer registers by width (bytes).
_SHORT = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")
REGISTERS = {f"%r{name}": (f"%r{name}", 8) for name in _SHORT}
REGISTERS |= {f"%e{name}": (f"%r{name}", 4) for name in _SHORT}
REGISTERS |= {f"%{name}": (f"%r{name}", 2) for name in _SHORT}
REGISTERS |= {f"%{name[0]}l": (f"%r{name}", 1) for name in _SHORT[:4]} | {
    f"%{n}l": (f"%r{n}", 1) for n in _SHORT[4:]
}
REGISTERS |= {
    f"%r{k}{mark}": (f"%r{k}", width)
    for k in range(8, 16)
    for mark, width in (("", 8), ("d", 4), ("w", 2), ("b", 1))
}
#: Registers of a call's arguments, in order.
ARGUMENTS = ("%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9")
STACK, DATA, APART = 1 << 40, 1 << 32, 1 << 24
#: Largest number of instructions of a walk, and of a loop until it returns to its start.
LONGEST, LONGEST_LOOP = 2_000_000, 50_000
#: Largest number of instructions by which the two branches of a choice within a loop differ;
#: leaving the loop makes a larger difference.
CHOICE = 10
_WIDTHS = {"b": 1, "w": 2, "l": 4, "q": 8}


class Lost(Exception):
    """The walk cannot go on; the text states the reason."""


@dataclass(frozen=True, slots=True)
class Step:
    """An executed instruction: its place, and the address of its operand in memory (None: unknown or none)."""

    place: int
    address: int | None


@dataclass(slots=True)
class Walker:
    """State of a walk.

    Attributes:
        code: the instructions.
        rounds: of loops that end on numbers (Newton's).
        place: of the next instruction; below zero at the end.
        steps: executed instructions.
        guessed: number of branches on numbers that were assumed not taken.
    """

    code: Assembly
    rounds: int = 1
    place: int = 0
    registers: dict[str, int | None] = field(default_factory=dict)
    memory: dict[int, int | None] = field(default_factory=dict)
    flags: tuple[int, int, int] | None = None
    steps: list[Step] = field(default_factory=list)
    visits: Counter[int] = field(default_factory=Counter)
    guessed: int = 0
    is_fork: bool = False

    def fork(self, place: int) -> Walker:
        """Return an independent walker that continues at a place and does not fork itself."""
        return Walker(
            code=self.code,
            rounds=self.rounds,
            place=place,
            registers=dict(self.registers),
            memory=dict(self.memory),
            flags=self.flags,
            is_fork=True,
        )

    # ---- values

    def value(self, operand: str, width: int = 8) -> int | None:
        """Return the value of an operand."""
        if operand.startswith("$"):
            return (
                int(operand[1:], 0) if operand[1:].lstrip("-").replace("x", "").isalnum() else None
            )
        if operand in REGISTERS:
            name, width = REGISTERS[operand]
            held = self.registers.get(name)
            return None if held is None else held & _mask(width)
        if "(" in operand:
            where = self.where(operand)
            held = None if where is None else self.memory.get(where)
            return None if held is None else held & _mask(width)
        return None

    def where(self, operand: str) -> int | None:
        """Return the address of an operand in memory; None where it is unknown, as that of constants is."""
        at = address(operand)
        if isinstance(at.offset, str) or at.base == "%rip":
            return None
        total = at.offset
        for register, scale in ((at.base, 1), (at.index, at.scale)):
            if register is not None:
                held = self.registers.get(REGISTERS[register][0]) if register in REGISTERS else None
                if held is None:
                    return None
                total += held * scale
        return total & _mask(8)

    def put(self, operand: str, value: int | None, width: int = 8) -> None:
        """Write to a register or to memory."""
        if operand in REGISTERS:
            name, width = REGISTERS[operand]
            before = self.registers.get(name)
            if width >= 4 or value is None:
                self.registers[name] = None if value is None else value & _mask(width)
            else:
                self.registers[name] = (
                    None if before is None else (before & ~_mask(width)) | (value & _mask(width))
                )
        elif "(" in operand:
            where = self.where(operand)
            if where is not None:
                self.memory[where] = None if value is None else value & _mask(width)

    # ---- the walk

    def run(self, until: int | None = None, longest: int = LONGEST) -> int | None:
        """Continue to the end, or to a place; return the number of steps, None where the place is not reached."""
        for count in range(longest):
            if self.place < 0:
                return None if until is not None else count
            if count and self.place == until:
                return count
            self.step()
        if until is None:
            raise Lost(f"no end after {longest} instructions")
        return None

    def step(self) -> None:
        """Execute one instruction."""
        one = self.code.instructions[self.place]
        memory = one.memory
        self.steps.append(Step(self.place, None if memory is None else self.where(memory)))
        self.visits[self.place] += 1
        following = self.place + 1
        name = one.name
        if name.startswith("j"):
            following = self._jump(one, following)
        elif name.startswith("call"):
            following = self._call(one, following)
        elif name == "ret":
            following = self._pop() or -1
        elif one.is_vector:
            self._vector(one)
        else:
            self._integer(one)
        self.place = following

    def _jump(self, one: Instruction, following: int) -> int:
        target = self.code.labels.get(one.operands[0])
        if target is None:
            return self._pop() or -1  # a call at the end of a function
        if one.name == "jmp":
            return target
        taken = _holds(one.name[1:], self.flags)
        if taken is None:
            taken = self._guess(target, following)
        return target if taken else following

    def _guess(self, target: int, following: int) -> bool:
        """Decide a branch on numbers: a branch that returns here is Newton's loop, which runs the given rounds."""
        here = self.place
        if self.is_fork:
            return False
        steps = [self.fork(place).run(here, LONGEST_LOOP) for place in (target, following)]
        back = [2 * LONGEST_LOOP if count is None else count for count in steps]
        nearer, farther = min(back), max(back)
        if farther - nearer <= CHOICE:
            self.guessed += 1
            return False
        stays = self.visits[here] % self.rounds != 0
        return (back[0] == nearer) == stays

    def _call(self, one: Instruction, following: int) -> int:
        target = self.code.labels.get(one.operands[0])
        if (
            target is None
        ):  # a function of the C library: registers that a call may change become unknown
            for name in (*ARGUMENTS, "%rax", "%r10", "%r11"):
                self.registers[name] = None
            return following
        self._push(following)
        return target

    def _push(self, value: int | None) -> None:
        stack = self.registers["%rsp"]
        if stack is None:
            raise Lost("the stack's place is unknown")
        self.registers["%rsp"] = stack - 8
        self.memory[stack - 8] = value

    def _pop(self) -> int | None:
        stack = self.registers["%rsp"]
        if stack is None:
            raise Lost("the stack's place is unknown")
        self.registers["%rsp"] = stack + 8
        return self.memory.get(stack)

    def _vector(self, one: Instruction) -> None:
        """Set integers and flags that come from numbers to unknown."""
        if one.name.startswith(("vcomi", "vucomi", "vptest", "vtest", "kortest", "ktest")):
            self.flags = None
        elif one.operands and one.operands[-1] in REGISTERS:
            self.put(one.operands[-1], None)

    def _integer(self, one: Instruction) -> None:
        name, operands = one.name, one.operands
        width = _width(one)
        if name.startswith("mov") or name == "cltq":
            if name == "cltq" or name.startswith(("movs", "movz")):
                signed = name == "cltq" or name.startswith("movs")
                source, target = operands if operands else ("%eax", "%rax")
                held = self.value(source, _WIDTHS.get(name[4:5], 4))
                narrow = REGISTERS[source][1] if source in REGISTERS else _WIDTHS.get(name[4:5], 4)
                self.put(target, _signed(held, narrow) if signed and held is not None else held)
            else:
                self.put(operands[1], self.value(operands[0], width), width)
        elif name.startswith("push"):
            self._push(self.value(operands[0]))
        elif name.startswith("pop") and not name.startswith("popcnt"):
            self.put(operands[0], self._pop())
        elif name == "leave":
            self.registers["%rsp"] = self.registers.get("%rbp")
            self.registers["%rbp"] = self._pop()
        elif name.startswith("lea"):
            self.put(operands[1], self.where(operands[0]))
        elif name.startswith("cmov"):
            holds = _holds(name[4:], self.flags)
            if holds is None:
                self.put(operands[1], None)
            elif holds:
                self.put(operands[1], self.value(operands[0], width), width)
        elif name.startswith("set"):
            holds = _holds(name[3:], self.flags)
            self.put(operands[0], None if holds is None else int(holds))
        elif name.startswith("rep stos"):
            count, at = self.registers.get("%rcx"), self.registers.get("%rdi")
            self.registers["%rdi"] = (
                None if count is None or at is None else at + count * _WIDTHS[name[-1]]
            )
            self.registers["%rcx"] = 0
        elif name in ("vzeroupper", "nop", "endbr64") or not operands:
            return
        else:
            self._arithmetic(one, width)

    def _arithmetic(self, one: Instruction, width: int) -> None:
        kind = next((kind for kind in _ARITHMETIC if one.name.startswith(kind)), None)
        target = one.operands[-1]
        if kind is None:
            self.put(target, None)
            self.flags = None
            return
        values = [self.value(operand, width) for operand in one.operands]
        if len(values) == 1:
            values.insert(0, 1)  # inc, dec, neg, not, and shifts by one
        if kind == "xor" and one.operands[0] == target:
            values = [0, 0]
        if any(value is None for value in values):
            self.flags = None
            if kind not in ("cmp", "test"):
                self.put(target, None, width)
            return
        source, before = values[0] or 0, values[-1] or 0
        if kind == "imul" and len(one.operands) == 3:
            before = values[1] or 0
        result = _ARITHMETIC[kind](before, source, width)
        if kind in ("cmp", "sub", "dec"):
            self.flags = (before & _mask(width), source & _mask(width), width)
        elif kind in ("neg", "imul"):
            self.flags = None
        elif kind != "not":
            self.flags = (result & _mask(width), 0, width)
        if kind not in ("cmp", "test"):
            self.put(target, result, width)


_ARITHMETIC = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "cmp": lambda a, b, w: a - b,
    "test": lambda a, b, w: a & b,
    "and": lambda a, b, w: a & b,
    "xor": lambda a, b, w: a ^ b,
    "or": lambda a, b, w: a | b,
    "inc": lambda a, b, w: a + 1,
    "dec": lambda a, b, w: a - 1,
    "neg": lambda a, b, w: -a,
    "not": lambda a, b, w: ~a,
    "imul": lambda a, b, w: a * b,
    "sal": lambda a, b, w: a << b,
    "shl": lambda a, b, w: a << b,
    "shr": lambda a, b, w: (a & _mask(w)) >> b,
    "sar": lambda a, b, w: _signed(a, w) >> b,
}
_CONDITIONS = {
    "e": lambda a, b, s, t: a == b,
    "z": lambda a, b, s, t: a == b,
    "ne": lambda a, b, s, t: a != b,
    "nz": lambda a, b, s, t: a != b,
    "b": lambda a, b, s, t: a < b,
    "c": lambda a, b, s, t: a < b,
    "nb": lambda a, b, s, t: a >= b,
    "nc": lambda a, b, s, t: a >= b,
    "ae": lambda a, b, s, t: a >= b,
    "be": lambda a, b, s, t: a <= b,
    "a": lambda a, b, s, t: a > b,
    "l": lambda a, b, s, t: s < t,
    "ge": lambda a, b, s, t: s >= t,
    "le": lambda a, b, s, t: s <= t,
    "g": lambda a, b, s, t: s > t,
    "s": lambda a, b, s, t: s - t < 0,
    "ns": lambda a, b, s, t: s - t >= 0,
}


def _holds(condition: str, flags: tuple[int, int, int] | None) -> bool | None:
    """Return whether a condition holds after a comparison of two numbers of some width."""
    # the name of cmovel ends with its width
    test = _CONDITIONS.get(condition) or _CONDITIONS.get(condition[:-1])
    if flags is None or test is None:
        return None
    a, b, width = flags
    return test(a, b, _signed(a, width), _signed(b, width))


def _mask(width: int) -> int:
    return (1 << 8 * width) - 1


def _signed(value: int, width: int) -> int:
    value &= _mask(width)
    return value - (1 << 8 * width) if value >> (8 * width - 1) else value


def _width(one: Instruction) -> int:
    """Return the number of bytes that an integer instruction works on."""
    for operand in reversed(one.operands):
        if operand in REGISTERS:
            return REGISTERS[operand][1]
    return _WIDTHS.get(one.name[-1], 8)


def walked(
    code: Assembly, function: str, integers: Sequence[int | None], rounds: int = 1
) -> Walker:
    """Walk through a call of a function.

    Args:
        code: with all functions that it calls.
        function: its name.
        integers: arguments; None is a separate array.
        rounds: of loops that end on numbers.

    Raises:
        Lost: the walk does not end.
    """
    walker = Walker(code=code, rounds=max(rounds, 1), place=code.labels[function])
    walker.registers["%rsp"] = STACK
    walker.memory[STACK] = -1
    given = [DATA + k * APART if value is None else value for k, value in enumerate(integers)]
    for k, value in enumerate(given):
        if k < len(ARGUMENTS):
            walker.registers[ARGUMENTS[k]] = value
        else:
            walker.memory[STACK + 8 * (k - len(ARGUMENTS) + 1)] = value
    walker.run()
    return walker


def one_round(walker: Walker, rounds: int) -> list[Step]:
    """Return the middle of a walk's outermost loop: from its second round to its third.

    Args:
        walker: at its end.
        rounds: rounds of the outermost loop, at least three.

    Raises:
        Lost: there is no such loop.
    """
    head = next((step.place for step in walker.steps if walker.visits[step.place] == rounds), None)
    if head is None:
        raise Lost(f"no loop of {rounds} rounds")
    passes = [k for k, step in enumerate(walker.steps) if step.place == head]
    return walker.steps[passes[1] : passes[2]]

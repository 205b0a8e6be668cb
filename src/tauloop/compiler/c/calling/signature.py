"""How a C function is called: its name, its arrays, and what they hold."""

from __future__ import annotations

from tauloop.common.records import dataclass

#: Numbers that every function reports: least discriminant (at most 1), least pivot over its typical
#: size (1e300 without pivots), sum of what Newton's loops leave of their equations (characteristic
#: lengths or pure numbers), and most iterations of a loop.
HEALTH = 4
#: Root of the sum of squares of inputs and outputs, in SI units, from which on the first number of
#: health is -1e300, as where one of them is infinite or not a number: products of larger numbers
#: overflow.
LARGEST = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class CPort:
    """An array argument: its name in C, numbers per sample, and what they are (for headers and manifests)."""

    name: str
    size: int
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSignature:
    """How a C function is called.

    Attributes:
        name: name of the C function; `name_batch` is the kernel.
        inputs: ports in the order of the arguments.
        outputs: ports of the outputs that are wanted; `health` is added behind them.
    """

    name: str
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]

    @property
    def arguments(self) -> tuple[CPort, ...]:
        """All arrays in the order of the arguments."""
        return (*self.inputs, *self.outputs, CPort(name="health", size=HEALTH))

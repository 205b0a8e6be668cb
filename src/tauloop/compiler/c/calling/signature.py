"""Signatures of C functions: name and array arguments."""

from __future__ import annotations

from tauloop.common.records import dataclass

#: Number of diagnostics of every function: smallest discriminant (at most 1), smallest pivot
#: relative to its typical size (1e300 without pivots), sum of the final residuals of Newton's loops
#: (characteristic lengths or dimensionless), and maximum number of iterations of a loop.
HEALTH = 4
#: Limit of the Euclidean norm of inputs and outputs, in SI units. Beyond this limit the first
#: diagnostic is -1e300, as for values that are not finite, because products would overflow.
LARGEST = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class CPort:
    """An array argument: name in C, size per sample, and meaning (for headers and manifests)."""

    name: str
    size: int
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSignature:
    """Signature of a C function.

    Attributes:
        name: name of the C function; the kernel is `name_batch`.
        inputs: ports in the order of the arguments.
        outputs: ports of the requested outputs; `health` comes after them.
    """

    name: str
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]

    @property
    def arguments(self) -> tuple[CPort, ...]:
        """All arrays in the order of the arguments."""
        return (*self.inputs, *self.outputs, CPort(name="health", size=HEALTH))

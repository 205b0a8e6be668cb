"""The generated controller in Python: the same C, compiled and called sample by sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS
from tauloop.compiler.c.calling.library import Library, require_compiler
from tauloop.compiler.c.printing.parameter_check import parameter_hash
from tauloop.export.controller.equations import ControllerEquations, controller_equations
from tauloop.export.controller.options import ControllerOptions
from tauloop.export.controller.source import (
    FLAGS as SOURCE_FLAGS,
    controller_header,
    controller_source,
    memory_size,
)
from tauloop.model.model import MachineSource, modelled

#: Bits of the flags by name.
FLAGS = {name: bit for name, (bit, _) in SOURCE_FLAGS.items()}
#: First part of the names of a controller that is compiled here.
STEM = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSample(ReprMixin):
    """What one sample has made.

    Attributes:
        force: of actuators or motors (n,), N or N m.
        flags: sum of the bits of `FLAGS`.
    """

    force: np.ndarray
    flags: int

    @property
    def names(self) -> tuple[str, ...]:
        """Flags that are set."""
        return tuple(name for name, bit in FLAGS.items() if self.flags & bit)


def controller_values(equations: ControllerEquations) -> dict[str, float]:
    """All parameters of a controller by name, in the order of their hash: its own, and those of the machine."""
    names = [
        f"{channel.name}.{column}" if channel.columns != (channel.name,) else column
        for channel in equations.parameters
        for column in channel.columns
    ]
    own = dict(zip(names, equations.defaults.tolist(), strict=True))
    table = equations.model.mechanism.parameters
    return own | {f"machine.{p.name}": p.value for p in table if p.name not in equations.model.free}


class CompiledController:
    """A generated controller as machine code: the same text that is exported.

    Attributes:
        equations: its channels.
        memory: all that it keeps, numbers alone; a copy is a second controller.
    """

    def __init__(
        self,
        machine: MachineSource,
        options: ControllerOptions | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        """Compile it, or find it in the cache, and begin.

        Args:
            machine: what the controller believes in.
            options: the law and its numbers.
            folder: the cache; the user's own without it.

        Raises:
            InputError: as of `controller_equations`.
            EngineError: there is no compiler, or it fails.

        Examples:
            >>> import tauloop as tl
            >>> controller = tl.export.controller.CompiledController(tl.load("five_bar"))
            >>> at = tl.Model(tl.load("five_bar")).assembly.q
            >>> controller.begin()
            0
        """
        self.equations = controller_equations(modelled(machine), options or ControllerOptions())
        values = controller_values(self.equations)
        text = "\n".join(
            write(STEM, self.equations, values) for write in (controller_header, controller_source)
        )
        compiler = replace(require_compiler(), flags=PORTABLE_FLAGS)
        self.library = Library.made(text, compiler, folder=folder)
        self._begin = self.library.function(f"{STEM}_begin", "*n", "i")
        self._step = self.library.function(f"{STEM}_step", "***", "i")
        self._expired = self.library.function(f"{STEM}_expired", "*d", "i")
        self.hash = int(parameter_hash(values), 16)
        self.memory = np.zeros(memory_size(self.equations))
        self._force = np.zeros(self.equations.forces.size)
        self.begin()

    def begin(self, parameters: int | None = None) -> int:
        """Begin anew, with the hash of the host's parameters (its own without it); flags, 0 where all is well."""
        return int(self._begin(self.memory, self.hash if parameters is None else parameters))

    @property
    def parameters(self) -> np.ndarray:
        """Its parameters, which may be changed in place (n,)."""
        return self.memory[: len(self.equations.defaults)]

    def step(self, inputs: np.ndarray) -> ControllerSample:
        """One sample of its inputs, one channel behind the other (n,)."""
        flags = self._step(self.memory, np.ascontiguousarray(inputs, dtype=float), self._force)
        return ControllerSample(force=self._force.copy(), flags=int(flags))

    def is_expired(self, time: float) -> bool:
        """Whether the watchdog has run out at an instant, s."""
        return bool(self._expired(self.memory, time))

"""The generated controller in Python: the exported C code, compiled and called at each sample."""

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
    SAMPLE_FLAGS,
    controller_header,
    controller_source,
    memory_size,
)
from tauloop.model.model import MachineSource, modeled

#: Bits of the flags by name.
FLAGS = {name: bit for name, (bit, _) in SAMPLE_FLAGS.items()}
#: First part of the C names of a controller that is compiled for Python.
STEM = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSample(ReprMixin):
    """Forces and flags of one sample.

    Attributes:
        force: forces of actuators or torques of motors (n,), N or N m.
        flags: bitwise OR of the `FLAGS` that are set.
    """

    force: np.ndarray
    flags: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the flags that are set."""
        return tuple(name for name, bit in FLAGS.items() if self.flags & bit)


def controller_values(equations: ControllerEquations) -> dict[str, float]:
    """Return all parameters by name, in the order in which they are hashed.

    The parameters of the controller come first, then those of the machine.
    """
    names = [
        f"{channel.name}.{column}" if channel.columns != (channel.name,) else column
        for channel in equations.parameters
        for column in channel.columns
    ]
    controller_parameters = dict(zip(names, equations.defaults.tolist(), strict=True))
    table = equations.model.mechanism.parameters
    free = equations.model.free
    machine_parameters = {f"machine.{p.name}": p.value for p in table if p.name not in free}
    return controller_parameters | machine_parameters


class CompiledController:
    """A generated controller as machine code, compiled from the exported text.

    Attributes:
        equations: channels and routines.
        memory: complete state of the controller; a copy is a second, independent controller.
    """

    def __init__(
        self,
        machine: MachineSource,
        options: ControllerOptions | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        """Compile the controller, or load it from the cache, and start it.

        Args:
            machine: the controller's model of the machine.
            options: the law, its gains and its reactions to faults.
            folder: folder of the cache; default: the user's cache.

        Raises:
            InputError: see `controller_equations`.
            EngineError: no C compiler was found, or it fails.

        Examples:
            >>> import tauloop as tl
            >>> controller = tl.export.controller.CompiledController(tl.load("five_bar"))
            >>> controller.begin()
            0
        """
        self.equations = controller_equations(modeled(machine), options or ControllerOptions())
        values = controller_values(self.equations)
        text = "\n".join(
            write(STEM, self.equations, values) for write in (controller_header, controller_source)
        )
        compiler = replace(require_compiler(), flags=PORTABLE_FLAGS)
        self.library = Library.create(text, compiler, folder=folder)
        self._begin = self.library.function(f"{STEM}_begin", "*n", "i")
        self._step = self.library.function(f"{STEM}_step", "***", "i")
        self._expired = self.library.function(f"{STEM}_expired", "*d", "i")
        self.hash = int(parameter_hash(values), 16)
        self.memory = np.zeros(memory_size(self.equations))
        self._force = np.zeros(self.equations.forces.size)
        self.begin()

    def begin(self, host_hash: int | None = None) -> int:
        """Restart the controller and return the flags; 0 if the parameters are accepted.

        Args:
            host_hash: hash of the host's parameters; default: the hash of this controller.
        """
        return int(self._begin(self.memory, self.hash if host_hash is None else host_hash))

    @property
    def parameters(self) -> np.ndarray:
        """Return the parameters (n,), which may be changed in place."""
        return self.memory[: len(self.equations.defaults)]

    def step(self, inputs: np.ndarray) -> ControllerSample:
        """Return forces and flags of one sample; the inputs (n,) are all channels concatenated."""
        flags = self._step(self.memory, np.ascontiguousarray(inputs, dtype=float), self._force)
        return ControllerSample(force=self._force.copy(), flags=int(flags))

    def is_expired(self, time: float) -> bool:
        """Return whether the watchdog has expired at a time, s."""
        return bool(self._expired(self.memory, time))

"""FMUs in FMPy: one set of calls for instances of both versions of the standard, with what they log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from extras import extra

fmpy = extra("fmpy")


class Instance:
    """An instance of an FMU.

    Attributes:
        log: what it said.
        fmu: FMPy's own.
    """

    def __init__(
        self,
        path: Path | str,
        kind: str = "CoSimulation",
        folder: str | None = None,
        **options: Any,
    ) -> None:
        """Unpack and instantiate; `folder` is that of an instance that is there already."""
        self.log: list[str] = []
        self.description = fmpy.read_model_description(str(path))
        self.folder = folder or fmpy.extract(str(path), tempfile.mkdtemp(prefix="fmu-"))
        self.is_third = self.description.fmiVersion.startswith("3")
        self.refs = {
            variable.name: variable.valueReference for variable in self.description.modelVariables
        }
        # the second version hands the instance's name over too
        place = 3 if self.is_third else 4

        def note(*arguments: Any) -> None:
            self.log.append(arguments[place].decode())

        self.fmu = fmpy.simulation.instantiate_fmu(
            self.folder, self.description, kind, logger=note, **options
        )

    def begin(
        self,
        values: dict[str, float] | None = None,
        *,
        time: float = 0.0,
        tolerance: float | None = None,
    ) -> None:
        """Through initialisation, with some values set before it."""
        if self.is_third:
            self.fmu.enterInitializationMode(startTime=time, tolerance=tolerance)
        else:
            self.fmu.setupExperiment(startTime=time, tolerance=tolerance)
            self.fmu.enterInitializationMode()
        self.set(values or {})
        self.fmu.exitInitializationMode()

    def set(self, values: dict[str, float]) -> None:
        """Set values by name."""
        call = self.fmu.setFloat64 if self.is_third else self.fmu.setReal
        call([self.refs[name] for name in values], list(values.values()))

    def get(self, names: list[str]) -> np.ndarray:
        """Values by name."""
        call = self.fmu.getFloat64 if self.is_third else self.fmu.getReal
        return np.array(call([self.refs[name] for name in names]))

    def step(self, time: float, length: float) -> Any:
        """A step of co-simulation."""
        return self.fmu.doStep(time, length)

    def update(self) -> tuple[Any, ...]:
        """Discrete states in event mode."""
        return tuple(
            self.fmu.updateDiscreteStates() if self.is_third else self.fmu.newDiscreteStates()
        )

    def states(self) -> Any:
        """The state of the instance."""
        return self.fmu.getFMUState() if self.is_third else self.fmu.getFMUstate()

    def go_back(self, state: Any) -> None:
        """To a state."""
        (self.fmu.setFMUState if self.is_third else self.fmu.setFMUstate)(state)

    def bytes_of(self, state: Any) -> Any:
        """A state as bytes."""
        return (
            self.fmu.serializeFMUState(state)
            if self.is_third
            else self.fmu.serializeFMUstate(state)
        )

    def state_of(self, content: Any) -> Any:
        """A state from bytes."""
        return (
            self.fmu.deserializeFMUState(content)
            if self.is_third
            else self.fmu.deSerializeFMUstate(content)
        )

    def free(self) -> None:
        """End it."""
        self.fmu.freeInstance()

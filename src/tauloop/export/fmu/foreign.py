"""A third-party FMU, run by FMPy: its variables and its co-simulation steps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from tauloop.common.errors import EngineError, InputError, Problems
from tauloop.common.files import temporary_folder, unreadable
from tauloop.common.records import dataclass
from tauloop.export.fmu.unpacking import require_unpackable
from tauloop.mechanism.description.units import Dimension, quantity
from tauloop.mechanism.suggestions import unknown_names

#: Types of variables that can be connected to motions and forces, in versions 2 and 3.
_REAL_TYPES = ("Real", "Float64")
#: Number of the FMU's last log messages in an error.
_LOG_MESSAGES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignVariable:
    """A variable of a third-party FMU.

    Attributes:
        name, reference, causality: name, value reference and causality in modelDescription.xml.
        kind: type such as "Float64", with the shape of an array.
        dimension: dimension of the unit; None without a unit, or with A, K, mol or cd in the unit,
            which no motion or force has.
        factor, offset: SI value = factor * value + offset.
        unit: declared unit; "" if the FMU declares none.
    """

    name: str
    reference: int
    causality: str
    kind: str
    dimension: Dimension | None
    factor: float
    offset: float
    unit: str

    @property
    def is_number(self) -> bool:
        """True for a floating-point scalar, which can be connected to motions and forces."""
        return self.kind in _REAL_TYPES


@dataclass(eq=False)
class ForeignFmu:
    """An FMU, unpacked into a temporary folder inside a ``with`` statement, with one instance.

    Attributes:
        path: path of the FMU.
        limit: largest unpacked size, bytes; None for the limits of `require_unpackable`.
        sha256: hash of the file.
        variables: variables by name.
    """

    path: Path
    limit: float | None = None
    sha256: str = ""
    variables: Mapping[str, ForeignVariable] = field(default_factory=dict)
    _description: Any = None
    _folder: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)
    _instance: Any = None
    _log: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Read and unpack the FMU.

        Raises:
            EngineError: FMPy is not installed.
            InputError: the file is not an FMU of version 2 or 3 for co-simulation on this platform,
                or it is too large to unpack; all errors are reported together.
        """
        if find_spec("fmpy") is None:
            raise EngineError.of(
                "FMPy", "is not installed; it runs third-party FMUs", "pip install 'tauloop[fmu]'"
            )
        fmpy, name = import_module("fmpy"), str(self.path)
        if problem := unreadable(self.path):
            raise InputError.of("fmu", *problem, file=name)
        try:
            return self._open(fmpy, name)
        except InputError:
            self._stack.close()
            raise
        except Exception as error:  # a damaged archive or its XML can raise any exception
            self._stack.close()
            raise InputError.of(
                "fmu", f"not a readable FMU: {error}", "check the file", file=name
            ) from error

    def _open(self, fmpy: Any, name: str) -> Self:
        """Read the description, check it, and unpack the FMU."""
        require_unpackable(self.path, self.limit)
        self.sha256 = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self._description = fmpy.read_model_description(name, validate=False)
        platforms = fmpy.supported_platforms(name)
        version = str(self._description.fmiVersion)
        problems = Problems()
        if version[:1] not in "23":
            problems.add("fmu", f"is for FMI {version}", "export it for FMI 2 or FMI 3", file=name)
        if self._description.coSimulation is None:
            problems.add(
                "fmu",
                "does not support co-simulation",
                "export it for co-simulation, with its solver",
                file=name,
            )
        if fmpy.platform not in platforms:
            available = ", ".join(platforms) or "no platform"
            message = f"has no library for {fmpy.platform}, only for {available}"
            remedy = (
                "compile one with `python -m fmpy compile`"
                if "c-code" in platforms
                else "export it for this platform"
            )
            problems.add("fmu", message, remedy, file=name)
        InputError.raise_if_any(problems)
        self.variables = {
            v.name: _variable(v, self._description) for v in self._description.modelVariables
        }
        self._folder = str(self._stack.enter_context(temporary_folder()))
        self._stack.callback(self.end)
        fmpy.extract(name, self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        """End the instance and remove the folder."""
        self._stack.close()

    def starts(self, values: Mapping[str, str | float]) -> dict[str, object]:
        """Return start values by name in the FMU's units, from numbers or from texts with units.

        Raises:
            InputError: names are unknown or units do not fit; all errors are reported together.
        """
        problems = Problems(
            unknown_names(values, self.variables, "the FMU has no variable {!r}", "fmu_start")
        )
        starts: dict[str, object] = {}
        for name in values.keys() & self.variables.keys():
            variable, value = self.variables[name], values[name]
            starts[name] = value
            if variable.is_number and isinstance(value, str):
                with problems.collecting(InputError):
                    starts[name] = _in_fmu_unit(variable, value)
        InputError.raise_if_any(problems)
        return starts

    def begin(self, time: float, starts: Mapping[str, object], inputs: Mapping[int, float]) -> None:
        """Create an instance at a time (s), with start values and first inputs in the FMU's units.

        Args:
            time: start time, s.
            starts: start values by name.
            inputs: first inputs by value reference.

        Raises:
            EngineError: the FMU cannot be instantiated; the message contains its log.
        """
        self.end()
        self._log.clear()
        is_third = str(self._description.fmiVersion).startswith("3")
        message_argument = 3 if is_third else 4

        def note(*arguments: Any) -> None:
            self._log.append(arguments[message_argument].decode(errors="replace"))

        simulation = import_module("fmpy.simulation")
        with self._with_log(f"{time:g} s"):
            instance = simulation.instantiate_fmu(
                self._folder, self._description, "CoSimulation", logger=note
            )
            self._instance = instance
            if not is_third:
                instance.setupExperiment(startTime=time)
            simulation.apply_start_values(instance, self._description, dict(starts))
            if is_third:
                instance.enterInitializationMode(startTime=time)
            else:
                instance.enterInitializationMode()
            self._set(inputs)
            instance.exitInitializationMode()

    def step(
        self, time: float, length: float, inputs: Mapping[int, float], outputs: Sequence[int]
    ) -> np.ndarray:
        """Make a step with constant inputs and return the outputs (n,) at its end, in FMU units.

        Args:
            time: start of the step, s.
            length: length of the step, s.
            inputs: inputs by value reference.
            outputs: value references of the outputs.

        Raises:
            EngineError: the FMU fails, ends the simulation, or returns a value that is not finite.
        """
        with self._with_log(f"{time:.6g} s"):
            self._set(inputs)
            step_flags = self._instance.doStep(time, length)
            get = getattr(self._instance, "getFloat64", None) or self._instance.getReal
            values = np.array(get(list(outputs)), dtype=float)
        where = f"{self.path.name} at {time + length:.6g} s"
        # In version 3, the second flag requests to terminate the simulation.
        if step_flags is not None and step_flags[1]:
            raise EngineError.of(
                where,
                "requests the end of the simulation",
                "end the run earlier or change its motion",
            )
        if not np.isfinite(values).all():
            raise EngineError.of(
                where, "returns a value that is not finite", "use shorter steps, or check the FMU"
            )
        return values

    def end(self) -> None:
        """End the instance, if there is one."""
        instance, self._instance = self._instance, None
        if instance is not None:
            with suppress(Exception):  # the instance may already have failed
                instance.terminate()
            instance.freeInstance()

    def _set(self, inputs: Mapping[int, float]) -> None:
        if inputs:
            call = getattr(self._instance, "setFloat64", None) or self._instance.setReal
            call(list(inputs), list(inputs.values()))

    def _with_log(self, when: str) -> _WithLog:
        return _WithLog(self, when)


@dataclass(eq=False)
class _WithLog:
    """A context that converts exceptions to an `EngineError` with the FMU's log."""

    fmu: ForeignFmu
    when: str

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """Raise an error with the message and the FMU's last log messages."""
        if isinstance(error, Exception):
            messages = "; ".join([str(error).rstrip("."), *self.fmu._log[-_LOG_MESSAGES:]])
            where = f"{self.fmu.path.name} at {self.when}"
            remedy = "use a shorter coupling step or other start values (--fmu-start), or ask the "
            remedy += "author of the FMU"
            raise EngineError.of(where, messages, remedy) from error


def _variable(variable: Any, description: Any) -> ForeignVariable:
    """Return a variable from its description by FMPy."""
    unit = (
        variable.unit
        or (variable.declaredType.unit if variable.declaredType is not None else None)
        or ""
    )
    definitions = {definition.name: definition for definition in description.unitDefinitions}
    base = definitions[unit].baseUnit if unit in definitions else None
    dimension = None
    if base is not None and not any((base.A, base.K, base.mol, base.cd)):
        dimension = Dimension(
            mass=Fraction(int(base.kg)),
            length=Fraction(int(base.m)),
            time=Fraction(int(base.s)),
            angle=Fraction(int(base.rad)),
        )
    return ForeignVariable(
        name=variable.name,
        reference=int(variable.valueReference),
        causality=variable.causality or "local",
        kind=f"{variable.type}{list(variable.shape)}" if variable.shape else variable.type,
        dimension=dimension,
        factor=1.0 if base is None else float(base.factor),
        offset=0.0 if base is None else float(base.offset),
        unit=unit,
    )


def _in_fmu_unit(variable: ForeignVariable, text: str) -> float:
    """Return a number in the FMU's unit from a text: a number, or a quantity with its unit."""
    try:
        return float(text)
    except ValueError:
        pass
    where = f"fmu_start {variable.name}"
    if variable.dimension is None:
        declared = f"the unit {variable.unit}" if variable.unit else "no unit"
        message = f"{text!r} has a unit, but the FMU declares {declared}"
        raise InputError.of(
            where, message, "give a number without a unit, in the unit that the FMU expects"
        )
    return (quantity(where, text, variable.dimension) - variable.offset) / variable.factor

"""An FMU that somebody else made, opened in FMPy: its variables, and its steps of co-simulation in SI units."""

from __future__ import annotations

import hashlib
import tempfile
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
from tauloop.common.files import unreadable
from tauloop.common.records import dataclass
from tauloop.export.fmu.unpacking import require_unpackable
from tauloop.mechanism.description.quantities import quantity
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.suggestions import unknown_names

#: Types of variables that motions and forces may be connected with, in versions 2 and 3.
_NUMBERS = ("Real", "Float64")
#: Most of what an FMU logged that an error tells.
_LAST_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignVariable:
    """A variable of an FMU.

    Attributes:
        name, reference, causality: as modelDescription.xml has them.
        kind: its type, such as "Float64"; with its shape, where it is an array.
        dimension: of its unit; None where it declares none, or one that no machine has (A, K, mol,
            cd).
        factor, offset: SI value = factor value + offset.
        unit: as it is declared; "" without one.
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
        """Whether motions and forces may be connected with it."""
        return self.kind in _NUMBERS


@dataclass(eq=False)
class ForeignFmu:
    """An FMU unpacked into a folder of its own, until the ``with`` statement ends; one instance of it lives at a time.

    Attributes:
        path: the file.
        limit: bytes that it may unpack to; None for those of `require_unpackable`.
        sha256: of its bytes.
        variables: by name.
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
        """Read and unpack.

        Raises:
            EngineError: FMPy is not installed.
            InputError: no FMU of version 2 or 3 for co-simulation on this platform, or one that
                must not be unpacked; all that is wrong at once.
        """
        if find_spec("fmpy") is None:
            raise EngineError.of(
                "FMPy", "is not installed; FMUs of others run in it", "pip install tauloop[fmu]"
            )
        fmpy, name = import_module("fmpy"), str(self.path)
        if problem := unreadable(self.path):
            raise InputError.of("fmu", *problem, file=name)
        try:
            return self._opened(fmpy, name)
        except InputError:
            self._stack.close()
            raise
        except Exception as error:  # whatever a damaged archive or its XML raises
            self._stack.close()
            raise InputError.of(
                "fmu", f"is no FMU that can be read: {error}", "check the file", file=name
            ) from error

    def _opened(self, fmpy: Any, name: str) -> Self:
        """Unpacked."""
        require_unpackable(self.path, self.limit)
        self.sha256 = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self._description = fmpy.read_model_description(name, validate=False)
        platforms = fmpy.supported_platforms(name)
        version, problems = str(self._description.fmiVersion), Problems()
        if version[:1] not in "23":
            problems.add("fmu", f"is of FMI {version}", "export it for version 2 or 3", file=name)
        if self._description.coSimulation is None:
            problems.add(
                "fmu",
                "has no co-simulation",
                "export it for that, with its solver inside",
                file=name,
            )
        if fmpy.platform not in platforms:
            what = f"has no library for {fmpy.platform}, but for {', '.join(platforms) or 'no platform'}"
            remedy = (
                "`python -m fmpy compile` makes one"
                if "c-code" in platforms
                else "export it for this platform"
            )
            problems.add("fmu", what, remedy, file=name)
        InputError.raise_if_any(problems)
        self.variables = {
            v.name: _variable(v, self._description) for v in self._description.modelVariables
        }
        self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tauloop-fmu-"))
        self._stack.callback(self.end)
        fmpy.extract(name, self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        """End the instance and remove the folder."""
        self._stack.close()

    def starts(self, values: Mapping[str, str | float]) -> dict[str, object]:
        """Starts by name in the FMU's own units, from numbers in these or texts with units.

        Raises:
            InputError: unknown names, and units that do not fit; all at once.
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
                    starts[name] = _in_own_unit(variable, value)
        InputError.raise_if_any(problems)
        return starts

    def begin(self, time: float, starts: Mapping[str, object], inputs: Mapping[int, float]) -> None:
        """A new instance at a time (s), with starts and first inputs (by reference) in the FMU's own units.

        Raises:
            EngineError: it cannot be made; with what it logged.
        """
        self.end()
        self._log.clear()
        is_third = str(self._description.fmiVersion).startswith("3")
        place = 3 if is_third else 4

        def note(*arguments: Any) -> None:
            self._log.append(arguments[place].decode(errors="replace"))

        simulation = import_module("fmpy.simulation")
        with self._said(f"{time:g} s"):
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
        """Inputs (by reference) held over a step (s), and outputs (n,) at its end, in the FMU's own units.

        Raises:
            EngineError: it fails, ends, or gives what is no number.
        """
        with self._said(f"{time:.6g} s"):
            self._set(inputs)
            done = self._instance.doStep(time, length)
            get = getattr(self._instance, "getFloat64", None) or self._instance.getReal
            values = np.array(get(list(outputs)), dtype=float)
        where = f"{self.path.name} at {time + length:.6g} s"
        if done is not None and done[1]:
            raise EngineError.of(
                where, "asks to end the simulation", "end it before, or change what leads there"
            )
        if not np.isfinite(values).all():
            raise EngineError.of(
                where, "gives what is no finite number", "take shorter steps, or look into the FMU"
            )
        return values

    def end(self) -> None:
        """End the instance, if there is one."""
        instance, self._instance = self._instance, None
        if instance is not None:
            with suppress(Exception):  # it may be in error already
                instance.terminate()
            instance.freeInstance()

    def _set(self, inputs: Mapping[int, float]) -> None:
        if inputs:
            call = getattr(self._instance, "setFloat64", None) or self._instance.setReal
            call(list(inputs), list(inputs.values()))

    def _said(self, when: str) -> _Said:
        return _Said(self, when)


@dataclass(eq=False)
class _Said:
    """Turns what a call raises into an error with what the FMU logged."""

    fmu: ForeignFmu
    when: str

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """Say it in the FMU's words."""
        if isinstance(error, Exception):
            words = "; ".join([str(error).rstrip("."), *self.fmu._log[-_LAST_WORDS:]])
            where = f"{self.fmu.path.name} at {self.when}"
            remedy = "shorter steps of coupling, other starts (--fmu-start), or whoever made it"
            raise EngineError.of(where, words, remedy) from error


def _variable(variable: Any, description: Any) -> ForeignVariable:
    """A variable as FMPy reads it."""
    unit = (
        variable.unit
        or (variable.declaredType.unit if variable.declaredType is not None else None)
        or ""
    )
    base = next((each.baseUnit for each in description.unitDefinitions if each.name == unit), None)
    dimension = None
    if base is not None and not any((base.A, base.K, base.mol, base.cd)):
        kg, m, s, rad = (
            Fraction(int(exponent)) for exponent in (base.kg, base.m, base.s, base.rad)
        )
        dimension = Dimension(mass=kg, length=m, time=s, angle=rad)
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


def _in_own_unit(variable: ForeignVariable, text: str) -> float:
    """A number from text: alone in the FMU's unit, or with a unit."""
    try:
        return float(text)
    except ValueError:
        pass
    where = f"fmu_start {variable.name}"
    if variable.dimension is None:
        what = f"{text!r}, where the FMU declares {f'the unit {variable.unit}' if variable.unit else 'no unit'}"
        raise InputError.of(where, what, "give a number alone, in what the FMU means")
    return (quantity(where, text, variable.dimension) - variable.offset) / variable.factor

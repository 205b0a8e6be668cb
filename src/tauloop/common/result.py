"""Base class of all results: status, diagnostics and provenance."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.names.deprecated import old_attribute, old_name
from tauloop.common.plain import in_json, plain as plain
from tauloop.common.records import dataclass


class Status(enum.StrEnum):
    """Whether a result is reliable; members equal their text: ``result.status == "ok"``.

    Calculations that have no result raise an error.
    """

    OK = "ok"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A number that measures the quality of a result, computed independently of the algorithm.

    Use `diagnostic` to create one.

    Attributes:
        name: name of the number.
        value: the number; None if it is not defined, for example if there is no dependent column.
        unit: unit of the number, "" if dimensionless.
        lower, upper: limits of values that pass; None for no limit.
        advice: what to do if the value is outside its limits.
    """

    name: str
    value: float | None
    unit: str = ""
    lower: float | None = None
    upper: float | None = None
    advice: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the value is within its limits or not defined."""
        if self.value is None:
            return True
        return (self.lower is None or self.value >= self.lower) and (
            self.upper is None or self.value <= self.upper
        )

    @property
    def limits(self) -> str:
        """The limits in words."""
        texts = []
        if self.lower is not None:
            texts.append(f"at least {self.lower:.3g}")
        if self.upper is not None:
            texts.append(f"at most {self.upper:.3g}")
        return ", ".join(texts)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: not defined"
        unit = f" {self.unit}" if self.unit else ""
        limits = f" (limit: {self.limits})" if self.limits else ""
        text = f"{self.name}: {self.value:.3g}{unit}{limits}"
        return text if self.is_good or not self.advice else f"{text}: {self.advice}"


def diagnostic(
    name: str,
    value: SupportsFloat | None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "",
    advice: str = "",
) -> Diagnostic:
    """Return a diagnostic with its limits and the advice for values outside them.

    Args:
        name: name of the value.
        value: the value; None if it is not defined.
        at_least, at_most: limits of values that pass; a value without limits is only reported.
        unit: unit of the value and its limits, "" if dimensionless.
        advice: what to do if the value is outside its limits.

    Examples:
        >>> print(diagnostic("loop residual", 2e-9, at_most=1e-10, unit="m", advice="close it"))
        loop residual: 2e-09 m (limit: at most 1e-10): close it
    """
    return Diagnostic(
        name=name,
        value=None if value is None else float(value),
        unit=unit,
        lower=None if at_least is None else float(at_least),
        upper=None if at_most is None else float(at_most),
        advice=advice,
    )


def status_of(diagnostics: Iterable[Diagnostic]) -> Status:
    """Return OK if every diagnostic is within its limits, otherwise DOUBTFUL."""
    return Status.OK if all(item.is_good for item in diagnostics) else Status.DOUBTFUL


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of a result, without time and computer, so that equal runs give equal files.

    Attributes:
        versions: versions of Tauloop, Python and the packages that computed the numbers.
        options: the options of the algorithm, as plain data.
        inputs: sizes, names or hashes of the inputs, as plain data.
    """

    versions: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)


@functools.cache
def _package_version(package: str) -> str:
    """Return the version of a package, or a note if it has no metadata.

    The attribute of an imported package is faster to read than the metadata of installed packages.
    """
    version = getattr(sys.modules.get(package), "__version__", None)
    if version:
        return str(version)
    # This import takes a fifth of the time of loading a compiled function from the cache.
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed as a package"


def tauloop_version() -> str:
    """Return the version of Tauloop, for generated files."""
    return _package_version("tauloop")


def provenance(
    *,
    options: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    packages: tuple[str, ...] = ("numpy", "casadi"),
) -> Provenance:
    """Return a provenance with the versions of Python, Tauloop and these packages."""
    versions = {"python": sys.version.partition(" ")[0]}
    for package in ("tauloop", *packages):
        versions[package] = _package_version(package)
    return Provenance(versions=versions, options=dict(options), inputs=dict(inputs or {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Tabular):
    """Base class of the results of all applications.

    Attributes:
        diagnostics: numbers that measure the quality of the result.
        provenance: origin of the result.
        needs_forces: whether the result depends on the forces in the machine.
    """

    needs_forces: ClassVar[bool] = True
    diagnostics: tuple[Diagnostic, ...]
    provenance: Provenance
    evidence = old_attribute("evidence", "diagnostics")

    @property
    @in_json()
    def status(self) -> Status:
        """OK if every diagnostic is within its limits, otherwise DOUBTFUL."""
        return status_of(self.diagnostics)

    def variables(self) -> Iterable[Variable]:
        """Return the quantities of the fields (see `Tabular`); without any, the diagnostics."""
        return tuple(Tabular.variables(self)) or rows(
            "diagnostic",
            [item.name for item in self.diagnostics],
            [item.unit for item in self.diagnostics],
            value=[item.value for item in self.diagnostics],
            lower=[item.lower for item in self.diagnostics],
            upper=[item.upper for item in self.diagnostics],
        )

    def write_json(self, path: str | Path) -> Path:
        """Write `as_dict` as JSON to a temporary file, which is then renamed.

        Returns:
            The path.

        Raises:
            InputError: the folder does not exist or is not writable.
        """
        return write_json(path, self.as_dict())

    @property
    @in_json()
    def advice(self) -> tuple[str, ...]:
        """A line for each diagnostic outside its limits, with the value and the advice."""
        return tuple(str(item) for item in self.diagnostics if not item.is_good)


def write_json(path: str | Path, data: Mapping[str, Any]) -> Path:
    """Write a result or plain data as JSON, atomically (see `files.write_file`).

    Returns:
        The path.

    Raises:
        InputError: the folder does not exist or is not writable.
        ValueError: a number is not finite.
    """
    # Imported late, because most results are not written to files.
    import json

    from tauloop.common.files import write_text

    text = json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return write_text(path, text)


def content(value: Any) -> str:
    """Return the complete content of plain objects as a text for a hash; `repr` may abbreviate it.

    Raises:
        ValueError: an object has an unsupported type.
    """
    if is_dataclass(value) and not isinstance(value, type):
        field_texts = [
            f"{item.name}={content(getattr(value, item.name))}" for item in fields(value)
        ]
        return f"{type(value).__qualname__}({','.join(field_texts)})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if hasattr(value, "tolist"):  # An array, recognized without an import of NumPy.
        return f"array{value.tolist()!r}"
    if isinstance(value, Mapping):
        entries = [f"{content(key)}:{content(item)}" for key, item in value.items()]
        return f"{{{','.join(entries)}}}"
    if isinstance(value, tuple | list):
        return f"[{','.join(map(content, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(map(content, value)))}}}"
    if value is None or isinstance(value, str | int | float | Fraction | Path):
        return f"{type(value).__name__}:{value!r}"
    raise ValueError(f"no content of {type(value).__name__}")


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)

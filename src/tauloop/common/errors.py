"""Errors of Tauloop, which list problems with their location, cause and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Self

from tauloop.common.execution.blas import one_blas_thread
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass

#: Maximum number of characters of the texts of a problem.
MAX_TEXT_LENGTHS = {"where": 400, "what": 2000, "remedy": 2000, "file": 4400}
#: End of a text that was cut.
ELLIPSIS = " ..."
#: Packages of the extra `analysis`, which many modules import: import name and name in messages.
#: Lazy names, workflows and commands report a missing package, so modules can import them directly.
_ANALYSIS_PACKAGES = {
    "matplotlib": "Matplotlib",
    "pandas": "pandas",
    "scipy": "SciPy",
    "xarray": "xarray",
}


@dataclass(frozen=True, slots=True)
class Problem(PlainData):
    """A problem of an input.

    Attributes:
        where: key path, column or argument, such as ``legs[0].rods.forearm.length``.
        what: what is wrong, with the value that shows it.
        remedy: what to do about it.
        file: name of the file, if the input comes from a file.
        line: line in that file, counted from 1.

    Examples:
        >>> import tauloop as tl
        >>> print(tl.Problem(where="arm_length", what="is -0.3 m", remedy="give a positive length"))
        arm_length: is -0.3 m
            remedy: give a positive length
    """

    where: str
    what: str
    remedy: str = ""
    file: str = field(default="", kw_only=True)
    line: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Cut long texts, because messages quote input, and malicious files may have long texts."""
        for name, limit in MAX_TEXT_LENGTHS.items():
            text = getattr(self, name)
            if len(text) > limit:
                object.__setattr__(self, name, f"{text[: limit - len(ELLIPSIS)]}{ELLIPSIS}")

    def __str__(self) -> str:
        source = self.file + (f", line {self.line}" if self.line is not None else "")
        text = f"{self.where}: {self.what}" if self.where else self.what
        if source:
            text += f" ({source})"
        return text + (f"\n    remedy: {self.remedy}" if self.remedy else "")


class TauloopError(Exception):
    """Base class of all errors that Tauloop raises intentionally; an error lists all problems.

    Attributes:
        problems: all problems, each with its location and remedy.

    Examples:
        >>> import tauloop as tl
        >>> try:
        ...     tl.load("delt")
        ... except tl.TauloopError as error:
        ...     print(error.problems[0].remedy)
        did you mean delta? For a file, write ./delt
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        """Store the problems; the message lists all of them."""
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(
        cls, where: str, what: str, remedy: str = "", *, file: str = "", line: int | None = None
    ) -> Self:
        """Return the error of a single problem; the arguments are those of `Problem`."""
        return cls(Problem(where, what, remedy, file=file, line=line))

    @classmethod
    def raise_if_any(cls, problems: Iterable[Problem]) -> None:
        """Raise this error with all problems; return if there are none."""
        problems = tuple(problems)
        if problems:
            raise cls(problems)


class Problems(list[Problem]):
    """Problems of an input, which are collected so that a single error lists all of them.

    Call ``problems.add("rate", f"is {rate:g} Hz", "give a frequency above zero")`` for each
    problem, and ``InputError.raise_if_any(problems)`` at the end.
    """

    def add(
        self, where: str, what: str, remedy: str = "", *, file: str = "", line: int | None = None
    ) -> None:
        """Add a problem; the arguments are those of `Problem`."""
        self.append(Problem(where=where, what=what, remedy=remedy, file=file, line=line))

    @contextmanager
    def collecting(self, *errors: type[TauloopError]) -> Iterator[None]:
        """Collect the problems of errors of these types that are raised in the context."""
        try:
            yield
        except errors as error:
            self.extend(error.problems)


class DescriptionError(TauloopError):
    """A machine file (or an imported model) is wrong.

    Examples:
        >>> import tauloop as tl
        >>> tl.loads("name: mine")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.DescriptionError: format: this key of a machine is missing (<text>, line 1)
            remedy: add format: tauloop-machine/1
        ...
    """


class AssemblyError(TauloopError):
    """The loops of a mechanism cannot be closed, or its mobility contradicts the description.

    Examples:
        >>> import tauloop as tl
        >>> tl.Model(tl.load("four_bar").with_values({"coupler_length": 5.0}))
        Traceback (most recent call last):
            ...
        tauloop.common.errors.AssemblyError: closing_pin: the loop cannot be closed ...: it misses by 4033 mm
        (four_bar.yaml)
            remedy: check lengths and joint positions, or give a reference pose nearer to an
                assembled pose
    """


class PoseError(TauloopError):
    """A pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> tl.inverse_kinematics(tl.load("delta"), {"z": "-2 m"})
        Traceback (most recent call last):
            ...
        tauloop.common.errors.PoseError: leg1.forearm: out of reach by 1267 mm (too far away) in this pose
            remedy: move the platform position back into the workspace
        ...
    """


class InputError(TauloopError):
    """An argument of a function has the wrong name, shape, unit or value.

    Examples:
        >>> import tauloop as tl
        >>> tl.SimulationOptions(duration=-1.0)
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: duration: is -1
            remedy: give a number at least 0
    """


class LogError(TauloopError):
    """A measured log is damaged or lacks required data.

    Examples:
        >>> import tauloop as tl
        >>> tl.logs.read_log("missing.csv")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.LogError: there is no such file (missing.csv)
            remedy: check the path
    """


class IdentificationError(TauloopError):
    """The data are not sufficient for the requested identification or calibration.

    Examples:
        >>> import tauloop as tl
        >>> tl.identification.PhysicallyConsistent(weights=())
        Traceback (most recent call last):
            ...
        tauloop.common.errors.IdentificationError: PhysicallyConsistent.weights: is empty
            remedy: give at least one positive weight
    """


class EngineError(TauloopError):
    """An independent engine, or another external program, is missing or cannot be used.

    Examples:
        >>> import tauloop as tl
        >>> issubclass(tl.EngineError, tl.TauloopError)
        True
    """


def missing_extra(error: ModuleNotFoundError) -> EngineError | None:
    """Return the error for a missing package of the extra `analysis`; None for other modules."""
    name = _ANALYSIS_PACKAGES.get((error.name or "").partition(".")[0])
    if name is None:
        return None
    remedy = "pip install 'tauloop[analysis]'"
    return EngineError.of(name, "is required here but is not installed", remedy)


@contextmanager
def reports_missing_extras() -> Iterator[None]:
    """Convert the error of a missing package into an `EngineError` with the pip command.

    Use it as a context manager or as a decorator.

    Raises:
        EngineError: a package of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error


@contextmanager
def solving(error: type[TauloopError]) -> Iterator[None]:
    """Convert numerical errors of NumPy and SciPy, such as LinAlgError, into errors of Tauloop.

    Use it as a context manager or as a decorator. BLAS is limited to one thread
    (`one_blas_thread`), because the equations of a machine are small.

    Raises:
        error: a matrix is singular or contains values that are not finite; the error names the
            function that failed.
    """
    try:
        with one_blas_thread():
            yield
    except ValueError as caught:
        # The class is identified by its name, because NumPy is slow to import.
        is_singular = any(kind.__name__ == "LinAlgError" for kind in type(caught).__mro__)
        if not is_singular and not any(text in str(caught) for text in _NOT_FINITE_MESSAGES):
            raise
        function = _innermost_function(caught)
        what = f"the equations cannot be solved: {str(caught).lower()} (in {function})"
        remedy = "check units, exponents and columns of the input"
        raise error(Problem(where="numbers", what=what, remedy=remedy)) from caught


#: Parts of the messages of NumPy and SciPy about values that are not finite.
_NOT_FINITE_MESSAGES = ("infs or NaNs", "not finite")


def _innermost_function(error: BaseException) -> str:
    """Return the full name of the innermost function of Tauloop in the traceback of an error."""
    function = ""
    traceback = error.__traceback__
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("tauloop.") and module != __name__:
            function = f"{module}.{traceback.tb_frame.f_code.co_name}"
        traceback = traceback.tb_next
    return function

"""Errors of Tauloop: a problem says where it is, what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Self

from tauloop.common.blas import one_blas_thread
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass

#: Most characters of the parts of a problem, and what stands in the place of the rest.
LONGEST, CUT = {"where": 400, "what": 2000, "remedy": 2000, "file": 4400}, " ..."


@dataclass(frozen=True, slots=True)
class Problem(PlainData):
    """One thing that is wrong with an input.

    Attributes:
        where: key path, column or argument, such as ``legs[0].rods.forearm.length``.
        what: what is wrong, with the figure that shows it.
        remedy: what to do about it.
        file: name of the file, when the input came from one.
        line: line in that file, counted from one.

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
        """Cut what a hostile file would make endless; messages quote what they are about."""
        for name, most in LONGEST.items():
            text = getattr(self, name)
            if len(text) > most:
                object.__setattr__(self, name, f"{text[: most - len(CUT)]}{CUT}")

    def __str__(self) -> str:
        place = self.file + (f", line {self.line}" if self.line is not None else "")
        text = f"{self.where}: {self.what}" if self.where else self.what
        if place:
            text += f" ({place})"
        return text + (f"\n    remedy: {self.remedy}" if self.remedy else "")


class TauloopError(Exception):
    """Base of every error that Tauloop raises on purpose; carries all problems found at once.

    Examples:
        >>> import tauloop as tl
        >>> try:
        ...     tl.load("delt")
        ... except tl.TauloopError as error:
        ...     print(error.problems[0].remedy)
        did you mean delta?; a file of this name is written ./delt
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        """Keep the problems; the message lists them all."""
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(
        cls, where: str, what: str, remedy: str = "", *, file: str = "", line: int | None = None
    ) -> Self:
        """The error of one problem; the arguments are those of `Problem`."""
        return cls(Problem(where, what, remedy, file=file, line=line))

    @classmethod
    def raise_if_any(cls, problems: Iterable[Problem]) -> None:
        """Raise this error with all problems; do nothing where there are none."""
        problems = tuple(problems)
        if problems:
            raise cls(problems)


class Problems(list[Problem]):
    """Problems of one input, gathered so that all of them are raised at once.

    ``problems.add("rate", f"is {rate:g} Hz", "give a frequency above zero")`` for each, and at the
    end ``InputError.raise_if_any(problems)``.
    """

    def add(
        self, where: str, what: str, remedy: str = "", *, file: str = "", line: int | None = None
    ) -> None:
        """Note one; the arguments are those of `Problem`."""
        self.append(Problem(where=where, what=what, remedy=remedy, file=file, line=line))

    @contextmanager
    def collecting(self, *errors: type[TauloopError]) -> Iterator[None]:
        """Take up the problems of errors of these types that are raised inside, and go on behind."""
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
            remedy: add format: format and version
        ...
    """


class AssemblyError(TauloopError):
    """The loops of a mechanism cannot be closed, or its mobility is not what the description needs.

    Examples:
        >>> import tauloop as tl
        >>> tl.Model(tl.load("four_bar").with_values({"coupler_length": 5.0}))
        Traceback (most recent call last):
            ...
        tauloop.common.errors.AssemblyError: closing_pin: the loop cannot be closed ...: it misses by 3773 mm
        (four_bar.yaml)
            remedy: check lengths and joint positions, or give a reference pose nearer to an assembled one
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
    """Numbers given to a function have the wrong name, shape, unit or value.

    Examples:
        >>> import tauloop as tl
        >>> tl.SimulationOptions(duration=-1.0)
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: duration: is -1
            remedy: give a number at least 0
    """


class LogError(TauloopError):
    """A measured log is damaged or lacks what is asked of it.

    Examples:
        >>> import tauloop as tl
        >>> tl.logs.read_log("missing.csv")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.LogError: there is no such file (missing.csv)
            remedy: check the path
    """


class IdentificationError(TauloopError):
    """The data cannot support the identification that is asked of them.

    Examples:
        >>> import tauloop as tl
        >>> tl.identification.PhysicallyConsistent(weights=())
        Traceback (most recent call last):
            ...
        tauloop.common.errors.IdentificationError: PhysicallyConsistent.weights: are none
            remedy: give at least one, above zero
    """


class EngineError(TauloopError):
    """An independent engine is missing or cannot represent the mechanism.

    Examples:
        >>> import tauloop as tl
        >>> issubclass(tl.EngineError, tl.TauloopError)
        True
    """


@contextmanager
def solving(error: type[TauloopError]) -> Iterator[None]:
    """Name what NumPy and SciPy cannot solve; a decorator of functions that solve linear equations, or a context.

    BLAS has one thread meanwhile (`one_blas_thread`): the equations of a machine are small.

    Raises:
        error: a matrix is singular, or numbers in it are not finite: what, and where in the code.
    """
    try:
        with one_blas_thread():
            yield
    except ValueError as caught:
        # NumPy is slow to import
        is_singular = any(kind.__name__ == "LinAlgError" for kind in type(caught).__mro__)
        if not is_singular and not any(text in str(caught) for text in _NOT_FINITE):
            raise
        what = f"the equations cannot be solved: {str(caught).lower()} (in {_own_place(caught)})"
        remedy = "check units, exponents and columns of what is given"
        raise error(Problem(where="numbers", what=what, remedy=remedy)) from caught


#: What NumPy and SciPy say of numbers that are not finite.
_NOT_FINITE = ("infs or NaNs", "not finite")


def _own_place(error: BaseException) -> str:
    """The innermost function of Tauloop that an error came through."""
    place, step = "", error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("tauloop.") and module != __name__:
            place = f"{module}.{step.tb_frame.f_code.co_name}"
        step = step.tb_next
    return place

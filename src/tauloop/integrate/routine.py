"""Routines: right-hand sides and samples as lists of calls, which C and, without a compiler, Python run alike.

A routine's arrays have names. Those of every routine are the state `y`, its `rate` and `guards`,
the modes `s`, the coordinates `start` from which Newton's method goes on, the inputs `in` of a
sample, what acts (`held`), what the last sample has found (`z`), and constants `p`; others are its
own. A place is an array with, maybe, an offset, as C writes it: ``y``, ``y + 6``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import c_function
from tauloop.compiler.c.calling.signature import HEALTH
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.source import CFunction, c_source, number
from tauloop.compiler.derivatives.tangents import moved
from tauloop.compiler.program import Program
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT, solve_diagnostics
from tauloop.equations.values import BatchFunction

#: Arrays by name, as a routine in Python sees them.
Arrays = dict[str, np.ndarray]
#: Function of Python within a sample: (time, what it sees, what it changes in place).
Own = Callable[[float, np.ndarray, np.ndarray], None]


class Layout:
    """Parts of an array by name, one behind the other."""

    def __init__(self, array: str, sizes: Mapping[str, int]) -> None:
        """Place them.

        Args:
            array: its name.
            sizes: of the parts.
        """
        ends = np.cumsum([0, *sizes.values()])
        self._array, self.size = array, int(ends[-1])
        self.slices = {name: slice(int(ends[i]), int(ends[i + 1])) for i, name in enumerate(sizes)}

    def place(self, name: str, array: str = "") -> str:
        """Where a part begins, in this array or in another one that is laid out alike."""
        return f"{array or self._array} + {self.slices[name].start}"

    def parts(self, x: ca.SX) -> dict[str, ca.SX]:
        """All parts of the whole array (n,)."""
        return {name: x[where] for name, where in self.slices.items()}

    def rows(self, n: int, values: Mapping[str, np.ndarray | float | list[float]]) -> np.ndarray:
        """Arrays (n, size) from values of parts; zero where none is given."""
        stacked = np.zeros((n, self.size))
        for name, value in values.items():
            stacked[:, self.slices[name]] = value
        return stacked


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutineCall:
    """A function and the places that it reads and writes.

    Attributes:
        function: a program's C function, straight-line code by CasADi, or none: a function of
            Python's, if there is one, which sees the second place, at the time in the first, and
            changes the output.
        inputs, outputs: places in the order of the arguments.
        further: places, with sizes, of what only the interpreter of a program reads; of a function
            of Python's all.
        brief: straight-line code, and places of its outputs, where no guards are wanted.
        is_judged: whether a program that cannot be relied on ends the routine.
        smallest_pivot: share of its typical size below which a pivot means that it cannot.
        when: place of a number that is not zero where the call is made; it always is without one.
        tangent: what comes before it for each direction of derivatives
            (`tauloop.integrate.sensitivity`).
    """

    function: CFunction | ca.Function | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    further: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    brief: tuple[ca.Function, tuple[str, ...]] | None = None
    is_judged: bool = True
    smallest_pivot: float = SMALLEST_PIVOT
    when: str = ""
    tangent: RoutineCall | None = None

    @cached_property
    def _code(self) -> BatchFunction:
        assert isinstance(self.function, ca.Function)
        return BatchFunction(self.function)

    def run(self, arrays: Arrays, worst: np.ndarray, own: Own | None) -> bool:
        """Run it on arrays by name; whether it can be relied on."""
        if self.when and _view(arrays, self.when, 1) == 0:
            return True
        if self.function is None:
            if own is not None:
                time, seen, made = (_view(arrays, place, n) for place, n in self.further.values())
                own(float(time[0]), seen, made)
            return True
        if isinstance(self.function, ca.Function):
            sizes = map(self.function.numel_in, range(self.function.n_in()))
            views = [
                _view(arrays, place, n)[None] for place, n in zip(self.inputs, sizes, strict=True)
            ]
            parts = self._code(views, 1)
        else:
            program = self.function.program
            named = {
                name: _view(arrays, place, n)[None] for name, (place, n) in self.further.items()
            }
            results, diagnostics = program.run(named, 1)
            parts = [results[port.name] for port in self.function.outputs]
            judged = solve_diagnostics(
                program, diagnostics, {str(i): part for i, part in enumerate(parts)}
            )
            if self.is_judged:
                least = float(judged.discriminants.min(initial=1.0)) if judged.finite[0] else -1e300
                residual = sum(float(np.abs(part[0])) for part in judged.residuals.values())
                figures = np.array([least, min(float(judged.smallest_pivot[0]), 1e300), residual])
                if not (least >= 0 and figures[1] > self.smallest_pivot and residual < CONVERGED):
                    worst[3:] = figures
                    return False
                worst[:3] = [
                    min(worst[0], least),
                    min(worst[1], figures[1]),
                    max(worst[2], residual),
                ]
        for place, part in zip(self.outputs, parts, strict=True):
            _view(arrays, place, part.shape[1])[:] = part[0]
        return True

    def limited(self, precision: Precision) -> RoutineCall:
        """The same, whose loops and verdicts are a precision's."""
        if not isinstance(self.function, CFunction):
            return self
        least = max(self.smallest_pivot, precision.smallest_pivot)
        return replace(self, function=precision.limited(self.function), smallest_pivot=least)

    def text(self) -> list[str]:
        """The statements in C; where it writes an array that it also reads, by way of another one."""
        return [*([f"    if (*({self.when}) != 0.0)"] if self.when else []), *self._text()]

    def _text(self) -> list[str]:
        if self.function is None:
            return [
                f"    if (l->own) l->own(*({self.inputs[0]}), {self.inputs[1]}, {self.outputs[0]});"
            ]
        if isinstance(self.function, CFunction):
            read = [port.size for port in self.function.inputs]
            declared, places, moved = self._apart(
                read, self.outputs, [port.size for port in self.function.outputs]
            )
            arguments = ", ".join([*self.inputs, *places, "health"])
            judge = f"        if (!tl_healthy(health, {number(self.smallest_pivot)}, l->worst)) return 0;"
            call = [
                f"        double health[{HEALTH}];",
                *declared,
                f"        {self.function.name}({arguments});",
                *([judge] if self.is_judged else []),
            ]
            return ["    {", *call, *moved, "    }"]
        if self.brief is None:
            return self._straight(self.function, self.outputs)
        return [
            "    if (guards)",
            *self._straight(self.function, self.outputs),
            "    else",
            *self._straight(*self.brief),
        ]

    def _straight(self, function: ca.Function, outputs: tuple[str, ...]) -> list[str]:
        read = [function.numel_in(i) for i in range(function.n_in())]
        sizes = [function.numel_out(i) for i in range(function.n_out())]
        declared, places, moved = self._apart(read, outputs, sizes)
        return [
            "    {",
            *declared,
            f"        const double *arg[] = {{{', '.join(self.inputs)}}};",
            f"        double *res[] = {{{', '.join(places)}}}, w[8];",
            "        int iw[8];",
            f"        {function.name()}(arg, res, iw, w, 0);",
            *moved,
            "    }",
        ]

    def _apart(
        self, read: Iterable[int], outputs: Iterable[str], sizes: Iterable[int]
    ) -> tuple[list[str], list[str], list[str]]:
        """Arrays declared for outputs that cannot be written in place, the places to write, and how they are moved."""
        inputs = [
            (*split_place(place), size) for place, size in zip(self.inputs, read, strict=True)
        ]
        declared, places, moved = [], [], []
        for i, (place, size) in enumerate(zip(outputs, sizes, strict=True)):
            array, start = split_place(place)
            if not any(
                array == name and start < at + n and at < start + size for name, at, n in inputs
            ):
                places.append(place)
                continue
            declared.append(f"        double moved{i}[{max(size, 1)}];")
            places.append(f"moved{i}")
            # one by one: numbers that a compiler has in registers need not be written before they
            # are moved
            moved += [f"        {array}[{start + k}] = moved{i}[{k}];" for k in range(size)]
        return declared, places, moved


def split_place(place: str) -> tuple[str, int]:
    """A place's array, and where in it the place begins."""
    name, _, offset = place.partition(" + ")
    return name, int(offset or 0)


def _view(arrays: Arrays, place: str, size: int | None = None) -> np.ndarray:
    name, start = split_place(place)
    return arrays[name][start : None if size is None else start + size]


def straight(
    name: str, reads: Mapping[str, int], make: Callable[..., Mapping[str, ca.SX]], *, when: str = ""
) -> RoutineCall:
    """Straight-line code.

    Args:
        name: a C identifier of its own in the library.
        reads: places with their sizes.
        make: expressions by the place that they are written to, from the symbols of what is read.
        when: as of `RoutineCall`.
    """
    symbols = [ca.SX.sym(f"x{i}", n) for i, n in enumerate(reads.values())]
    outputs = {place: ca.densify(ca.SX(expression)) for place, expression in make(*symbols).items()}
    function = ca.Function(name, symbols, list(outputs.values()))
    return RoutineCall(function=function, inputs=tuple(reads), outputs=tuple(outputs), when=when)


def own_call(time: tuple[str, int], seen: tuple[str, int], made: tuple[str, int]) -> RoutineCall:
    """A function of Python's, if there is one.

    Args:
        time, seen, made: places and sizes of its arguments, of which it changes the last.
    """
    places = {"time": time, "seen": seen, "made": made}
    return RoutineCall(function=None, inputs=(time[0], seen[0]), outputs=(made[0],), further=places)


def program_call(
    name: str,
    program: Program,
    sizes: Mapping[str, int],
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    *,
    is_judged: bool = True,
    smallest_pivot: float = SMALLEST_PIVOT,
) -> RoutineCall:
    """A program with some of its outputs.

    Args:
        name: a C identifier of its own in the library.
        program: the steps.
        sizes: of its inputs.
        inputs, outputs: places of these, and of the outputs that are wanted.
        is_judged, smallest_pivot: as of `RoutineCall`.
    """
    empty = {key: np.empty((0, size)) for key, size in sizes.items()}
    function = replace(c_function(program, empty, tuple(outputs)), name=name)
    return RoutineCall(
        function=function,
        inputs=tuple(inputs[port.name] for port in function.inputs),
        outputs=tuple(outputs.values()),
        further={
            port.name: (inputs[port.name], port.size) for port in c_function(program, empty).inputs
        },
        is_judged=is_judged,
        smallest_pivot=smallest_pivot,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Routine:
    """Calls, one after the other.

    Attributes:
        calls: in their order.
        own: arrays of its own, with their sizes.
        known: places and sizes of coordinates and velocities behind it.
        directions: of derivatives, which lie one behind the other behind every array that varies.
        varied: these arrays, with their sizes without derivatives.
    """

    calls: tuple[RoutineCall, ...] = ()
    own: Mapping[str, int] = field(default_factory=dict)
    known: tuple[tuple[str, int], ...] = ()
    directions: int = 0
    varied: Mapping[str, int] = field(default_factory=dict)

    def _room(self) -> dict[str, int]:
        """Sizes of its own arrays, with derivatives."""
        return {
            name: size * (1 + self.directions * (name in self.varied))
            for name, size in self.own.items()
        }

    def run(self, arrays: Arrays, worst: np.ndarray, own: Own | None = None) -> bool:
        """Run it on arrays by name, which take its own as well; whether it can be relied on."""
        arrays |= {name: np.zeros(size) for name, size in self._room().items()}
        for call in self.calls:
            for j in range(1, 1 + self.directions) if call.tangent is not None else ():
                there = ((name, n) for name, n in self.varied.items() if name in arrays)
                arrays |= {moved(name): arrays[name][j * n : (j + 1) * n] for name, n in there}
                call.tangent.run(arrays, worst, None)  # type: ignore[union-attr]
            if not call.run(arrays, worst, own):
                return False
        return True

    def text(self, name: str) -> str:
        """A C function with this name."""
        names = ("s", "in", "held", "p", "z", "start", *self.own)
        kept, at = [], 0
        for place, size in self.known:
            kept.append(
                f"    if (TL_KNOWN) memcpy(run->known + {at}, {place}, sizeof(double) * {size});"
            )
            at += size
        lines = [
            f"static int {name}(tl_run *run, double time, double *y, double *rate, double *guards)",
            "{",
            "    tl_data *l = (tl_data *)run->data;",
            "    const double *s = run->s, *in = l->in, *held = l->held, *p = l->p;",
            "    double *z = l->z, *start = run->guess;",
            *(
                f"    double {array}[{max(size, 1)}]{' = {0.0}' if array in self.varied else ''};"
                for array, size in self._room().items()
            ),
            "    (void)time; (void)y; (void)rate; (void)guards;",
            f"    {' '.join(f'(void){array};' for array in names)}",
            *(line for call in self.calls for line in (*self._tangents(call), *call.text())),
            *kept,
            "    return 1;",
        ]
        return "\n".join([*lines, "}", ""])

    def _tangents(self, call: RoutineCall) -> list[str]:
        """The call's derivatives along all directions."""
        if call.tangent is None:
            return []
        places = (*call.tangent.inputs, *call.tangent.outputs)
        used = sorted(
            {split_place(place)[0] for place in places} & {moved(name) for name in self.varied}
        )
        begins = {moved(name): f"{name} + j * {size}" for name, size in self.varied.items()}
        begins[moved("guards")] = f"l->slopes + (j - 1) * {self.varied.get('guards', 0)}"
        fixed = (moved("held"), moved("p"))
        return [
            f"    for (int j = 1; j <= {self.directions}; ++j) {{",
            *(
                f"    {'const ' if name in fixed else ''}double *{name} = {begins[name]};"
                for name in used
            ),
            *call.tangent.text(),
            "    }",
        ]


def functions_text(
    routines: Iterable[Routine], prefix: str = "straight", *, single: bool = False
) -> str:
    """C text of all functions that routines call; straight-line code has names that begin with the prefix.

    Args:
        routines: that call them.
        prefix: of these names.
        single: whether it is written in floats.
    """
    calls = [
        call
        for routine in routines
        for made in routine.calls
        for call in (made.tangent, made)
        if call is not None
    ]
    programs = {
        call.function.name: call.function for call in calls if isinstance(call.function, CFunction)
    }
    generator = ca.CodeGenerator(
        f"{prefix}.c", {"with_header": False, "casadi_int": "int", "include_math": True}
    )
    codes = {}
    for call in calls:
        for function in (call.function, *(call.brief or ())[:1]):
            if isinstance(function, ca.Function):
                codes[function.name()] = function
    for function in codes.values():
        generator.add(function)
    note = "made by Tauloop, do not edit"
    # functions of one file only: exported ones would not be put in line, for others could take
    # their place
    straight_text = f"#define CASADI_SYMBOL_EXPORT static\n{generator.dump()}"
    listed, includes = list(programs.values()), ("<string.h>",)
    if single:
        return c_source(
            listed, note, with_batch=False, includes=includes, further=straight_text, single=True
        )
    return f"{c_source(listed, note, with_batch=False, includes=includes)}\n{straight_text}"


def unit_quaternions(quaternions: Iterable[int], states: int) -> Routine:
    """The way back of a state (n,) to unit length of its quaternions, which begin at these places."""
    places = tuple(quaternions)

    def back(y: ca.SX) -> dict[str, ca.SX]:
        return {f"y + {i}": y[i : i + 4] / ca.norm_2(y[i : i + 4]) for i in places}

    return Routine(calls=(straight("unit_quaternions", {"y": states}, back),) if places else ())

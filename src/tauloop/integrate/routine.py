"""Routines: right-hand sides and samples of a control as sequences of calls.

The arrays of a routine have names. All routines have the state `y`, its `rate` and `guards`, the
modes `s`, the coordinates `start` from which Newton's method continues, the inputs `in` of a
sample, the applied forces `held`, the results of the last sample `z`, and the constants `p`. Here
`rate` is the derivative of the state with respect to time, and `guards` are functions whose zeros
are events. Other arrays belong to a single routine. A place is an array with an optional offset, as
in C: ``y``, ``y + 6``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import c_function
from tauloop.compiler.c.calling.signature import HEALTH
from tauloop.compiler.c.printing.precision import Precision
from tauloop.compiler.c.printing.source import CFunction, c_source, number
from tauloop.compiler.derivatives.tangents import moved
from tauloop.compiler.program import Program
from tauloop.compiler.state import SMALLEST_PIVOT

#: Python function of a sample: (time, inputs, outputs), which changes the outputs in place.
Own = Callable[[float, np.ndarray, np.ndarray], None]


class Layout:
    """Consecutive parts of an array, by name."""

    def __init__(self, array: str, sizes: Mapping[str, int]) -> None:
        """Define the parts of the array.

        Args:
            array: name of the array.
            sizes: sizes of the parts by name, in order.
        """
        ends = np.cumsum([0, *sizes.values()])
        self._array, self.size = array, int(ends[-1])
        self.slices = {name: slice(int(ends[i]), int(ends[i + 1])) for i, name in enumerate(sizes)}

    def place(self, name: str, array: str = "") -> str:
        """Return the place of a part, in this array or in another array with the same layout."""
        return f"{array or self._array} + {self.slices[name].start}"

    def parts(self, x: ca.SX) -> dict[str, ca.SX]:
        """Return all parts of the whole array (n,)."""
        return {name: x[indices] for name, indices in self.slices.items()}

    def rows(self, n: int, values: Mapping[str, np.ndarray | float | list[float]]) -> np.ndarray:
        """Return arrays (n, size) with the given values of parts; the rest is zero."""
        stacked = np.zeros((n, self.size))
        for name, value in values.items():
            stacked[:, self.slices[name]] = value
        return stacked


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutineCall:
    """A function with its inputs and outputs as places.

    Attributes:
        function: C function of a program, straight-line code of CasADi, or None for an optional
            Python function. The Python function receives the time at the first input place and the
            array at the second, and changes the output.
        inputs, outputs: places of the arguments, in order.
        further: places and sizes of inputs that only the interpreter of a program reads; for a
            Python function, those of all inputs.
        brief: straight-line code for calls that do not need the guards, and the places of its
            outputs.
        is_judged: whether the routine ends if the program's diagnostics show that its results are
            unreliable.
        smallest_pivot: pivots below this fraction of their typical magnitude make the results of a
            program unreliable.
        when: place of a number; the call is made only if this is not zero. Empty to make the call
            every time.
        tangent: call that computes the derivatives along a direction, before this call
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

    def limited(self, precision: Precision) -> RoutineCall:
        """Return the call with the limits of Newton's loops for a precision."""
        if not isinstance(self.function, CFunction):
            return self
        least = max(self.smallest_pivot, precision.smallest_pivot)
        return replace(self, function=precision.limited(self.function), smallest_pivot=least)

    def text(self) -> list[str]:
        """Return the C statements of the call; arrays that are read and written get a temporary."""
        return [*([f"    if (*({self.when}) != 0.0)"] if self.when else []), *self._text()]

    def _text(self) -> list[str]:
        if self.function is None:
            return [
                f"    if (l->own) l->own(*({self.inputs[0]}), {self.inputs[1]}, {self.outputs[0]});"
            ]
        if isinstance(self.function, CFunction):
            read = [port.size for port in self.function.inputs]
            declarations, places, copies = self._temporaries(
                read, self.outputs, [port.size for port in self.function.outputs]
            )
            arguments = ", ".join([*self.inputs, *places, "health"])
            call = [
                f"        double health[{HEALTH}];",
                *declarations,
                f"        {self.function.name}({arguments});",
            ]
            if self.is_judged:
                pivot = number(self.smallest_pivot)
                call.append(f"        if (!tl_healthy(health, {pivot}, l->worst)) return 0;")
            return ["    {", *call, *copies, "    }"]
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
        declarations, places, copies = self._temporaries(read, outputs, sizes)
        return [
            "    {",
            *declarations,
            f"        const double *arg[] = {{{', '.join(self.inputs)}}};",
            f"        double *res[] = {{{', '.join(places)}}}, w[8];",
            "        int iw[8];",
            f"        {function.name()}(arg, res, iw, w, 0);",
            *copies,
            "    }",
        ]

    def _temporaries(
        self, read: Iterable[int], outputs: Iterable[str], sizes: Iterable[int]
    ) -> tuple[list[str], list[str], list[str]]:
        """Return temporaries for outputs that overlap an input.

        Args:
            read: sizes of the inputs.
            outputs: places of the outputs.
            sizes: sizes of the outputs.

        Returns:
            C declarations of the temporaries, the place that the call writes for each output, and C
            statements that copy the temporaries to the outputs.
        """
        inputs = [
            (*split_place(place), size) for place, size in zip(self.inputs, read, strict=True)
        ]
        declarations, places, copies = [], [], []
        for i, (place, size) in enumerate(zip(outputs, sizes, strict=True)):
            array, start = split_place(place)
            overlaps = any(
                array == name and start < first + length and first < start + size
                for name, first, length in inputs
            )
            if not overlaps:
                places.append(place)
                continue
            declarations.append(f"        double moved{i}[{max(size, 1)}];")
            places.append(f"moved{i}")
            # Copied element by element, so that a compiler can keep the numbers in registers.
            copies += [f"        {array}[{start + k}] = moved{i}[{k}];" for k in range(size)]
        return declarations, places, copies


def split_place(place: str) -> tuple[str, int]:
    """Return the array and the offset of a place."""
    name, _, offset = place.partition(" + ")
    return name, int(offset or 0)


def straight(
    name: str, reads: Mapping[str, int], make: Callable[..., Mapping[str, ca.SX]], *, when: str = ""
) -> RoutineCall:
    """Return a call of straight-line code.

    Args:
        name: unique C identifier in the library.
        reads: places with their sizes.
        make: function that returns expressions by output place, from the symbols of `reads`.
        when: as in `RoutineCall`.
    """
    symbols = [ca.SX.sym(f"x{i}", n) for i, n in enumerate(reads.values())]
    outputs = {place: ca.densify(ca.SX(expression)) for place, expression in make(*symbols).items()}
    function = ca.Function(name, symbols, list(outputs.values()))
    return RoutineCall(function=function, inputs=tuple(reads), outputs=tuple(outputs), when=when)


def own_call(
    time: tuple[str, int], inputs: tuple[str, int], outputs: tuple[str, int]
) -> RoutineCall:
    """Return a call of an optional Python function.

    Args:
        time: place and size of the time.
        inputs: place and size of the inputs.
        outputs: place and size of the outputs, which the function changes.
    """
    places = {"time": time, "inputs": inputs, "outputs": outputs}
    return RoutineCall(
        function=None, inputs=(time[0], inputs[0]), outputs=(outputs[0],), further=places
    )


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
    """Return a call of a program with some of its outputs.

    Args:
        name: unique C identifier in the library.
        program: program that is called.
        sizes: sizes of the program's inputs.
        inputs, outputs: places of the inputs, and of the requested outputs.
        is_judged, smallest_pivot: as in `RoutineCall`.
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
    """A sequence of calls.

    Attributes:
        calls: calls in their order.
        own: arrays that belong to this routine, with their sizes.
        known: places and sizes of coordinates and velocities after a run.
        directions: number of directions in which sensitivities are computed; the derivatives along
            them follow the values of each varied array.
        varied: arrays that have derivatives, with their sizes without the derivatives.
    """

    calls: tuple[RoutineCall, ...] = ()
    own: Mapping[str, int] = field(default_factory=dict)
    known: tuple[tuple[str, int], ...] = ()
    directions: int = 0
    varied: Mapping[str, int] = field(default_factory=dict)

    def _array_sizes(self) -> dict[str, int]:
        """Return the sizes of the routine's arrays, including derivatives."""
        copies = 1 + self.directions
        return {
            name: copies * size if name in self.varied else size for name, size in self.own.items()
        }

    def text(self, name: str) -> str:
        """Return a C function with this name."""
        names = ("s", "in", "held", "p", "z", "start", *self.own)
        copies: list[str] = []
        offset = 0
        for place, size in self.known:
            target = f"run->known + {offset}"
            copies.append(f"    if (TL_KNOWN) memcpy({target}, {place}, sizeof(double) * {size});")
            offset += size
        lines = [
            f"static int {name}(tl_run *run, double time, double *y, double *rate, double *guards)",
            "{",
            "    tl_data *l = (tl_data *)run->data;",
            "    const double *s = run->s, *in = l->in, *held = l->held, *p = l->p;",
            "    double *z = l->z, *start = run->guess;",
            *(
                f"    double {array}[{max(size, 1)}]{' = {0.0}' if array in self.varied else ''};"
                for array, size in self._array_sizes().items()
            ),
            "    (void)time; (void)y; (void)rate; (void)guards;",
            f"    {' '.join(f'(void){array};' for array in names)}",
            *(line for call in self.calls for line in (*self._tangents(call), *call.text())),
            *copies,
            "    return 1;",
        ]
        return "\n".join([*lines, "}", ""])

    def _tangents(self, call: RoutineCall) -> list[str]:
        """Return the C text of a call's derivatives along all directions."""
        if call.tangent is None:
            return []
        places = (*call.tangent.inputs, *call.tangent.outputs)
        used = sorted(
            {split_place(place)[0] for place in places} & {moved(name) for name in self.varied}
        )
        starts = {moved(name): f"{name} + j * {size}" for name, size in self.varied.items()}
        starts[moved("guards")] = f"l->slopes + (j - 1) * {self.varied.get('guards', 0)}"
        fixed = (moved("held"), moved("p"))
        return [
            f"    for (int j = 1; j <= {self.directions}; ++j) {{",
            *(
                f"    {'const ' if name in fixed else ''}double *{name} = {starts[name]};"
                for name in used
            ),
            *call.tangent.text(),
            "    }",
        ]


def functions_text(
    routines: Iterable[Routine], prefix: str = "straight", *, single: bool = False
) -> str:
    """Return the C text of all functions that routines call.

    Args:
        routines: routines that call the functions.
        prefix: prefix of the names of straight-line code.
        single: whether to write floats.
    """
    calls: list[RoutineCall] = []
    for routine in routines:
        for call in routine.calls:
            if call.tangent is not None:
                calls.append(call.tangent)
            calls.append(call)
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
    note = "generated by Tauloop, do not edit"
    # The functions are static: compilers do not inline exported functions, because another library
    # could replace them.
    straight_text = f"#define CASADI_SYMBOL_EXPORT static\n{generator.dump()}"
    listed, includes = list(programs.values()), ("<string.h>",)
    if single:
        return c_source(
            listed, note, with_batch=False, includes=includes, further=straight_text, single=True
        )
    return f"{c_source(listed, note, with_batch=False, includes=includes)}\n{straight_text}"


def unit_quaternions(quaternions: Iterable[int], states: int) -> Routine:
    """Return the routine that normalizes the quaternions of states (n,) at these start indices."""
    places = tuple(quaternions)

    def normalized(y: ca.SX) -> dict[str, ca.SX]:
        return {f"y + {i}": y[i : i + 4] / ca.norm_2(y[i : i + 4]) for i in places}

    if not places:
        return Routine()
    return Routine(calls=(straight("unit_quaternions", {"y": states}, normalized),))

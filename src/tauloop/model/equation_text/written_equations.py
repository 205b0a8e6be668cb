"""Export of a machine's loop and dynamic equations, and of their solution, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from keyword import iskeyword

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, provenance
from tauloop.compiler.builder import ProgramBuilder
from tauloop.compiler.c.printing.notation import LATEX, PLAIN, PYTHON, Formula, Notation, Writer
from tauloop.compiler.catalogue import INVERSE_DYNAMICS
from tauloop.compiler.expressions import Expressions
from tauloop.compiler.program import Newton, Program
from tauloop.compiler.solving.bounded import Bounded
from tauloop.compiler.solving.position import SolvedBlock
from tauloop.equations.assembly.loops import closure, stacked
from tauloop.equations.ports import PLATFORM, Entry, coordinate_units, force_port, velocity_units
from tauloop.equations.tree import Configuration
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.model import omission_diagnostics
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.equation_text.equation_check import compared
from tauloop.model.equation_text.equation_texts import (
    Part,
    Symbol,
    latex_text,
    plain_text,
    python_text,
    written_name,
)
from tauloop.model.model import MachineSource, Model, modeled

EQUATION_PARTS = ("loops", "dynamics", "solved")
#: Value of the option `keep` with which every independent parameter remains a symbol.
ALL_PARAMETERS = "all"
#: Results of the solved equations.
SOLVED_RESULTS = ("q", "force", "closure_force")
#: A loop equation counts as identically zero if its residual at `IDENTITY_STATES` poses with
#: open loops is below this fraction of the machine's characteristic length.
IDENTITY_TOLERANCE = 1e-10
#: Number of these poses.
IDENTITY_STATES = 8
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationOptions(Options):
    """Options of written equations.

    Attributes:
        coordinates: coordinates in which the motion is given: platform or actuators.
        parts: equations to write: loop equations, dynamic equations, or the formulas that solve
            both, separated by commas.
        keep: independent parameters that stay symbols, separated by commas, or 'all'; the others
            are numbers.
        names: new names of variables and parameters in the equations, such as 'platform.x=X'.

    Examples:
        >>> import tauloop as tl
        >>> tl.EquationOptions(parts=("loops",), names={"platform.x": "X"}).parts
        ('loops',)
    """

    coordinates: Entry = PLATFORM
    parts: tuple[str, ...] = option(EQUATION_PARTS, read=listed, choices=EQUATION_PARTS)
    keep: tuple[str, ...] = option((), read=listed, names="parameters")
    names: Mapping[str, str] = option(factory=dict)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report new names that are not valid in Python."""
        for name, new in self.names.items():
            if not _IDENTIFIER.fullmatch(new) or iskeyword(new):
                problems.add(
                    "names",
                    f"{new!r} for {name} is not a valid name",
                    "use symbol_table, digits and _, with a letter first",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEquations(Result):
    """The equations of a machine in three notations.

    Attributes:
        machine: name of the machine.
        symbols: all symbols with their meanings.
        blocks: blocks in which the positions are solved, in order.
        identical: loop equations that are identically zero for the current parameters.
        redundant: further loop equations that follow from the others for the current parameters.
            The dynamic and the solved equations contain neither `identical` nor `redundant`
            equations.
        text: readable text.
        latex: LaTeX document.
        python: Python module that needs only NumPy, with the functions `loop_equations`,
            `dynamic_equations` and `inverse_dynamics`.
    """

    machine: str
    symbols: tuple[Symbol, ...]
    blocks: tuple[SolvedBlock, ...]
    identical: tuple[str, ...]
    redundant: tuple[str, ...]
    text: str
    latex: str
    python: str


@keywords(EquationOptions)
def write_equations(
    machine: MachineSource,
    options: EquationOptions | None = None,
    *,
    progress: Progress | None = None,
) -> WrittenEquations:
    """Write a machine's equations as text, LaTeX and Python, in chosen variables and parameters.

    There are three parts, all in SI units:

    - Loop equations: phi(q) = 0. The notes list equations that are identically zero for the
      current parameters (these are not written if all parameters are numbers), and equations that
      follow from the others.
    - Dynamic equations: M a + h - S u - K^T lambda = 0 for every moving velocity, in the model's
      formulation. M is the mass matrix, a are the accelerations, and h contains velocity terms,
      gravity, springs and friction. S are the directions of the actuator forces u, and K is the
      loop Jacobian (K v = 0) with multipliers lambda.
    - Solved equations: the same equations sorted into blocks, which compute coordinates, forces u
      and multipliers lambda from a motion.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; the
            formulation of a model is used.
        options: the equations to write, and their variables.
        progress: called with the completed and the total work.

    Returns:
        The equations: text, LaTeX and Python module.

    Raises:
        InputError: a name does not exist or is already used; or the machine has cables and `parts`
            contains the solved equations, because tensions within bounds have no closed-form solution.
        AssemblyError: there are passive degrees of freedom, and `parts` contains the solved
            equations.

    Source: Dressler, Schiffer and Robertsson, Modeling and Control of a Parallel Robot Using
    Modelica, section 3 (equations of a model, substituted until a chosen set of parameters and
    variables is left).

    Examples:
        >>> import tauloop as tl
        >>> written = tl.write_equations("four_bar", parts=("loops",))
        >>> written.diagnostics[0].is_good
        True
    """
    model, options = modeled(machine), options or EquationOptions()
    kept = _kept_parameters(model, options)
    model = Model(model.mechanism, kept, formulation=model.formulation)
    symbol_table, stages = _SymbolTable(model, options), Stages(progress, 5)
    program = None
    if "solved" in options.parts:
        program = model.functions(options.coordinates).program(INVERSE_DYNAMICS)
    loop_rows = _loop_rows(model)
    implicit = _implicit_functions(model, loop_rows)
    functions = {name: f for name, f in implicit.items() if name in options.parts}
    stages.done()
    texts = []
    for notation in stages.over((PLAIN, LATEX, PYTHON)):
        parts = _implicit_parts(model, functions, loop_rows, symbol_table, notation)
        if program is not None:
            parts.append(_solved(model, program, symbol_table, notation))
        texts.append(parts)
    blocks = model.functions(options.coordinates).blocks if program is not None else ()
    heading = f"Equations of {model.mechanism.name}, {model.formulation.name}, SI units"
    start = model.assembly.q.tolist()
    used = symbol_table.used(texts[-1])
    python = python_text(heading, used, texts[2], start, model.mechanism.parameters.values, kept)
    diagnostics = omission_diagnostics(model.mechanism) + tuple(
        compared(
            model, options.coordinates, python, {name: f for name, (f, _) in functions.items()}
        )
    )
    stages.done()
    return WrittenEquations(
        diagnostics=diagnostics,
        provenance=provenance(
            options={"entry": options.coordinates.name, "parts": options.parts, "keep": kept},
            inputs={"machine": model.mechanism.name},
        ),
        machine=model.mechanism.name,
        symbols=used,
        blocks=blocks,
        identical=loop_rows.identical,
        redundant=loop_rows.redundant,
        text=plain_text(heading, used, blocks, texts[0]),
        latex=latex_text(heading, used, blocks, texts[1]),
        python=python,
    )


def _kept_parameters(model: Model, options: EquationOptions) -> tuple[str, ...]:
    """Return the names of the parameters that remain symbols.

    Raises:
        InputError: a name does not exist.
    """
    known = tuple(p.name for p in model.mechanism.parameters)
    kept = known if options.keep == (ALL_PARAMETERS,) else options.keep
    remedy = f"see `tauloop show {model.mechanism.name} --table`"
    InputError.raise_if_any(unknown_names(kept, known, "no parameter {!r}", "keep", remedy))
    return kept


class _SymbolTable:
    """The symbols of a machine's equations by role; their names are unique."""

    def __init__(self, model: Model, options: EquationOptions) -> None:
        topology = model.topology
        ports = model.functions(options.coordinates).ports
        forces = force_port(model.assembly)
        loops = model.assembly.loops
        self._new_names = options.names
        self._used_names = {"np", "newton"}
        positions = {*topology.coordinate_names, *ports.position.columns}
        self._symbols: dict[tuple[str, str], Symbol] = {}
        q = zip(topology.coordinate_names, coordinate_units(topology), strict=True)
        self.q = [self._symbol("q", n, unit, "coordinate") for n, unit in q]
        v = tuple(zip(topology.velocity_names, velocity_units(topology), strict=True))
        self.v, self.a = self._rates(v, positions)
        self.position = [
            self._symbol("q", n, unit, "given position")
            for n, unit in zip(ports.position.columns, ports.position.units, strict=True)
        ]
        columns = tuple(zip(ports.velocity.columns, ports.velocity.units, strict=True))
        self.velocity, self.acceleration = self._rates(columns, positions)
        pairs = zip(forces.columns, forces.units, strict=True)
        self.force = [self._symbol("u", n, unit, "actuator force") for n, unit in pairs]
        rows = zip(model.assembly.rows, model.assembly.multiplier_units, strict=True)
        self.closure = [
            self._symbol("lambda", loops.names[i], unit, "multiplier of", f"_{k + 1}")
            for k, (i, unit) in enumerate(rows)
        ]
        units = {p.name: si_unit(p.unit) for p in model.mechanism.parameters}
        self.theta = [self._symbol("", name, units[name], "parameter") for name in model.free]
        every = sorted({n for _, n in self._symbols})
        InputError.raise_if_any(unknown_names(options.names, every, "no variable {!r}", "names"))

    def _rates(
        self, columns: tuple[tuple[str, str], ...], positions: set[str]
    ) -> tuple[list[Symbol], list[Symbol]]:
        """Return symbols of velocities and accelerations.

        The rates of a position have one and two dots; those of an angular velocity have none and
        one.
        """
        rates: tuple[list[Symbol], list[Symbol]] = ([], [])
        for order in (1, 2):
            for name, unit in columns:
                dots = order if name in positions else order - 1
                word = "velocity" if order == 1 else "acceleration"
                rates[order - 1].append(
                    self._symbol(f"d{dots}", name, unit + "^2" * (order - 1), word)
                )
        return rates

    def _symbol(self, role: str, name: str, unit: str, word: str, index: str = "") -> Symbol:
        key = (role, name)
        if key not in self._symbols:
            made = written_name(
                role, self._new_names.get(name, name), index, frozenset(self._used_names)
            )
            self._used_names.add(made[0])
            self._symbols[key] = Symbol(
                python=made[0], latex=made[1], meaning=f"{word} {name}", unit=unit
            )
        return self._symbols[key]

    def used(self, parts: list[Part]) -> tuple[Symbol, ...]:
        """Return the symbols that occur in an equation."""
        words = {
            word
            for part in parts
            for _, right in part.every_line
            for word in re.findall(r"\w+", right)
        }
        return tuple(symbol for symbol in self._symbols.values() if symbol.python in words)


def _formulas(symbols: list[Symbol], notation: Notation) -> list[Formula]:
    return [
        Formula(text=symbol.latex if notation is LATEX else symbol.python) for symbol in symbols
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoopRows:
    """The loop equations that are written, and those without content for the current parameters.

    Attributes:
        written: indices of the rows that are written.
        identical: names of rows that are identically zero.
        redundant: names of further rows that follow from the others.
    """

    written: tuple[int, ...]
    identical: tuple[str, ...]
    redundant: tuple[str, ...]

    def title(self, name: str) -> str:
        """Return the name of a row, with the reason if other parts of the equations omit it."""
        if name in self.identical:
            return f"{name}; identically zero for these parameters"
        if name in self.redundant:
            return f"{name}; follows from the others for these parameters"
        return name

    def notes(self, model: Model) -> tuple[str, ...]:
        """Return the notes that are true only for the current parameters."""
        notes, assembly = [], model.assembly
        count = len(assembly.loops.names)
        if self.identical:
            is_left_out = not model.free
            notes.append(
                f"{len(self.identical)} of {count} loop equations are identically zero for these parameters"
                f"{' and are omitted' if is_left_out else ''}: {', '.join(self.identical)}."
            )
        if self.redundant:
            notes.append(
                f"{len(self.redundant)} of {count} loop equations follow from the others for these parameters: "
                f"{', '.join(self.redundant)}."
            )
        constant = assembly.topology.coordinates_of(assembly.frozen)
        if constant and count:
            names = [
                f"{assembly.topology.coordinate_names[i]} = {assembly.q[i]:.6g}" for i in constant
            ]
            notes.append(f"Constant during all motions for these parameters: {', '.join(names)}.")
        return tuple(notes)


def _loop_rows(model: Model) -> _LoopRows:
    """Classify the loop equations by their residuals at poses with open loops."""
    loops, rng = model.assembly.loops, np.random.default_rng(0)
    q = model.assembly.states[:IDENTITY_STATES]
    if not loops.names:
        return _LoopRows(written=(), identical=(), redundant=())
    unit = np.ones(loops.topology.n_q)
    for i, is_angle in zip(loops.topology.q_of_v, loops.topology.angular, strict=True):
        if i >= 0 and not is_angle:
            unit[i] = loops.length
    residuals, _ = loops.residuals(q + unit * rng.normal(size=q.shape))
    scale = np.where(loops.is_length, loops.length, 1.0)
    is_zero = np.abs(residuals).max(axis=0) < IDENTITY_TOLERANCE * scale
    identical = tuple(name for name, zero in zip(loops.names, is_zero, strict=True) if zero)
    return _LoopRows(
        written=tuple(i for i in range(len(loops.names)) if model.free or not is_zero[i]),
        identical=identical,
        redundant=tuple(loops.names[i] for i in model.assembly.dropped if not is_zero[i]),
    )


def _implicit_functions(
    model: Model, loop_rows: _LoopRows
) -> dict[str, tuple[ca.Function, list[str]]]:
    """Return the loop and dynamic equations as functions of all coordinates, with row names."""
    assembly, free = model.assembly, model.free
    mechanism, topology = assembly.mechanism, assembly.topology
    sizes = {"q": topology.n_q, "v": topology.n_v, "a": topology.n_v}
    sizes["u"] = len(mechanism.actuators)
    sizes |= {"lambda": len(assembly.rows), "theta": len(free)}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    q, v, a, u, multipliers, theta = symbols.values()
    kept = {name: theta[i] for i, name in enumerate(free)}
    machine = Expressions(assembly, ProgramBuilder("equations", {}), model.formulation, kept)
    machine.configuration = Configuration(q, {})
    every_row = closure(machine.mechanism, machine.motion(v, a)) if loop_rows.written else ()
    phi, _, _ = stacked(tuple(every_row[i] for i in loop_rows.written))
    _, rate, _ = stacked(tuple(machine.rows(v, a)))
    loop_forces = ca.jacobian(rate, v).T @ multipliers
    imbalance = machine.forces(v, a) - machine.transmission.T @ u - loop_forces
    loop_titles = [loop_rows.title(assembly.loops.names[i]) for i in loop_rows.written]
    force_titles = [f"forces on {topology.velocity_names[i]}" for i in machine.moving]

    def function(name: str, expression: ca.SX) -> ca.Function:
        return ca.Function(name, list(symbols.values()), [ca.cse(ca.densify(expression))])

    return {
        "loops": (function("loops", phi), loop_titles),
        "dynamics": (function("dynamics", imbalance[machine.moving]), force_titles),
    }


def _implicit(
    name: str,
    function: ca.Function,
    titles: list[str],
    symbol_table: _SymbolTable,
    notation: Notation,
) -> Part:
    """Return the text of the loop equations or of the dynamic equations."""
    roles = {"q": symbol_table.q, "v": symbol_table.v, "a": symbol_table.a, "u": symbol_table.force}
    roles |= {"lambda": symbol_table.closure, "theta": symbol_table.theta}
    writer = Writer(notation)
    (residual,) = writer.written(
        function, [_formulas(symbols, notation) for symbols in roles.values()], [True]
    )
    arguments = ("q",) if name == "loops" else ("q", "v", "a", "u", "lambda")
    return Part(
        name=name,
        lines=tuple(writer.lines),
        results={
            "residual": tuple(zip(titles, (formula.text for formula in residual), strict=True))
        },
        arguments={key: _python_names(roles[key]) for key in arguments},
    )


def _implicit_parts(
    model: Model,
    functions: Mapping[str, tuple[ca.Function, list[str]]],
    loop_rows: _LoopRows,
    symbol_table: _SymbolTable,
    notation: Notation,
) -> list[Part]:
    """Return the texts of the loop and dynamic equations that are to be written."""
    parts = [
        _implicit(name, *function, symbol_table, notation) for name, function in functions.items()
    ]
    notes = loop_rows.notes(model)
    return [replace(part, notes=notes) if part.name == "loops" else part for part in parts]


def _python_names(symbols: Iterable[Symbol]) -> tuple[str, ...]:
    """Return the names of symbols in Python."""
    return tuple(symbol.python for symbol in symbols)


def _results(
    symbols: Iterable[Symbol], formulas: Iterable[Formula], notation: Notation
) -> tuple[tuple[str, str], ...]:
    """Return the name of each symbol in a notation, with the text of its formula."""
    names = [symbol.latex if notation is LATEX else symbol.python for symbol in symbols]
    return tuple(zip(names, (formula.text for formula in formulas), strict=True))


def _solved(model: Model, program: Program, symbol_table: _SymbolTable, notation: Notation) -> Part:
    """Return the text of inverse dynamics, from the given motion to forces."""
    weight = notation.number(1.0)
    values: dict[str, list[Formula]] = {
        name: _formulas(symbols, notation)
        for name, symbols in (
            ("position", symbol_table.position),
            ("velocity", symbol_table.velocity),
            ("acceleration", symbol_table.acceleration),
            ("theta", symbol_table.theta),
        )
    }
    start = "start[%d]" if notation is not LATEX else r"q^{\mathrm{start}}_{%d}"
    values["start"] = [Formula(text=start % i) for i in range(model.topology.n_q)]
    values["weight"] = [weight] * len(symbol_table.force)
    wanted = [set(SOLVED_RESULTS)]
    for step in reversed(program.steps[1:]):
        if isinstance(step, Bounded):
            what = (
                "cable tensions within bounds result from a search and have no closed-form solution"
            )
            raise InputError.of("parts", what, "use --parts loops,dynamics")
        names = wanted[-1] | set(step.inputs)
        if isinstance(step, Newton):
            names.add(step.start)
        wanted.append(names)
    by_name = dict(zip(model.topology.coordinate_names, symbol_table.q, strict=True))
    writer, loops, first_line = Writer(notation), [], 0
    for step, needed in zip(program.steps, reversed(wanted), strict=True):
        if isinstance(step, Bounded):
            continue
        if not isinstance(step, Newton):
            outputs = writer.written(
                step.function.function,
                [values[name] for name in step.inputs],
                [name in needed for name in step.outputs],
            )
            values.update(zip(step.outputs, outputs, strict=True))
            continue
        unknowns = _formulas([by_name[name] for name in step.unknowns], notation)
        inner = Writer(notation)
        inner.count_from(writer)
        solution = inner.written(
            step.function.function,
            [unknowns, *(values[name] for name in step.inputs)],
            [notation is not PYTHON, notation is PYTHON, False],
        )
        writer.count_from(inner)
        loop = Part(
            name="newton",
            lines=tuple(inner.lines),
            results={
                "step" if notation is PYTHON else "residual": tuple(
                    (what, item.text)
                    for what, item in zip(
                        step.what, solution[1 if notation is PYTHON else 0], strict=True
                    )
                )
            },
            arguments={
                "unknowns": tuple(item.text for item in unknowns),
                "start": tuple(item.text for item in values[step.start]),
                "units": tuple(map(repr, step.sizes)),
            },
        )
        loops.append((tuple(writer.lines[first_line:]), loop))
        first_line = len(writer.lines)
        values[step.solution] = unknowns
    titles = {
        "q": symbol_table.q,
        "force": symbol_table.force,
        "closure_force": symbol_table.closure,
    }
    return Part(
        name="solved",
        before=tuple(loops),
        lines=tuple(writer.lines[first_line:]),
        results={
            name: _results(symbols, values[name], notation) for name, symbols in titles.items()
        },
        arguments={
            "position": _python_names(symbol_table.position),
            "velocity": _python_names(symbol_table.velocity),
            "acceleration": _python_names(symbol_table.acceleration),
        },
    )

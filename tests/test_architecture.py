"""The shape of the code, read from its syntax trees: imports go one way, machines are files, nothing prints.

Each rule is a function from a syntax tree to the places that break it. It is tried on a few lines
that must be refused (and on some that must pass) before it is put to the package, so that a rule
which has stopped seeing anything is noticed.
"""

from __future__ import annotations

import ast
import gc
import importlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

import pytest
from code_size import CodeSize, c_lines, python_size
from extras import EXTRAS

from tauloop.cli.commands import COMMANDS

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tauloop"

#: Layers from the ground up (design, "Layout"): a package may import those of the layers before its
#: own, never its neighbours in the same layer and never those after.
LAYERS = (
    ("common",),
    ("mechanism",),
    ("formats", "logs"),
    ("equations",),
    ("compiler",),
    ("model", "integrate"),
    ("geometry",),
    ("kinematics", "motion"),
    ("dynamics", "elasticity", "authoring", "drives"),
    ("calibration",),
    ("simulation",),
    ("design", "identification", "verification"),
    ("display",),
    ("export", "testing"),
    ("study", "viewer"),
    ("",),  # tauloop/__init__.py: the public names
    ("cli",),
    ("__main__",),
)
#: Packages that no other imports, so that they can be split off: heavy work on top of the rest.
SEPARABLE = ("export", "study", "viewer")
#: What compiles text: names of fields, which stand in the code, as Python's own dataclasses do; and
#: equations that were written, in which names of a file are letters and digits alone, run as their
#: reader would run them.
COMPILES = ("common.records", "model.equation_text.equation_check")
#: Names that suit everything, and hence say nothing.
EMPTY_NAMES = frozenset({"found", "one", "given", "told", "said"})
#: Files outside `tests/cli` that start the program, and what they see that no call of a function
#: shows.
STARTS_THE_PROGRAM = {
    "papers/tests/test_pages.py": "a report of what the command of a package wrote is compared with its page",
    "papers/tests/test_reproduce.py": "the papers' own command",
    "tests/compiler/test_sanitizers.py": "whole processes under sanitizers",
    "tools/compare_results.py": "two checkouts, each in a process of its own",
    "tools/full_disks.py": "full disks, in a namespace of its own",
    "tools/interrupted.py": "Ctrl-C, and what is left of processes",
    "tools/kills.py": "kills while files are written",
    "tests/test_core_installation.py": "processes that cannot import an extra",
    "tests/test_examples.py": "commands of the examples, as their pages have them",
    "tests/testing/test_extensions.py": "installed packages in processes of their own",
    "tests/test_files.py": "every command refuses the files that it cannot write before its work",
    "tests/test_full_disk.py": "full disks",
    "tests/test_fuzz.py": "any command line ends in an exit code",
    "tests/test_interrupted.py": "Ctrl-C",
    "tests/test_killed.py": "kills",
    "tests/test_start_up.py": "what commands import, and how quick they are",
    "tools/trace_files.py": "which files a command passes",
    "tools/use_wheel.py": "the wheel in an empty environment",
}
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}

#: Packages that hold data and no equations.
WITHOUT_CASADI = ("common", "mechanism", "formats", "logs")

MACHINES = tuple(sorted(path.stem for path in (PACKAGE / "mechanism" / "machines").glob("*.yaml")))
#: Modules that contain words of printers' firmware, which names kinematics as machines are named.
FIRMWARE_WORDS = (
    "calibration.measurements.firmware_logs",
    "formats.printers.gcode",
    "formats.printers.geometry",
    "formats.printers.klipper",
)
#: Modules that convert results to plain data, and make diagnostics.
CONVERTS = ("common.plain", "common.result")
SOURCES = tuple(sorted(PACKAGE.rglob("*.py")))


def module_name(path: Path) -> str:
    """Name of a module inside the package: "" for the package itself, "mechanism.model" for a file in a folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=1)
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a tree; every rule looks at those of one tree before the next."""
    return tuple(ast.walk(tree))


@pytest.fixture(autouse=True, scope="module")
def no_search_for_garbage() -> Iterator[None]:
    """Parse without it: syntax trees have no cycles, and a search visits every node again."""
    gc.disable()
    yield
    gc.enable()


def imported(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that is imported, wherever in the file and by whatever spelling."""
    own = ["tauloop", *module.split(".")] if module else ["tauloop"]
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            start = own[: len(own) - node.level + is_package] if node.level else []
            start += [node.module] if node.module else []
            for alias in node.names:
                yield node.lineno, ".".join([*start, alias.name])
        elif (
            isinstance(node, ast.Call)
            and _called(node) in ("import_module", "__import__", "find_spec")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value)


def _all_imported(text: str, module: str, is_package: bool) -> list[str]:
    return [name for _, name in imported(ast.parse(text), module, is_package)]


@cache
def looked_at(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """Lines and names of all imports of a file, and what breaks a rule in it: a file is parsed once."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports = [*imported(tree, module_name(path), path.name == "__init__.py")]
    return imports, [*broken_rules(path, text, tree)]


def imports_of_package() -> dict[str, list[tuple[int, str]]]:
    """Lines and names of all imports of each module of the package."""
    return {module_name(path): looked_at(path)[0] for path in SOURCES}


def wrong_imports(tree: ast.Module, module: str, is_package: bool = False) -> Iterator[str]:
    """Imports of a package that is not below the importing one, and CasADi where there are no equations."""
    package = module.split(".")[0]
    if package not in HEIGHT:
        yield f"{package}: a package without a place in LAYERS: say where it belongs"
        return
    for line, name in imported(tree, module, is_package):
        root, _, rest = name.partition(".")
        if root == "casadi" and package in WITHOUT_CASADI:
            yield f"line {line}: {package} imports casadi"
        if root != "tauloop":
            continue
        target = rest.split(".")[0]
        target = target if target in HEIGHT else ""
        if target != package and HEIGHT[target] >= HEIGHT[package]:
            yield f"line {line}: {package or 'tauloop'} imports {target or 'the top of the package'}"


def forbidden_calls(tree: ast.Module) -> Iterator[str]:
    """Calls of print (a library is silent), and of eval and exec (text from a file is never code)."""
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            is_plain = isinstance(node.func, ast.Name)
            is_builtin = isinstance(node.func, ast.Attribute) and _is_name(
                node.func.value, "builtins"
            )
            if (is_plain or is_builtin) and _called(node) in ("print", "eval", "exec"):
                yield f"line {node.lineno}: {_called(node)}("
        elif isinstance(node, ast.ImportFrom) and any(
            alias.name in ("print", "eval", "exec") for alias in node.names
        ):
            yield f"line {node.lineno}: imports a print, eval or exec"


def machine_names(tree: ast.Module, machines: tuple[str, ...] = MACHINES) -> Iterator[str]:
    """Names of shipped machines in identifiers and strings; a docstring may speak of a paper's machine.

    A word of an identifier ends at an underscore, so `solve_delta` is found and `deltas` is not.
    """
    docstrings = set(_docstrings(tree))
    pattern = (
        re.compile(rf"(?<![^\W_])({'|'.join(map(re.escape, machines))})(?![^\W_])")
        if machines
        else None
    )
    for node in nodes(tree):
        if pattern is None or node in docstrings:
            continue
        for text in _texts(node):
            for match in pattern.finditer(text):
                yield f"line {getattr(node, 'lineno', '?')}: {match.group()!r} in {text[:60]!r}"


def circles(imports: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Groups of modules that import each other, directly or through others.

    Args:
        imports: what each module imports, at its top, inside functions, and for types alone.
    """

    def reached(start: str) -> set[str]:
        seen, left = set[str](), [start]
        while left:
            for further in imports.get(left.pop(), ()):
                if further not in seen:
                    seen.add(further)
                    left.append(further)
        return seen

    behind = {module: reached(module) for module in imports}
    groups = {
        frozenset(m for m in behind[name] if name in behind.get(m, ()))
        for name in imports
        if name in behind[name]
    }
    yield from sorted(", ".join(sorted(group)) for group in groups)


def module_imports(names: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Modules of the package that each imports; of a name in a package, the module where it stands.

    Args:
        names: what each module imports, by its full name.
    """
    table: dict[str, set[str]] = {}
    for module, whole in names.items():
        table[module] = set()
        for name in whole:
            target = name.removeprefix("tauloop.")
            while target and target not in names:
                target = target.rpartition(".")[0]
            table[module] |= {target} - {module, ""}
    return table


def raised_by_hand(tree: ast.Module) -> Iterator[str]:
    """``if problems: raise SomeError(problems)``, which is one call: ``SomeError.raise_if_any(problems)``."""
    for node in nodes(tree):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
            made = node.body[0].exc
            if (
                isinstance(made, ast.Call)
                and _called(made).endswith("Error")
                and len(made.args) == 1
            ):
                if ast.dump(made.args[0]) == ast.dump(node.test):
                    yield f"line {node.lineno}: use {_called(made)}.raise_if_any({ast.unparse(node.test)})"


def written_by_hand(tree: ast.Module) -> Iterator[str]:
    """Conversions of results to plain data, and diagnostics, that are not made by the common helpers."""
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "as_dict":
            yield f"line {node.lineno}: state in the metadata of fields what JSON has of them"
        if isinstance(node, ast.Call) and _called(node).rpartition(".")[2] == "Diagnostic":
            yield f"line {node.lineno}: make diagnostics by `tauloop.common.result.diagnostic`"


def empty_names(tree: ast.Module) -> Iterator[str]:
    """Variables, parameters and functions whose name says of nothing what it is; public fields and methods may."""
    fields = {item for node in nodes(tree) if isinstance(node, ast.ClassDef) for item in node.body}
    targets = {field.target for field in fields if isinstance(field, ast.AnnAssign)}
    for node in nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in targets:
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node not in fields:
            name = node.name
        else:
            continue
        if name in EMPTY_NAMES:
            yield f"line {node.lineno}: {name}: name it after what it is, such as problems, rows, estimate or solution"


def imports_of_extras(tree: ast.Module) -> Iterator[str]:
    """Imports of what only an extra brings, and skips that are decided elsewhere than in ``extras.py``."""
    for line, name in imported(tree, "", False):
        if name.partition(".")[0] in EXTRAS:
            yield f"line {line}: imports {name}: extra({name!r}) skips the test where it is not installed"
    for node in nodes(tree):
        if isinstance(node, ast.Call) and _called(node) == "importorskip":
            yield f"line {node.lineno}: importorskip: extra() says which extra brings the module"


def starts_the_program(text: str) -> bool:
    """Whether a file of tests runs the command line: in its process, as a process, or by a script that does."""
    return (
        re.search(
            r"\bCliRunner\b|import command_line|from command_line|tauloop\.cli(\.app)? import main\b"
            r'|tauloop\.cli\.app import app\ntry|"(kills|interrupted|full_disks)\.py"|kills\.run\(|BIN / "tauloop"',
            text,
        )
        is not None
    )


def work_in_a_command(tree: ast.Module) -> Iterator[str]:
    """What makes a module of commands more than parsing, one call, and printing.

    It may import `tauloop` itself, what commands share, tables and figures, exports, and public
    names of one other package.
    """
    packages = set()
    for line, name in imported(tree, "cli.command", False):
        root, _, rest = name.partition(".")
        package, _, public_name = rest.rpartition(".")
        if root != "tauloop" or package.split(".")[0] in ("", "cli", "display"):
            continue
        if not package.startswith("export"):
            packages.add(package)
        module = importlib.import_module(f"tauloop.{package}")
        if public_name not in getattr(module, "__all__", ()):
            yield f"line {line}: imports {name}, which is no public name of a package"
    if len(packages) > 1:
        yield f"works with {', '.join(sorted(packages))}: make that one function of the library"


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Every string that stands alone as a statement: docstrings, and those of attributes."""
    for node in nodes(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def _texts(node: ast.AST) -> Iterator[str]:
    """The identifiers and strings that one node holds."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
        return
    for _, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item


# The rules, tried on a few lines each.


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("equations.closure", "from tauloop.compiler import block"),
        ("equations.closure", "import tauloop.compiler.block"),
        ("equations.closure", "from tauloop import compiler"),
        ("equations.closure", "from .. import compiler"),
        ("equations.closure", "from ..compiler.block import sort"),
        ("equations.closure", "def f():\n    from tauloop.cli import main"),
        ("equations.closure", "from tauloop import load"),
        ("equations.closure", "import tauloop"),
        ("equations.closure", "importlib.import_module('tauloop.simulation')"),
        ("identification.estimation.estimators", "from tauloop.display import table"),
        ("common.errors", "from tauloop import mechanism"),
        ("", "from tauloop.cli import main"),
        ("mechanism.reader", "import casadi as ca"),
        ("mechanism.reader", "from casadi import SX"),
        ("elsewhere.file", ""),
    ],
)
def test_wrong_imports_are_seen(module: str, source: str) -> None:
    assert len(list(wrong_imports(ast.parse(source), module))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("equations.closure", "from tauloop.mechanism import Mechanism\nimport casadi as ca"),
        ("equations.closure", "from tauloop.equations.tree import Frame"),
        ("equations.closure", "from .tree import Frame"),
        ("identification.estimation.estimators", "from tauloop import common, kinematics"),
        ("cli.main", "from tauloop import __version__, identify, simulate"),
        ("", "from tauloop.identification import fit_regression"),
        ("mechanism.reader", "import yaml"),
    ],
)
def test_right_imports_pass(module: str, source: str) -> None:
    assert list(wrong_imports(ast.parse(source), module)) == []


def test_relative_imports_of_a_package_start_in_it() -> None:
    tree = ast.parse("from . import tree\nfrom .. import compiler")
    names = [name for _, name in imported(tree, "equations", is_package=True)]
    assert names == ["tauloop.equations.tree", "tauloop.compiler"]


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        ("import tauloop.a.two", "from tauloop.a.one import f", ["a.one, a.two"]),
        ("def f():\n    from tauloop.a import two", "from .one import f", ["a.one, a.two"]),
        (
            "if TYPE_CHECKING:\n    from tauloop.a.two import F",
            "import tauloop.a.three",
            ["a.one, a.three, a.two"],
        ),
        ("from tauloop.a import two", "import numpy", []),
    ],
)
def test_circles_are_seen(first: str, other: str, expected: list[str]) -> None:
    sources = {"a": "", "a.one": first, "a.two": other, "a.three": "from tauloop.a.one import f"}
    names = {name: _all_imported(source, name, name == "a") for name, source in sources.items()}
    assert list(circles(module_imports(names))) == expected


@pytest.mark.parametrize(
    "source",
    [
        "print('here')",
        "eval(text)",
        "x = [exec(line) for line in text]",
        "builtins.eval(x)",
        "from rich import print",
    ],
)
def test_forbidden_calls_are_seen(source: str) -> None:
    assert len(list(forbidden_calls(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source", ["console.print('here')", "function.eval(x)", "'print(x)'", "evaluate(x)"]
)
def test_other_calls_pass(source: str) -> None:
    assert list(forbidden_calls(ast.parse(source))) == []


@pytest.mark.parametrize(
    "source",
    [
        "if name == 'five_bar': pass",
        "def solve_five_bar(): pass",
        "def solve(five_bar_length): pass",
        "f(five_bar=1)",
        "mechanism.five_bar",
        "from tauloop import five_bar",
        "f'{path}/five_bar.yaml'",
        "class A:\n    five_bar: int",
    ],
)
def test_machine_names_are_seen(source: str) -> None:
    assert len(list(machine_names(ast.parse(source), ("five_bar", "rcid")))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Leg by leg, as for the rcid."""',
        'def f():\n    """The rcid\'s leg."""',
        "five_bars = five_barred = 1",
        "five = bar = 'five bar'",
        "acrcid = 'rcids'",
    ],
)
def test_other_words_pass(source: str) -> None:
    assert list(machine_names(ast.parse(source), ("five_bar", "rcid"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import mujoco",
        "def f():\n    from pyarrow import parquet",
        "importlib.util.find_spec('cvxpy')",
        "pytest.importorskip('yaml')",
    ],
)
def test_imports_of_extras_are_seen(source: str) -> None:
    assert list(imports_of_extras(ast.parse(source)))
    assert not list(
        imports_of_extras(ast.parse("from extras import extra\nmujoco = extra('mujoco')"))
    )


@pytest.mark.parametrize(
    "source",
    [
        "found = []",
        "one, two = pair",
        "def f(given): pass",
        "[said for said in words]",
        "if told := f(): pass",
        "min(rows, key=lambda one: one.cost)",
        "def f():\n    def found(): pass",
    ],
)
def test_empty_names_are_seen(source: str) -> None:
    assert len(list(empty_names(ast.parse(source)))) == 1
    assert (
        list(empty_names(ast.parse("class Pose:\n    given: Entry\nrows = f(given=pose.given)")))
        == []
    )


@pytest.mark.parametrize("folder", ["tests", "papers", "examples"])
def test_tests_and_papers_name_things_after_what_they_are(folder: str) -> None:
    sources = [*(PACKAGE.parents[1] / folder).rglob("*.py")]
    assert len(sources) > 3
    texts = {str(path): path.read_text(encoding="utf-8") for path in sources}
    # what may bind a name; most files have these words in sentences alone
    names = "|".join(EMPTY_NAMES)
    binds = re.compile(rf"\bdef ({names})\b|\b({names})\b\s*([=,:)\]]|in\b)")
    suspects = {path: text for path, text in texts.items() if binds.search(text)}
    faults = {path: [*empty_names(ast.parse(text))] for path, text in suspects.items()}
    assert {path: names for path, names in faults.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from typer.testing import CliRunner",
        "from command_line import run_json",
        '[sys.executable, "-c", "from tauloop.cli import main; main()", "check"]',
        "from tauloop.cli.app import main",
        '[sys.executable, "kills.py", "5"]',
    ],
)
def test_starts_of_the_program_are_seen(text: str) -> None:
    assert starts_the_program(text)
    assert not starts_the_program(
        "from tauloop.cli.app import COMMANDS, app\n[sys.executable, '-c', code]"
    )


def test_tests_call_functions_and_the_program_is_started_where_no_function_would_do() -> None:
    """What a command parses and prints is tested in `tests/cli`, by what `tests/support` has for it."""
    root = PACKAGE.parents[1]
    files = [
        path.relative_to(root)
        for folder in ("tests", "tools", "papers/tests")
        for path in (root / folder).rglob("*.py")
    ]
    start = {
        path.as_posix()
        for path in files
        if starts_the_program((root / path).read_text(encoding="utf-8"))
    }
    outside = {path for path in start if not path.startswith(("tests/cli/", "tests/support/"))} - {
        "tests/test_architecture.py"
    }
    assert outside == set(STARTS_THE_PROGRAM)
    assert len(outside) <= 18


def test_conversions_and_diagnostics_by_hand_are_seen() -> None:
    source = "class A:\n    def as_dict(self): ...\nresult.Diagnostic(name='a', value=1.0)"
    assert len(list(written_by_hand(ast.parse(source)))) == 2
    assert list(written_by_hand(ast.parse("diagnostic('a', 1.0)\na.as_dict()"))) == []


def test_problems_that_are_raised_by_hand_are_seen() -> None:
    assert len(list(raised_by_hand(ast.parse("if problems:\n    raise InputError(problems)")))) == 1
    assert (
        list(raised_by_hand(ast.parse("if wrong:\n    raise InputError(Problem(where=wrong))")))
        == []
    )


# The package.


@pytest.mark.parametrize(
    "source",
    [
        "from tauloop.model.model import Model",
        "from tauloop.drives import Axis, load_drive\nfrom tauloop.logs import write_log",
        "def f():\n    from tauloop.equations.assembly.limits import require_within_limits",
    ],
)
def test_work_in_a_command_is_seen(source: str) -> None:
    assert [*work_in_a_command(ast.parse(source))]


@pytest.mark.parametrize("module", sorted({command.module for command in COMMANDS.values()}))
def test_a_command_parses_calls_and_prints(module: str) -> None:
    """What it calls is compared with the function in `cli/test_commands_and_functions.py`."""
    text = (PACKAGE / "cli" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert [*work_in_a_command(ast.parse(text))] == []


def test_packages_that_can_be_split_off_are_imported_by_the_top_alone() -> None:
    """They may import each other."""
    allowed = {*SEPARABLE, "cli", ""}
    wrong: list[str] = []
    for module, imports in imports_of_package().items():
        if module.split(".")[0] in allowed:
            continue
        for line, name in imports:
            if name.startswith(tuple(f"tauloop.{package}." for package in SEPARABLE)):
                wrong.append(f"{module}, line {line}: {name}")
    assert wrong == []


def test_no_modules_import_each_other() -> None:
    """Imports inside functions and for types count too; those of a package's public names are late, and may."""
    imports = module_imports(
        {module: [name for _, name in places] for module, places in imports_of_package().items()}
    )
    assert len(imports["model.model"]) > 5
    assert list(circles(imports)) == []


def test_there_is_something_to_look_at() -> None:
    assert {module_name(path).split(".")[0] for path in SOURCES} >= {
        "common",
        "mechanism",
        "equations",
    }
    assert "delta" in MACHINES


def broken_rules(path: Path, text: str, tree: ast.Module) -> Iterator[str]:
    """What breaks a rule in a file of the package; a rule about words is put to files that have them."""
    module = module_name(path)
    yield from wrong_imports(tree, module, path.name == "__init__.py")
    yield from raised_by_hand(tree)
    if module not in COMPILES and re.search(r"\b(print|eval|exec)\b", text):
        yield from forbidden_calls(tree)
    if module not in FIRMWARE_WORDS and re.search("|".join(MACHINES), text):
        yield from machine_names(tree)
    if module not in CONVERTS and re.search(r"as_dict|Diagnostic\(", text):
        yield from written_by_hand(tree)
    if re.search(rf"\b({'|'.join(EMPTY_NAMES)})\b", text):
        yield from empty_names(tree)


@pytest.mark.parametrize(
    "package", sorted({path.relative_to(PACKAGE).parts[0] for path in SOURCES})
)
def test_files_keep_the_rules(package: str) -> None:
    sources = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] == package]
    broken = {path.relative_to(PACKAGE).as_posix(): looked_at(path)[1] for path in sources}
    assert {path: rules for path, rules in broken.items() if rules} == {}


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert not [
        str(folder.relative_to(PACKAGE))
        for folder in folders
        if not (folder / "__init__.py").is_file()
    ]


def test_public_names_resolve() -> None:
    tauloop = importlib.import_module("tauloop")
    assert tauloop.__all__
    assert len(set(tauloop.__all__)) == len(tauloop.__all__)
    assert not [name for name in tauloop.__all__ if not hasattr(tauloop, name)]


def test_code_size_counts_lines_and_tokens():
    """Oracle: counted by hand."""
    head = '"""A docstring\nof two lines."""\n\nimport ast  # an import\n'
    text = head + "\n\ndef f(x):\n    # a comment\n    return [\n        x,\n    ]\n"
    assert python_size(text) == CodeSize(lines=4, tokens=11)
    assert (
        c_lines(
            "/* a comment\n   of two lines */\n#include <math.h>\n\nint f(void) /* and one */\n{\n}\n"
        )
        == 3
    )


def test_no_test_imports_a_test_and_folders_of_tests_mirror_packages():
    tests = PACKAGE.parents[1] / "tests"
    files = [*tests.rglob("test_*.py")]
    taken = [
        path.name
        for path in files
        if re.search(r"^\s*(?:from|import) test_", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert taken == []
    folders = {path.parent.relative_to(tests) for path in files}
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= folders
    assert [folder for folder in folders if not (PACKAGE / folder).is_dir()] == []


def test_tests_run_without_extras():
    """Only ``extras.py`` asks for what they bring (`make core-test` runs without); its table is pyproject.toml's."""
    tests = [
        path
        for folder in ("tests", "papers/tests")
        for path in sorted((PACKAGE.parents[1] / folder).rglob("*.py"))
    ]
    texts = {path.name: path.read_text("utf-8") for path in tests}
    suspects = {
        name: text
        for name, text in texts.items()
        if re.search("|".join(["importorskip", *EXTRAS]), text)
    }
    imports = {name: [*imports_of_extras(ast.parse(text))] for name, text in suspects.items()}
    assert [name for name, places in imports.items() if places] == ["extras.py"]
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    for name, package in EXTRAS.values():
        assert any(
            re.match(rf"{package}\b", line) for line in project["optional-dependencies"][name]
        )


def test_no_two_classes_have_one_name():
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for match in re.finditer(
            r"^[ ]*class (\w+)\b.*:$", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            places.setdefault(match.group(1), []).append(f"{path.relative_to(PACKAGE)}")
    assert len(places) > 500
    assert {name: lines for name, lines in places.items() if len(lines) > 1} == {}

"""What a command or a call imports: no more than it needs, since libraries take longer to start than the work itself.

Every case runs in a process of its own and looks at `sys.modules`; none looks at a clock.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from compiled_machines import compilers
from extras import extra
from typer.core import TyperCommand
from typer.testing import CliRunner

import tauloop
from tauloop.cli.app import QuickCommand
from tauloop.cli.commands import COMMANDS
from tauloop.common.names import lazy
from tauloop.common.names.lazy import lazy_functions, lazy_names
from tauloop.compiler.c.calling.embedded import find_embedded_compiler
from tauloop.equations.formulations import NEWTON_EULER
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.model import FunctionOptions

#: Packages that are slow to import: each takes from 0.05 to 0.6 s.
SLOW = ("casadi", "matplotlib", "numpy", "pandas", "pydantic", "scipy", "xarray", "yaml")
#: Packages whose public names are imported late.
LATE = (
    "tauloop",
    "tauloop.compiler",
    "tauloop.compiler.c",
    "tauloop.display",
    "tauloop.equations.assembly",
    "tauloop.formats",
    "tauloop.kinematics",
    "tauloop.mechanism",
    "tauloop.model",
)
#: Columns of a terminal, and what stands before a command's summary in the list of commands.
WIDTH, BEFORE = 78, len("  workspace  ")

TELLS = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)))
"""


def imported(code: str, *arguments: str) -> set[str]:
    """Packages and modules that a new process has imported after some code."""
    done = subprocess.run(
        [sys.executable, "-c", TELLS.format(code=code), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def slow(code: str, *arguments: str) -> set[str]:
    return imported(code, *arguments) & set(SLOW)


def command(*arguments: str) -> str:
    """Code that runs a command line."""
    return f"""
from tauloop.cli.app import app
try:
    app({list(arguments)!r})
except SystemExit as end:
    assert not end.code, end.code
"""


def test_the_look_at_modules_sees_them():
    assert slow("import xarray") >= {"numpy", "pandas", "xarray"}


def test_the_list_of_commands_needs_no_library():
    assert slow(command("--help")) == set()


def test_the_package_alone_needs_no_library():
    assert slow(f"import {', '.join(LATE)}, tauloop.common.errors") == set()


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_a_function_from_the_cache_needs_no_model(tmp_path):
    code = "import pathlib, tauloop; tauloop.load_function('four_bar', folder=pathlib.Path(sys.argv[1])).bind()[1]()"
    assert slow(code, str(tmp_path)) >= {"casadi", "numpy", "yaml"}
    assert slow(code, str(tmp_path)) == {"numpy"}


def test_a_log_as_plain_arrays_needs_no_data_frames(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(
        "time [s],position.motor [rad],force.motor [N m]\n0,1,2\n1,2,3\n2,3,4\n", encoding="ascii"
    )
    code = "from tauloop.logs import read_signals; assert len(read_signals(sys.argv[1]).time) == 3"
    assert slow(code, str(log)) == {"numpy"}


def test_identification_needs_no_data_frames():
    assert not imported("import tauloop.cli.measure.identify") & {
        "matplotlib",
        "pandas",
        "xarray",
        "cvxpy",
        "scipy.signal",
    }


# Names that are imported late.


def homes(package: str) -> dict[str, str]:
    """Module of every public name, as the imports for type checkers say."""
    path = Path(str(importlib.import_module(package).__file__))
    table = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module) != package:
            table |= {alias.name: str(node.module) for alias in node.names if alias.asname}
    return table


@pytest.mark.parametrize("package", LATE)
def test_late_names_are_those_of_the_type_checker(package):
    module, places = importlib.import_module(package), homes(package)
    assert set(module.__all__) - {"__version__"} == set(places)
    for name, place in places.items():
        assert getattr(module, name) is getattr(importlib.import_module(place), name)


@pytest.mark.parametrize("package", LATE)
def test_no_late_name_is_that_of_a_module_beside_it(package):
    folder = Path(str(importlib.import_module(package).__file__)).parent
    beside = {path.stem for path in folder.iterdir() if path.suffix in ("", ".py")}
    assert not beside & (set(homes(package)) - {"errors"})


def test_an_unknown_name_is_no_attribute():
    assert not hasattr(tauloop, "frobnicate")
    result, names, public = lazy_names("tauloop", "early")
    assert public == sorted([*(set(tauloop.__all__) - {"__version__"}), "early"])
    assert {*names()} - {*public} == {*dir(tauloop)} - {*tauloop.__all__}
    with pytest.raises(AttributeError, match="nothing"):
        result("nothing")


def test_no_garbage_is_searched_while_a_late_name_is_imported():
    code = """
import gc, sys, tauloop
states = []
class Recorder:
    def find_spec(*_):
        states.append(gc.isenabled())
sys.meta_path.insert(0, Recorder)
tauloop.Model
assert states and not any(states) and gc.isenabled()
gc.disable()
tauloop.load
assert not gc.isenabled()
"""
    assert "casadi" in imported(code)


def test_imported_objects_are_not_searched_for_garbage_afterwards():
    code = """
import gc, tauloop
searched = []
tauloop.mechanism
gc.collect()
gc.callbacks.append(lambda phase, info: searched.append(len(gc.get_objects(generation=0))))
tauloop.Model
young = sum(len(gc.get_objects(generation=k)) for k in (0, 1))
gc.callbacks.clear()
assert young < 1000, young
assert max(searched, default=0) < 5000, searched
assert gc.get_freeze_count() == 0
gc.freeze()
frozen = gc.get_freeze_count()
tauloop.load
assert gc.get_freeze_count() == frozen  # what the caller froze stays frozen
"""
    assert "casadi" in imported(code)


def late_calls(text: str) -> list[tuple[str, str]]:
    """Module and name of every late function of a file."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    late = [call for call in calls if ast.unparse(call.func) == "lazy_functions"]
    words = [[ast.literal_eval(argument) for argument in call.args] for call in late]
    return [(module, name) for module, *names in words for name in names]


def test_late_functions_are_those_of_the_type_checker():
    folder = Path(tauloop.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    late = {path: late_calls(text) for path, text in texts.items() if "lazy_functions(" in text}
    count = 0
    for path, calls in late.items():
        for module, name in calls:
            count += 1
            assert inspect.isroutine(getattr(importlib.import_module(module), name)), (path, name)
            typed = rf"    from {module} import (\([^)]*|.*)\b{name}\b"
            assert re.search(typed, texts[path]), (path, name)
    assert count > 20


def test_a_late_function_is_the_function_of_its_module():
    parts, json_dump = *lazy_functions("posixpath", "split"), lazy_functions("json", "dumps")[0]
    assert parts("a/b") == ("a", "b")
    assert pickle.loads(pickle.dumps(json_dump))([1], indent=None) == "[1]"


def test_a_late_function_is_imported_once(monkeypatch):
    (split,) = lazy_functions("posixpath", "split")
    split("a/b")
    monkeypatch.setattr(lazy, "without_collection", pytest.fail)
    assert split("c/d") == ("c", "d")


def test_a_late_name_is_imported_once():
    result, *_ = lazy_names("tauloop.mechanism")
    module = importlib.import_module("tauloop.mechanism")
    vars(module).pop("shipped_machines", None)
    assert module.shipped_machines is result("shipped_machines")
    assert "shipped_machines" in vars(module)


# The list of commands, and a default, that are said twice so as to import nothing.


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_summary_of_one_line(name):
    summary = COMMANDS[name].summary
    assert summary.endswith((".", "?"))
    assert BEFORE + len(summary) <= WIDTH


def test_the_formulation_of_functions_is_the_models():
    assert FunctionOptions().formulation == NEWTON_EULER.name


# What a command needs.


def test_the_list_of_machines_needs_an_index_and_no_library():
    assert slow(command("list")) == set()


@pytest.mark.parametrize("words", ["check", "show", "dynamics", "fk", "modes", "workspace"])
def test_a_machine_is_studied_without_what_simulates_draws_or_reads_logs(words):
    assert slow(command(words, "delta")) == {"casadi", "numpy", "yaml"}


@pytest.mark.skipif(find_embedded_compiler() is None, reason="needs the embedded compiler")
def test_a_first_torque_starts_no_program_and_writes_no_message():
    code = """
import tauloop
model = tauloop.Model(tauloop.load("delta"))
position = model.platform_position(model.assembly.q)
model.inverse_dynamics(position, [0.0] * 3, [0.0] * 3)
"""
    unused = {"logging", "subprocess", "shlex", "difflib", "shutil", "tempfile", "sysconfig"}
    unused |= {"platformdirs", "lzma", "bz2", "hashlib", "numpy.random"}
    # Parts of Tauloop that a first torque does not need.
    unused |= {
        f"tauloop.{name}"
        for name in (
            "compiler.derivatives",
            "compiler.functions.terms",
            "equations.energy",
            "equations.outputs",
            "equations.assembly.distant_start",
            "equations.assembly.freedoms.spins",
            "mechanism.description.sections.curves",
            "mechanism.links.rigid_tree",
            "model.derivatives",
            "model.positions.following",
            "model.products",
        )
    }
    assert not imported(code) & unused


def test_a_model_needs_no_program_and_nothing_that_runs_one():
    code = "import tauloop; tauloop.Model(tauloop.load('delta'))"
    tells = (
        "print([n for n in sys.modules if n.startswith(('tauloop.compiler.c', "
        "'tauloop.compiler.functions.motion', 'scipy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {tells}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_viewer_in_the_browser_starts_without_figures():
    extra("viser")
    code = "import tauloop; tauloop.view('delta').viewer(port=0).stop()"
    assert not imported(code) & {"matplotlib.figure", "matplotlib.backend_bases", "pandas"}


# Values of the command line that are converted without Pydantic.


def kinds(
    text: str,
    ratio: float = 0.5,
    count: int = 3,
    entry: Annotated[Entry, typer.Option()] = PLATFORM,
    file: Path | None = None,
    names: Annotated[list[str] | None, typer.Option()] = None,
    tidy: bool = False,
) -> None:
    typer.echo(repr((text, ratio, count, entry, file, names, tidy)))


@pytest.mark.parametrize(
    "words",
    [
        "a",
        "a --ratio 1.5 --count 4 --entry actuators --file b --names c --names d --tidy",
        "a --ratio 1e3 --count 1.0 --entry ACTUATORS",
        "a --ratio x",
        "a --count 1.5",
        "a --entry x",
        "",
        "a --frobnicate",
    ],
)
def test_values_are_typers_whoever_converts_them(words):
    rows = []
    for kind in (TyperCommand, QuickCommand):
        single = typer.Typer(rich_markup_mode=None)
        single.command(cls=kind)(kinds)
        done = CliRunner().invoke(single, words.split())
        rows.append((done.exit_code, done.output))
    # which is Pydantic's word, not ours
    assert (rows[0][0], rows[0][1].replace("Value error, ", "")) == rows[1]

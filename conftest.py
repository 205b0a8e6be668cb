"""What all tests share: reproducible random input, the measured data, and a word on what cannot be run here."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from older_processors import PROCESSORS, environment

ROOT = Path(__file__).resolve().parent

# A working tree tests its own papers, whichever one is installed; so do the commands that a test
# starts.
sys.path.insert(0, str(ROOT / "papers" / "src"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "papers" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# Test files and the library are compiled once, not anew in each of the hundreds of processes that
# tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Figures are drawn to files, never to a screen; commands started by a test inherit this.
os.environ["MPLBACKEND"] = "Agg"

# The same examples on every machine and in every run, so that a red test is red for everyone. A
# deadline, or a test called too slow, would time the machine and not the code.
settings.register_profile(
    "tauloop",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tauloop")


def shared_folder() -> Path:
    """Where the measured data and the papers lie: beside the repository, or where TAULOOP_SHARED says."""
    return Path(os.environ.get("TAULOOP_SHARED") or ROOT.parent / "shared")


#: New objects, less those that have gone, after which Python searches for garbage.
GARBAGE = 50_000
#: Modules of the extras by what they are called, and what is not run without them.
MODULES = (
    ("Pinocchio", "pinocchio", "no comparison with it"),
    ("MuJoCo", "mujoco", "no comparison with it"),
    ("pyarrow", "pyarrow", "no Parquet logs"),
    ("FMPy", "fmpy", "no FMU is simulated"),
    ("rosbags", "rosbags", "no bags of ROS"),
    ("xacro", "xacro", "no xacro is expanded"),
    ("JAX", "jax", "no function is differentiated by it"),
    ("PyTorch", "torch", "no function is differentiated by it"),
)
#: Programs by Debian's package, and what is not run without them.
PROGRAMS = (
    ("linuxcnc-uspace", "linuxcnc", "no kinematics module is run in LinuxCNC"),
    ("linuxcnc-uspace-dev", "halcompile", "no kinematics module is built for LinuxCNC"),
    ("gcc-arm-none-eabi", "arm-none-eabi-gcc", "nothing is compiled for a Cortex-M"),
    ("qemu-system-arm", "qemu-system-arm", "nothing is run on a Cortex-M"),
    ("arduino-builder", "arduino-builder", "no Arduino library is compiled"),
    ("clang", "clang", "generated code is compiled by gcc alone"),
    ("cppcheck", "cppcheck", "it reads no generated code"),
    ("cmake", "cmake", "no CMake package is built"),
)


def absent() -> list[str]:
    """What is missing here, each with what is therefore not run or not seen."""
    missing = [
        f"{name}: {what}"
        for name, module, what in MODULES
        if importlib.util.find_spec(module) is None
    ]
    missing += [
        f"Debian's {package}: {what}"
        for package, program, what in PROGRAMS
        if shutil.which(program) is None
    ]
    if not list(Path("/usr").glob("lib/*/pkgconfig/sdformat*.pc")):
        missing.append("Debian's libsdformat-dev: Gazebo's reader reads no SDF")
    if not shared_folder().is_dir():
        missing.append(
            f"{_as_named(shared_folder())}: no measured data, so nothing is identified from a real log"
        )
    if not any(shutil.which(compiler) for compiler in ("cc", "gcc", "clang")):
        missing.append("C compiler: no generated code is compiled")
    return missing


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite; `--update-golden` is the only way to change the golden files."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files again; review them like code",
    )
    parser.addoption(
        "--update-tables",
        action="store_true",
        help="write measured tables into the pages; review them",
    )
    parser.addoption("--nightly", action="store_true", help="run the tests of `make nightly` too")
    parser.addoption(
        "--processor",
        choices=sorted(PROCESSORS),
        help="run as on an older processor, on any x86-64 one",
    )
    parser.addoption(
        "--strict-skips",
        action="store_true",
        help="fail where a test is skipped that needs no GPU, ...",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a folder of measured data that does not exist, and set up an older processor before workers start."""
    if os.environ.get("TAULOOP_SHARED") and not shared_folder().is_dir():
        raise pytest.UsageError(f"TAULOOP_SHARED={os.environ['TAULOOP_SHARED']} is not a folder")
    processor = config.getoption("--processor")
    if processor and not hasattr(config, "workerinput"):
        try:
            os.environ |= environment(processor, ROOT / "out" / "processors" / processor)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    """Say at the top of the report what is not run."""
    return "absent, hence not run: " + ("; ".join(absent()) or "nothing")


#: Beginnings of the reasons to skip that `--strict-skips` accepts: no GPU, no PyTorch, no peers of the
#: benchmarks, no ordinary user.
EXPECTED_SKIPS = (
    "needs the extra `bench`",
    "needs the extra `gpu`",
    "needs the extra `torch`",
    "PyTorch is installed",
    "needs a user whom permissions bind",
)
#: Further ones where the measured data are not next to the repository.
DATA_SKIPS = re.compile(r"needs (the measured|data/|models/)|the models of others are not here")


def unexpected_skips(terminal: pytest.TerminalReporter) -> list[str]:
    """Return the place and the reason of each skipped test that `--strict-skips` refuses."""
    lines = set()
    for report in terminal.stats.get("skipped", []):
        path, line, text = report.longrepr
        reason = text.removeprefix("Skipped: ")
        is_expected = reason.startswith(EXPECTED_SKIPS)
        if not shared_folder().is_dir():
            is_expected = is_expected or DATA_SKIPS.match(reason) is not None
        if not is_expected:
            lines.add(f"{os.path.relpath(path, ROOT)}:{line}: {reason}")
    return sorted(lines)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail with ``--strict-skips`` where a test was skipped that could have run; the summary names it."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    is_strict = session.config.getoption("--strict-skips") and not hasattr(
        session.config, "workerinput"
    )
    if is_strict and session.exitstatus == pytest.ExitCode.OK and unexpected_skips(terminal):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name what ``--strict-skips`` refuses."""
    lines = unexpected_skips(terminalreporter) if config.getoption("--strict-skips") else []
    if lines:
        terminalreporter.section("skipped, although --strict-skips expects it to run", red=True)
        for line in lines:
            terminalreporter.write_line(line)


def nightly_names() -> tuple[list[str], list[str]]:
    """Beginnings of the names of the tests that ``nightly.txt`` leaves to `make nightly`, and its exceptions."""
    lines = (ROOT / "tests" / "nightly.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    exceptions = [name.removeprefix("!") for name in names if name.startswith("!")]
    return [name for name in names if not name.startswith("!")], exceptions


def short_name(nodeid: str) -> str:
    """The name of a test without the folders of its file."""
    path, colons, name = nodeid.partition("::")
    return path.rsplit("/", 1)[-1] + colons + name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what ``nightly.txt`` names, and leave the nightly tests out unless they are asked for."""
    names, exceptions = map(tuple, nightly_names())
    for item in items:
        name = short_name(item.nodeid)
        if name.startswith(names) and not name.startswith(exceptions):
            item.add_marker(pytest.mark.nightly)
    if config.getoption("--nightly"):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly")]
    if left_out and len(left_out) < len(items):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while modules are imported and tests collected, nearly all of which stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What is imported and collected stays: a search for garbage need not look at it, thousands of times.

    JAX and Hypothesis do something before and after each search, so searches are rare as well.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for temporary files that goes with the tests: workers, browsers and FMPy clear none away."""
    folder, before, setting = (
        tmp_path_factory.mktemp("temporary"),
        tempfile.tempdir,
        os.environ.get("TMPDIR"),
    )
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    yield
    tempfile.tempdir = before
    os.environ.pop("TMPDIR")
    os.environ.update({} if setting is None else {"TMPDIR": setting})
    shutil.rmtree(folder, ignore_errors=True)


class _CompilerErrors(logging.Handler):
    """Warnings that generated C could not be compiled, which users see as slow calls only."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if "error:" in message and ("compile" in message or "compiler" in message):
            self.messages.append(message)


_COMPILER_ERRORS = _CompilerErrors()
logging.getLogger("tauloop").addHandler(_COMPILER_ERRORS)


@pytest.fixture(autouse=True)
def generated_code_compiles() -> Iterator[None]:
    """A test fails if a compiler refuses generated code, although results are then interpreted."""
    _COMPILER_ERRORS.messages.clear()
    yield
    assert _COMPILER_ERRORS.messages == []


class _Patches(pytest.MonkeyPatch):
    """Patches after which models do not use code that was built before them."""


def _forgetting(name: str) -> Callable[..., None]:
    """Return a method of `pytest.MonkeyPatch` after which models are built anew."""
    method = getattr(pytest.MonkeyPatch, name)

    def patch(*arguments: object, **options: object) -> None:
        method(*arguments, **options)
        forget_models()

    return patch


# `setenv` and `delenv` call two of these.
for _name in ("setattr", "delattr", "setitem", "delitem", "undo"):
    setattr(_Patches, _name, _forgetting(_name))


@pytest.fixture
def monkeypatch() -> Iterator[pytest.MonkeyPatch]:
    """Pytest's fixture, with models that share no code across a patch."""
    patches = _Patches()
    yield patches
    patches.undo()


def forget_models() -> None:
    """Let further models build their programs anew."""
    if "tauloop.model.model" in sys.modules:
        sys.modules["tauloop.model.model"].ASSEMBLIES.clear()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of measured data, machines and papers; the test is skipped where it is not there."""
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"needs the measured data in {_as_named(folder)}, which is not here")
    return folder


def _as_named(folder: Path) -> str:
    return os.environ.get("TAULOOP_SHARED") or os.path.relpath(folder, ROOT)

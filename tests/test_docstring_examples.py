"""Every name that the tab key offers behind `tl.` has an example in its docstring, and the examples run."""

from __future__ import annotations

import doctest
import io
from pathlib import Path

import pytest
from extras import extra
from matplotlib import pyplot

import tauloop as tl
from tauloop.compiler.c.calling.compiler import find_compiler

ROOT = Path(__file__).parents[1]
NAMES = [name for name in dir(tl) if name != "__version__"]
#: What an example needs beyond the core.
NEEDS = {
    "demo": ("plotly", "viser"),
    "fold_logs": ("pyarrow",),
    "link_parameters": ("cvxpy",),
    "run_study": ("pyarrow",),
    "verify": ("mujoco",),
    "write_report": ("plotly",),
}
COMPILED = (
    "ballbar",
    "follow_path",
    "simulate_collision_detection",
    "export_c",
    "fit_drive_line",
    "load_function",
    "run_study",
    "tune_drive_line",
)


def example(name: str) -> str:
    return getattr(tl, name).__doc__ or ""


def test_no_name_lacks_an_example() -> None:
    assert len(NAMES) > 100
    assert [name for name in NAMES if ">>> import tauloop as tl\n" not in example(name)] == []


def test_examples_take_nothing_but_what_is_behind_the_tab_key() -> None:
    """NumPy apart: a notebook's user finds the rest."""
    imports = {
        line.strip()
        for name in NAMES
        for line in example(name).splitlines()
        if line.strip().startswith((">>> import", ">>> from"))
    }
    assert imports == {">>> import tauloop as tl", ">>> import numpy as np"}


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(name, ()):
        extra(package)
    if name in COMPILED and find_compiler() is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    test = doctest.DocTestParser().get_doctest(example(name), {}, name, None, 0)
    failed, tried = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ).run(test, out=printed.write)
    pyplot.close("all")
    assert tried > 1
    assert not failed, printed.getvalue()

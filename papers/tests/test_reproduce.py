"""`tauloop paper reproduce`: what it lists and refuses; and the papers use public names of Tauloop only."""

from __future__ import annotations

import ast
import importlib
import json
import time
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from command_line import run, run_json

import tauloop_papers
from tauloop.common.errors import InputError
from tauloop.common.result import plain
from tauloop_papers import EXPERIMENTS, reproduce
from tauloop_papers.notes import claims

SOURCES = sorted(Path(tauloop_papers.__file__).parent.rglob("*.py"))


def test_unknown_experiments_are_refused() -> None:
    with pytest.raises(InputError, match="no experiment"):
        reproduce("gantry-tau-calibratoin")


def test_the_command_lists_experiments_and_refuses_at_once(tmp_path: Path) -> None:
    listed = run_json("paper", "reproduce")["experiments"]
    assert [item["name"] for item in listed] == list(EXPERIMENTS)
    assert all(item["budget"] > 0 for item in listed)
    run("paper", "reproduce", "nothing", code=2)
    for words in (["all"], [], ["rcid", "--note"]):
        assert (
            "for one experiment"
            in run("paper", "reproduce", *words, "--machine", "delta", code=2).output
        )
    assert "has no body" in run("paper", "reproduce", "rcid", "--machine", "delta", code=2).output
    start = time.monotonic()
    run("paper", "reproduce", "all", "--out", tmp_path / "no" / "\0", code=2)
    assert time.monotonic() - start < 10


def test_the_command_prints_a_note_and_names_those_that_there_are() -> None:
    answer = run_json("paper", "reproduce", "dual-motor", "--note")
    assert answer["claims"] == [{"what": c.what, "figure": c.figure} for c in claims("dual-motor")]
    assert "one motor" in run("paper", "reproduce", "dual-motor", "--note").output
    for words in (["--note"], ["all", "--note"], ["gantry-tau-calibration", "--note"]):
        assert "dual-motor" in run("paper", "reproduce", *words, code=2).output


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_complete_and_plain(name: str) -> None:
    settings = EXPERIMENTS[name].settings
    assert is_dataclass(settings)
    json.dumps(plain(settings), allow_nan=False)


def hidden_names(tree: ast.Module) -> Iterator[str]:
    """Names of Tauloop that are not public, and attributes that begin with an underscore."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("tauloop.") or (
                    alias.name == "tauloop" and alias.asname is None
                ):
                    yield f"line {node.lineno}: import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tauloop":
            module = importlib.import_module(str(node.module))
            public = getattr(module, "__all__", None)
            for alias in node.names:
                # All names of the modules in `common` are public.
                if public is not None:
                    is_public = alias.name in public
                else:
                    is_common = str(node.module).startswith("tauloop.common.")
                    is_public = is_common and not alias.name.startswith("_")
                if not is_public:
                    yield f"line {node.lineno}: {node.module}.{alias.name}"
        elif (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.endswith("__")
        ):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield f"line {node.lineno}: .{node.attr}"
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("tauloop.")
        ):
            yield f"line {node.lineno}: {node.value!r}"


@pytest.mark.parametrize(
    "source",
    [
        "from tauloop.identification.estimation.fitting import fit_regression",
        "from tauloop.identification import estimation",
        "from tauloop.common.errors import _lines",
        "import tauloop.model",
        "import tauloop",
        "model._assembly",
        "importlib.import_module('tauloop.model.model')",
    ],
)
def test_hidden_names_are_seen(source: str) -> None:
    assert len(list(hidden_names(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from tauloop import Model",
        "from tauloop.identification import fit_regression",
        "from tauloop.common.errors import InputError",
        "from tauloop_papers.tracker.fits import simple_fit",
        "self._assembly = np.linalg.inv(x)",
    ],
)
def test_public_names_pass(source: str) -> None:
    assert list(hidden_names(ast.parse(source))) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_papers_use_public_names_only(path: Path) -> None:
    assert list(hidden_names(ast.parse(path.read_text(encoding="utf-8")))) == []

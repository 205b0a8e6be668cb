"""YAML files of every kind with other forms in them: keys that are no texts, values in values, aliases, depth."""

from __future__ import annotations

import copy
import datetime
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzz.targets import TARGETS

import tauloop as tl
from conftest import ROOT
from tauloop.common.errors import DescriptionError, Problem, TauloopError
from tauloop.drives.plant_fit import load_steps
from tauloop.drives.reader import load_drive
from tauloop.logs import load_recording
from tauloop.motion import load_cycle

#: What may stand in the place of any value, and of any key.
VALUES: tuple[Any, ...] = (
    {},
    [],
    {"value": {"value": "1 kg"}},
    {"value": ["1 kg"]},
    {"value": "1 kg", "status": ["chosen"], "bounds": [{"value": "1 kg"}, "2 kg"]},
    [["a"]],
    {1: "x"},
    None,
    datetime.date(2020, 1, 1),
    "1" * 500,
)
KEYS: tuple[Any, ...] = (1, None, True, datetime.date(2020, 1, 1), "", "a b", "[x]", "x" * 1000)
#: Places that are tried in each file by day and by night, spread over it.
DAILY, NIGHTLY = 3, 12

STEPS = """
format: tauloop-steps/1
steps:
  small: {step: 1 mm, measured: {settling_time: 20 ms, overshoot: 0.1 mm}, set: {kp: 150}}
"""


class Dumper(yaml.SafeDumper):
    """Writes equal values twice, with no alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@cache
def delta() -> tl.Model:
    return tl.Model(tl.load("delta"))


def example(folder: str, name: str) -> Callable[[Path], Path]:
    """A file of an example, with all that lies beside it, below a folder."""

    def copied(target: Path) -> Path:
        shutil.copytree(ROOT / folder, target, dirs_exist_ok=True)
        return target / name

    return copied


def written(text: str) -> Callable[[Path], Path]:
    def made(target: Path) -> Path:
        target.mkdir(exist_ok=True)
        (target / "good.yaml").write_text(text, encoding="utf-8")
        return target / "good.yaml"

    return made


def side_file(target: Path) -> Path:
    return written(TARGETS["side"].corpus()[0].decode())(target)


FILES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "machine": (example("src/tauloop/mechanism/machines", "five_bar.yaml"), tl.load),
    "cables": (example("tests/cases", "cables8.yaml"), tl.load),
    "recording": (example("examples/tx40", "recording.yaml"), load_recording),
    "study": (example("examples/delta_tolerances", "study.yaml"), tl.load_study),
    "grid of a study": (example("examples/studies", "workspace.yaml"), tl.load_study),
    "list of a study": (example("examples/studies", "bootstrap.yaml"), tl.load_study),
    "cycle": (example("examples/cycles", "adept.yaml"), lambda path: load_cycle(path, delta())),
    "drive": (example("src/tauloop/drives/lines", "dual_motor_axis.yaml"), load_drive),
    "steps": (written(STEPS), load_steps),
    "measurements": (example("examples/delta_printer", "six.yaml"), TARGETS["measurements"].read),
    "side": (side_file, TARGETS["side"].read),
}


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values stand: keys and numbers from the top."""
    yield path
    children = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


def with_value(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(data)
    changed[path[0]] = with_value(changed[path[0]], path[1:], value)
    return changed


def with_key(data: Any, path: tuple[Any, ...], key: Any) -> Any:
    """With another key in the place of the last one of a path, its value as it is and in its place."""
    if len(path) > 1:
        return with_value(data, path[:1], with_key(data[path[0]], path[1:], key))
    if not isinstance(data, dict):
        return data
    return {(key if old == path[0] else old): value for old, value in data.items()}


def refused(read: Callable[[Path], object], path: Path) -> tuple[Problem, ...]:
    """The problems of a file; none of one that is read."""
    try:
        read(path)
    except TauloopError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("name", FILES)
def test_another_form_at_any_place_is_read_or_refused_by_name(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    make, read = FILES[name]
    path = make(tmp_path / "files")
    read(path)
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    tried = list(places(data))
    count = NIGHTLY if pytestconfig.getoption("--nightly") else DAILY
    chosen = tried[:: max(len(tried) // count, 1)]
    changed = [with_value(data, place, value) for place in chosen for value in VALUES]
    changed += [with_key(data, place, key) for place in chosen if place for key in KEYS]
    for content in changed:
        path.write_text(
            yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        refusal = refused(read, path)
        assert all(problem.what and problem.remedy for problem in refusal), (content, refusal)


def test_a_value_in_a_value_is_refused_where_it_stands() -> None:
    text = Path(ROOT / "tests/cases/one_joint.yaml").read_text(encoding="utf-8")
    place = re.search(r"mass: ([^,}\n]+)", text)
    assert place is not None
    qualified = text.replace(place[1], f"{{value: {place[1]}}}", 1)
    assert tl.loads(qualified).name
    nested = text.replace(place[1], f"{{value: {{value: {place[1]}}}}}", 1)
    named = f"parameters: {{extra: {{value: {{value: 1 kg}}}}}}\n{text}"
    for wrong in (nested, named):
        with pytest.raises(DescriptionError, match=r"\.value: this is a mapping"):
            tl.loads(wrong)


def laughing() -> str:
    """Nine lists, each with nine times the one before."""
    names = "abcdefghi"
    lines = ["a: &a [x, x]"]
    for before, name in pairwise(names):
        lines.append(f"{name}: &{name} [{', '.join(9 * [f'*{before}'])}]")
    return "\n".join(lines)


HOSTILE = {
    "aliases that multiply": (laughing(), "anchor &a is not allowed"),
    "an alias": ("a: *b", "alias *b is not allowed"),
    "a merge": ("<<: *b", "alias *b is not allowed"),
    "a list as a key": ("? [a, b]\n: x", "a key is a list or a mapping"),
    "a flow list as a key": ("[a, b]: x", "a key is a list or a mapping"),
    "a mapping as a key": ("? {a: b}\n: x", "a key is a list or a mapping"),
    "lists in lists": ("a: " + "[" * 500 + "]" * 500, "nested more than 32 levels deep"),
    "mappings in mappings": (
        "".join(f"{' ' * k}k:\n" for k in range(200)),
        "nested more than 32 levels deep",
    ),
    "a type of Python": ("a: !!python/object/apply:os.system [ls]", "tag"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", HOSTILE)
def test_texts_that_grow_and_keys_that_are_no_texts_are_refused_in_files_of_every_kind(
    name: str, fault: str, tmp_path: Path
) -> None:
    make, read = FILES[name]
    path = make(tmp_path / "files")
    text, what = HOSTILE[fault]
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TauloopError, match=re.escape(what)) as caught:
        read(path)
    assert caught.value.problems[0].remedy


@pytest.mark.parametrize("word", ["x" * 500, "x" * 5000, "é" * 300])
def test_a_word_too_long_for_a_file_is_refused(word: str) -> None:
    with pytest.raises(DescriptionError, match=r"cannot be read|no machine with this name"):
        tl.load(word)

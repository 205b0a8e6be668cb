"""Orders of code in the cache: searched once per computer, and again if a record is unusable."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import casadi as ca
import pytest

import tauloop as tl
from tauloop.compiler.c.printing import source, stored_orders
from tauloop.compiler.c.printing.few_values import with_few_live_values
from tauloop.compiler.c.printing.stored_orders import stored_order
from tauloop.compiler.c.printing.straight import Instruction, instructions

calls = []


def search(code):
    """The search, which counts its calls."""
    calls.append(len(code))
    return with_few_live_values(code)


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls.clear()
    return tmp_path / "tauloop"


def code_with(factor: float, count: int = 12) -> tuple[Instruction, ...]:
    """The code of sums of products; in the given order, all products are live at once."""
    x = ca.SX.sym("x", count)
    products = [factor * x[i] * x[(i + 1) % count] for i in range(count)]
    pairs = [products[i] + products[-1 - i] for i in range(count)]
    function = ca.Function("f", [x], [ca.vertcat(*pairs, ca.sum1(ca.vertcat(*products)))])
    return tuple(instructions(function, [True]))


def record_in(folder: Path) -> Path:
    (record,) = folder.glob("*.json")
    return record


def test_an_order_is_searched_once_also_for_other_constants(folder):
    for factor in (3.0, 3.0, 5.0, -0.25):
        code = code_with(factor)
        expected = with_few_live_values(code)
        assert expected != code
        assert stored_order(search, code) == expected
    assert len(calls) == 1
    record_in(folder)


def test_other_code_and_another_function_have_their_own_records(folder):
    stored_order(search, code_with(3.0))
    stored_order(search, code_with(3.0, 13))
    stored_order(with_few_live_values, code_with(3.0))
    assert len(calls) == 2
    assert len(list(folder.glob("*.json"))) == 3


def with_checksum(body: str) -> bytes:
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}".encode()


def changed(text: bytes, change) -> bytes:
    """A record with changed entries and the right checksum."""
    entries = json.loads(text.partition(b"\n")[2])
    return with_checksum(json.dumps(change(entries)))


DAMAGES = {
    "empty": lambda text: b"",
    "truncated": lambda text: text[:-9],
    "a changed digit": lambda text: text.replace(b", 1", b", 2", 1),
    "not text": lambda text: b"\xff" * 99,
    "no JSON": lambda text: with_checksum("{"),
    "no list": lambda text: with_checksum("3"),
    "an index too large": lambda text: changed(text, lambda entries: [999, *entries]),
    "a negative index": lambda text: changed(text, lambda entries: [-1, *entries]),
    "a wrong order": lambda text: changed(text, lambda entries: entries[::-1]),
    "an instruction twice": lambda text: changed(text, lambda entries: [entries[0], *entries]),
    "a missing output": lambda text: changed(text, lambda entries: entries[:-1]),
    "C text": lambda text: changed(text, lambda entries: [["0;", 1, 2], *entries]),
    "an added reading": lambda text: changed(text, lambda entries: [*entries, [999, 45, 0]]),
    "a short entry": lambda text: changed(text, lambda entries: [[999], *entries]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_ignored_and_written_again(folder, damage):
    code = code_with(3.0)
    expected = stored_order(search, code)
    record = record_in(folder)
    intact = record.read_bytes()
    record.write_bytes(DAMAGES[damage](intact))
    assert record.read_bytes() != intact
    assert stored_order(search, code) == expected
    assert len(calls) == 2
    assert record.read_bytes() == intact


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_record_that_others_may_write_is_not_used(folder):
    code = code_with(3.0)
    stored_order(search, code)
    record_in(folder).chmod(0o666)
    stored_order(search, code)
    assert len(calls) == 2
    assert record_in(folder).stat().st_mode & 0o022 == 0


def test_another_version_of_the_printer_searches_again(folder, monkeypatch):
    code = code_with(3.0)
    stored_order(search, code)
    stamps = [*stored_orders._stamps(), "another file"]
    monkeypatch.setattr(stored_orders, "_stamps", lambda: stamps)
    stored_order(search, code)
    assert len(calls) == 2


def test_without_a_writable_cache_the_order_is_the_same(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    code = code_with(3.0)
    assert stored_order(with_few_live_values, code) == with_few_live_values(code)


def text_of_a_machine() -> str:
    """The hash of all texts of a function of more than `ORDERED_FROM` instructions."""
    model = tl.Model(tl.load("planar_3rrr"))
    function = model.platform.source_function("inverse_dynamics", ("force",))
    texts = [*source.c_units(function, "note"), source.thread_text(function, frozenset())]
    return hashlib.sha256("".join(texts).encode()).hexdigest()


SECOND_PROCESS = """
import hashlib
import tauloop as tl
from tauloop.compiler.c.printing import few_values, scheduling, source

def refuse(*arguments):
    raise AssertionError("code is ordered again")

few_values.Dependences.of = scheduling._Schedule.__init__ = refuse
"""


def test_a_second_process_orders_nothing_and_prints_the_same_text(folder):
    source._ordered.cache_clear()
    first = text_of_a_machine()
    assert len(list(folder.glob("*.json"))) == 3  # lanes, one sample, threads
    source_text = inspect.getsource(text_of_a_machine)
    program = f"{SECOND_PROCESS}\n{source_text}\nprint(text_of_a_machine())"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout.strip() == first


def test_printing_uses_the_stored_orders(folder, monkeypatch):
    monkeypatch.setattr(source, "ORDERED_FROM", 10)
    code = code_with(7.0)
    source._reordered(code, source._ONE_SAMPLE)
    source._ordered.cache_clear()
    monkeypatch.setattr(source, "_with_few_live_values", search)
    source._reordered(code, source._ONE_SAMPLE)
    assert not calls

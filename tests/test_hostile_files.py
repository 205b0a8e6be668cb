"""Files that are made to cost time or memory, or to break a reader: refused soon and by name, without a traceback."""

from __future__ import annotations

import gzip
import importlib
import re
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from extras import extra

import tauloop
from tauloop import load, loads
from tauloop.common.errors import (
    MAX_TEXT_LENGTHS,
    DescriptionError,
    IdentificationError,
    LogError,
    Problem,
)
from tauloop.formats import machine_path
from tauloop.identification import read_triangle
from tauloop.logs import read_log, tables
from tauloop.logs.files import unpacking
from tauloop.logs.files.hdf5 import hdf5_columns
from tauloop.mechanism.description.units import UnitError, parse_unit

PACKAGE = Path(tauloop.__file__).parent
#: Processor time that a refusal may take, s. Quadratic work on these texts would take minutes.
SOON = 8.0
LONG = 1_900_000

MACHINE = """
format: tauloop-machine/1
name: m
description: one joint
provenance: {status: chosen, source: x}
gravity: [0, 0, -9.81 m/s^2]
bodies: {b: {mass: 1 kg, center: [0.1 m, 0, 0]}}
joints: {j: {type: revolute, axis: z, parent: base, child: b, reference: 0 deg}}
actuators: {a: {on: j}}
platform: {body: b, independent: [j]}
"""


def parameters(count: int, of: str) -> str:
    return f"{MACHINE}parameters: {{{', '.join(of.format(i=i, j=i - 1) for i in range(count))}}}\n"


def legs(count: int, inside: str) -> str:
    return f"{MACHINE}legs:\n" + "".join(
        f"- {{name: l{k}x, repeat: 64, {inside}}}\n" for k in range(count)
    )


HOSTILE = {
    "digits": (f"{MACHINE}parameters: {{a: {'1' * LONG}}}", "1900000 characters"),
    "digits and a sign": (f"{MACHINE}parameters: {{a: {'1' * LONG}!}}", "1900001 characters"),
    "spaces in a unit": (f"{MACHINE}parameters: {{a: '1 m{' ' * LONG}!'}}", "characters"),
    "a long name": (
        f"{MACHINE}bodies2: {{}}\nparameters:\n  ? {'a' * 60_000}\n  : 1 m\n",
        "not a valid name",
    ),
    "parameters": (parameters(25_000, "p{i}: {i} m"), "more than 20000 parameters"),
    "operations": (
        f"{MACHINE}parameters: {{p0: 1 m, {', '.join(f'p{i}: p{i - 1} + p{i - 1}' for i in range(1, 12))}, "
        f"{', '.join(f'q{i}: p11 * {i}' for i in range(1, 15_000))}}}",
        "the values have more than 300000 operations",
    ),
    "a circle of doubling": (
        f"{MACHINE}parameters: {{p0: 1 m, {', '.join(f'p{i}: p{i - 1} + p{i - 1}' for i in range(1, 5000))}}}",
        "too large after substituting all parameters",
    ),
    "legs": (legs(100, "parameters: {a: 1 m}"), "more than 1000 legs"),
    "parameters of legs": (
        legs(15, f"parameters: {{{', '.join(f'p{i}: {i} m' for i in range(500))}}}"),
        "more than 20000 parameters, counting each repeated leg",
    ),
    "bodies of legs": (
        legs(15, f"bodies: {{{', '.join(f'b{i}: {{mass: 1 kg}}' for i in range(100))}}}"),
        "more than 5000 elements, counting each repeated leg",
    ),
    "values of each leg": (
        f"{MACHINE}legs:\n- {{name: l, repeat: 64, each: {{a: [{', '.join(['1 m'] * 40_000)}]}}}}\n",
        "40000 values for 64 legs",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_grow_without_end_is_refused_soon(name):
    text, what = HOSTILE[name]
    start = time.process_time()
    with pytest.raises(DescriptionError, match=re.escape(what)) as error:
        loads(text)
    assert time.process_time() - start < SOON
    assert len(str(error.value)) < 20_000


def test_messages_are_cut_where_they_quote_without_end():
    problem = Problem(where="w" * 10_000, what="x" * 10_000, remedy="r" * 10_000)
    assert (len(problem.where), len(problem.what)) == (
        MAX_TEXT_LENGTHS["where"],
        MAX_TEXT_LENGTHS["what"],
    )
    assert problem.what.endswith(" ...")
    assert (
        Problem(where="a", what="x" * MAX_TEXT_LENGTHS["what"]).what
        == "x" * MAX_TEXT_LENGTHS["what"]
    )


def test_a_unit_of_many_factors_is_refused():
    with pytest.raises(UnitError, match="800001 characters"):
        parse_unit("m " * 400_000 + "s")


# Regular expressions


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern that a module of the package keeps."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "re.compile" not in path.read_text(encoding="utf-8"):
            continue
        name = ".".join(("tauloop", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        for key, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                yield f"{name}.{key}", value


PATTERNS = dict(patterns())
#: What is repeated, and what follows at the end so that the whole does not match.
REPEATED = (
    "1",
    " ",
    "a",
    ".",
    "a.",
    "1.",
    "[",
    "]",
    "[1]",
    "a1",
    "1a",
    "m ",
    "/",
    "\t",
    "-",
    "1/",
    "e1",
    "_",
    "a[0]",
    "<",
)
LENGTH = 20_000


def test_patterns_are_found():
    assert {
        "tauloop.mechanism.description.units.LITERAL",
        "tauloop.mechanism.description.parser._TOKEN",
    } < set(PATTERNS)
    assert len(PATTERNS) > 12


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_quadratic_time(name):
    """Quadratic time on these texts is seconds to minutes; linear time is milliseconds."""
    pattern = PATTERNS[name]
    start = time.process_time()
    for part in REPEATED:
        for begin in ("", "a", "1"):
            for end in ("", "!", "x"):
                text = begin + part * LENGTH + end
                pattern.fullmatch(text)
                pattern.match(text)
    assert time.process_time() - start < SOON


def test_headers_with_many_brackets_are_read_in_linear_time():
    start = time.process_time()
    for header in ("q1 [deg]", "q1[deg]", " a [b] [m/s] ", "[rad]"):
        assert (
            tables._name_and_unit(header)
            == {
                "q1 [deg]": ("q1", "deg"),
                "q1[deg]": ("q1", "deg"),
                " a [b] [m/s] ": ("a [b]", "m/s"),
                "[rad]": ("", "rad"),
            }[header]
        )
    for header in (
        "a" + " " * LONG + "b",
        "[" * LONG,
        "]" * LONG,
        "a [" + " " * LONG,
        "plain",
        "a [b]c",
    ):
        assert tables._name_and_unit(header) == (header.strip(), "")
    assert time.process_time() - start < SOON


# Values that are none


@pytest.mark.parametrize("nothing", ["''", '" "'])
def test_an_empty_text_is_no_value_anywhere(nothing):
    """`mass: ''` used to be a traceback; here every value of a file in turn."""
    text = machine_path("pendulum_arm").read_text(encoding="utf-8")
    places = list(
        re.finditer(r"(?<=: )-?\d[^\n{}\[\],#]*|(?<=[\[ ])-?\d[^\n{}\[\],:#]*(?=[,\]])", text)
    )
    assert len(places) > 8
    for place in places:
        with pytest.raises(DescriptionError):
            loads(text[: place.start()] + nothing + text[place.end() :])


# Files of other tools


ROBOT = '<robot name="a"><link name="b"/></robot>'
ENCODINGS = (
    *(
        "klingon",
        "gbk",
        "shift_jis",
        "base64",
        "rot13",
        "idna",
        "punycode",
        "undefined",
        "hex",
        "utf-7",
        "utf-32",
    ),
    *("UTF-16", "x" * 5000, "a\0b", "zlib", "mbcs", "cp037", "string-escape", "../../etc/passwd"),
)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda name: name[:12].replace("\0", "0"))
@pytest.mark.parametrize("ending", ["xml", "urdf"])
def test_an_odd_encoding_is_refused(encoding, ending, tmp_path):
    path = tmp_path / f"robot.{ending}"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{ROBOT}'.encode())
    with pytest.raises(DescriptionError, match=r"encoding|not well-formed") as error:
        load(path)
    assert len(str(error.value)) < 5000


PATHS = ("a\0b", "x" * 300, "y/" * 3000, "\udcff", "missing", "file/below")


@pytest.mark.parametrize(
    "name", PATHS, ids=["zero", "long", "deep", "no text", "missing", "below a file"]
)
@pytest.mark.parametrize("ending", ["yaml", "xml", "urdf", "csv", "csv.gz", "parquet", "mat"])
def test_a_path_that_cannot_be_is_refused(name, ending, tmp_path):
    (tmp_path / "file").touch()
    path = f"{tmp_path}/{name}.{ending}"
    with pytest.raises(
        (DescriptionError, LogError), match=r"no such file|cannot be read|null byte|zero byte"
    ):
        (load if ending in ("yaml", "xml", "urdf") else read_log)(path)


@pytest.mark.parametrize("ending", ["xml", "urdf", "csv", "mat"])
def test_folders_and_devices_are_refused(ending, tmp_path):
    folder, device = tmp_path / f"folder.{ending}", tmp_path / f"device.{ending}"
    folder.mkdir()
    device.symlink_to("/dev/zero")
    reader = load if ending in ("xml", "urdf") else read_log
    for path, what in ((folder, "this is a folder"), (device, "a device or a pipe")):
        with pytest.raises((DescriptionError, LogError), match=what):
            reader(path)


# Logs


def test_a_log_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    """A tenth of a megabyte that becomes a hundred; with the limit of files that may do so set lower, for speed."""
    monkeypatch.setattr(unpacking, "UNCHECKED_BYTES", 1_000_000)
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"time [s],position.a [rad]\n" + b"0,0\n" * 1_000_000))
    with pytest.raises(LogError, match="over 200 times as much"):
        read_log(path)
    rng = np.random.default_rng(0)
    rows = "".join(
        f"{k * 0.001:.3f},{x:.6f}\n" for k, x in enumerate(rng.normal(size=100_000).tolist())
    )
    path.write_bytes(gzip.compress(f"time [s],position.a [rad]\n{rows}".encode()))
    assert path.stat().st_size < len(rows) / 2
    assert read_log(path).sizes["time"] == 100_000


def test_a_matrix_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "UNCHECKED_BYTES", 1_000_000)
    path = tmp_path / "log.mat"
    scipy.io.savemat(path, {"q": np.zeros((1_000_000, 2))}, do_compression=True)
    with pytest.raises(LogError, match="over 200 times as much"):
        read_log(path)


def test_a_structure_that_unpacks_without_end_is_refused(tmp_path):
    """The list of a file's variables has no sizes of fields; the reading process has a limit of memory."""
    path = tmp_path / "log.mat"
    scipy.io.savemat(path, {"s": {"q": np.zeros(1000)}})
    content = path.read_bytes()
    head = struct.pack("<II", 9, 8000)  # doubles, and their bytes
    assert content.count(head) == 1
    path.write_bytes(content.replace(head, struct.pack("<II", 9, 1_800_000_000)))
    with pytest.raises(LogError, match="more memory than any log of its size"):
        read_log(path)


def test_an_archive_of_arrays_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "UNCHECKED_BYTES", 1_000_000)
    path = tmp_path / "triangle.npz"
    np.savez_compressed(path, q=np.zeros(1_000_000))
    with pytest.raises(IdentificationError, match="over 200 times as much"):
        read_triangle(path)


def test_groups_that_contain_each_other_are_entered_once(tmp_path):
    """A cycle, and forty groups that each have two names in the one before: 2**40 paths to one data set."""
    h5py = extra("h5py")
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(40):
            inner = group.create_group("a")
            group["b"] = inner
            group = inner
        group["cycle"] = file["/"]
        group["q"] = np.arange(5.0)
    columns, _ = hdf5_columns(path)
    assert {name: list(values) for name, values in columns.items()} == {
        "a." * 40 + "q": [0.0, 1.0, 2.0, 3.0, 4.0]
    }


def test_data_sets_that_lie_in_other_files_are_left_out(tmp_path):
    h5py = extra("h5py")
    path, secret = tmp_path / "log.h5", tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["q"] = np.arange(5.0)
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(5.0)
        file.create_dataset("raw", (8,), "f8", external=[(str(secret), 0, 64)])
        layout = h5py.VirtualLayout(shape=(5,), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "q", shape=(5,))
        file.create_virtual_dataset("virtual", layout)
    assert list(hdf5_columns(path)[0]) == ["own"]


def test_a_data_set_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    h5py = extra("h5py")
    monkeypatch.setattr(unpacking, "UNCHECKED_BYTES", 1_000_000)
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        # nothing of it is stored
        file.create_dataset("q", shape=(10**12,), dtype="f8", chunks=(1000,), fillvalue=1.0)
    with pytest.raises(LogError, match="over 200 times as much"):
        read_log(path)


def test_damaged_pages_of_a_table_are_refused(tmp_path):
    """Every stretch of the file in turn: whatever Arrow raises, it is named, or the numbers are as they were."""
    pyarrow = extra("pyarrow")
    parquet = extra("pyarrow.parquet")
    path, values = tmp_path / "log.parquet", np.random.default_rng(0).normal(size=2000)
    columns = {
        "time [s]": np.arange(2000) * 0.001,
        "position.a [rad]": values,
        "force.a [N m]": np.round(values, 1),
    }
    parquet.write_table(pyarrow.table(columns), path)
    good = path.read_bytes()
    refused = 0
    for place in range(4, len(good) - 8, len(good) // 150):
        path.write_bytes(
            good[:place]
            + bytes(byte ^ 0xFF for byte in good[place : place + 8])
            + good[place + 8 :]
        )
        try:
            read_log(path)
        except LogError:
            refused += 1
    assert refused > 20


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "log.csv.gz"
    good = gzip.compress(b"time [s],position.a [rad]\n" + b"0,0\n1,1\n" * 100)
    for damaged in (
        good[:-9],
        good[:20] + b"\xff" * 8 + good[28:],
        b"\x1f\x8b",
        good[:-8] + b"\0" * 8,
    ):
        path.write_bytes(damaged)
        with pytest.raises((LogError, zlib.error), match=r"cannot be read|not UTF-8") as error:
            read_log(path)
        assert isinstance(error.value, LogError)

"""Compare the JSON of all commands of two checkouts: `python tools/compare_results.py OLD NEW`.

Each command line runs in both checkouts, in one process of each, with the same input files. Lines
are written as the newer checkout spells them; the older one gets the names that the newer one's
table of deprecated names has for them. Reported are

- numbers that differ by more than 1e-9 of the largest value in their list, or 1e-6 for results of
  iterations (`Line.tolerance`);
- values that are not numbers, such as a status or a name, and exit codes;
- keys that the newer result lacks, keys that it adds (listed, not counted as a difference);
- C files, without comments.

Texts for readers (advice, summaries, messages) and provenance do not count. Optimizers get small
problems; a line that exceeds `--limit` is reported as not compared.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import os
import random
import re
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Relative difference of numbers that follow from the input in closed form.
EXACT = 1e-9
#: Relative difference of numbers at which an iteration stops.
ITERATIVE = 1e-6
#: Keys of JSON that do not state a result: versions, times, texts for readers.
UNCOMPARED = frozenset(
    {
        "provenance",
        "advice",
        "summary",
        "note",
        "notes",
        "message",
        "seconds",
        "cpu_seconds",
        "description",
        "remedy",
        # Hashes of files whose comments state the version.
        "contents",
        "files",
    }
)
#: Keys of rounding errors: they count only where one of both exceeds `ROUNDING`.
ERRORS = frozenset(
    {
        "balance",
        "closure",
        "closure_acceleration",
        "closure_rate",
        "gravity_error",
        "inertia_error",
        "largest_difference",
        "largest_error",
        "position_deviation",
        "position_offset",
        "residual",
        "residual_m",
        "rms_error",
        "velocity_error",
    }
)
#: Errors and passed diagnostics below this value are rounding.
ROUNDING = 1e-8
#: Numbers by name, such as coordinates, may have several units. Those below this fraction of the
#: largest of them count by this share.
NAMED_SHARE = 1e-4
#: Numbers below this value are zero.
ZERO = 1e-14
#: Fraction of a step from the reference pose: of the machine's characteristic length, or radians.
STEP = 0.02


@dataclass(frozen=True)
class Line:
    """A command line.

    Attributes:
        words: its words; fields in braces are values of `Facts`.
        machines: machines that it runs on, all shipped ones if empty.
        tolerance: largest relative difference of numbers.
        older: words in version 0.1, where the table of deprecated names does not suffice.
        uncompared: keys of its JSON that do not count.
    """

    words: str
    machines: tuple[str, ...] = ()
    tolerance: float = EXACT
    older: str = ""
    uncompared: frozenset[str] = frozenset()


#: Machines for commands that take long on others.
SMALL = ("delta", "five_bar", "four_bar", "pendulum_arm")
#: The bytes of a page, which depend on its texts.
PAGE_SIZE = frozenset({"size"})
#: For commands that take no machine.
ONCE = ("delta",)
#: One line for each command; some have another one for another way to compute.
LINES = (
    Line("show {machine}"),
    Line("show {machine} --blocks"),
    Line("check {machine}"),
    Line("fk {machine} --actuators {actuators}"),
    Line("ik {machine} --pose {pose}"),
    Line("jacobian {machine} --pose {pose}"),
    Line("jacobian {machine} --actuators {actuators} --of platform"),
    Line("dynamics {machine} --pose {pose} --velocity {rates} --acceleration {rates}"),
    Line("dynamics {machine} --motion {folder}/sines.csv"),
    Line("dynamics {machine} --motion {folder}/sines.csv --from-momenta"),
    Line("simulate {machine} --duration 0.1", tolerance=ITERATIVE),
    Line("simulate {machine} --free --duration 0.5", tolerance=ITERATIVE),
    Line("plan stroke {machine} {stroke}", tolerance=ITERATIVE),
    Line("plan path {machine} {stroke}", tolerance=ITERATIVE),
    Line("plan poses {machine} --parameters {lengths} --count 6 --candidates 50"),
    Line(
        "plan excitation {machine} --harmonics 2 --random 20 --starts 0 --rate 50",
        tolerance=ITERATIVE,
    ),
    Line(
        "verify {machine} --states 10",
        # The state and the number with the largest rounding error.
        uncompared=frozenset({"sample", "column"}),
    ),
    Line("control follow {machine} {stroke} --duration 0.3", tolerance=ITERATIVE),
    Line(
        "control collision {machine} {stroke} --duration 0.3 --wrench fx=5 --error-samples 4",
        machines=SMALL,
        tolerance=ITERATIVE,
    ),
    Line("accuracy backlash {machine}"),
    Line("model equations {machine}"),
    Line("model cost {machine}"),
    Line("model reduce {machine} --states 5"),
    Line("model base-parameters {machine}"),
    Line("model link-parameters {machine} {folder}/identified.json"),
    Line("identify {machine} {folder}/log.csv --cutoff 20", tolerance=ITERATIVE),
    Line("identify {machine} {folder}/log.csv", machines=SMALL, tolerance=ITERATIVE),
    Line("log forces {machine} {folder}/log.csv", tolerance=ITERATIVE),
    Line(
        "log track {machine} {folder}/log.csv {folder}/identified.json --max-payload 1",
        tolerance=ITERATIVE,
        older="track {machine} {folder}/log.csv --fit {folder}/identified.json --payload 1",
    ),
    Line(
        "log subtract {folder}/log.csv {folder}/other.csv --out {output}/difference.csv",
    ),
    Line(
        "calibrate {machine} {folder}/poses.csv --parameters {lengths} --noise 0.01mm",
        tolerance=ITERATIVE,
    ),
    Line(
        "convert {machine} {output}/{machine}.urdf",
        older="convert {machine} --out {output}/{machine}.urdf",
    ),
    Line(
        "convert {machine} {output}/{machine}.xml",
        older="convert {machine} --out {output}/{machine}.xml",
    ),
    Line(
        "convert {machine} {output}/{machine}.sdf",
        older="convert {machine} --out {output}/{machine}.sdf",
    ),
    Line(
        "convert {machine} {output}/{machine}.yaml",
        older="convert {machine} --out {output}/{machine}.yaml",
    ),
    Line("export c {machine} --out {output}/c"),
    Line("export linuxcnc {machine} --out {output}/linuxcnc"),
    Line("export controller {machine} --controller pd --rate 1kHz --out {output}/controller"),
    Line("export ros2 {machine} --out {output}/ros2"),
    Line("export fmu {machine} --no-binary --out {output}/fmu", machines=SMALL),
    Line(
        "demo {machine} --no-open --out {output}/demo.html",
        machines=SMALL,
        tolerance=ITERATIVE,
        uncompared=PAGE_SIZE,
    ),
    Line(
        "view {machine} --pose {pose} --out {output}/view.png",
        machines=SMALL,
        older="view {machine} --position {pose} --png {output}/view.png",
    ),
    Line(
        "report {folder}/identified.json --out {output}/report.html",
        machines=SMALL,
        uncompared=PAGE_SIZE,
    ),
    Line("modes {machine}"),
    Line("modes {machine} --working"),
    Line("workspace {machine}", tolerance=ITERATIVE),
    Line(
        "identify {machine} {folder}/log.csv --folded {output}/folded --cutoff 20",
        machines=SMALL,
        tolerance=ITERATIVE,
        older="fold {machine} {folder}/log.csv --folder {output}/folded --cutoff 20",
    ),
    Line(
        "plan transfer {machine} {stroke} --intervals 8",
        machines=("delta", "five_bar"),
        tolerance=ITERATIVE,
    ),
    Line("plan cycle delta {root}/examples/cycles/adept.yaml", ONCE, ITERATIVE),
    Line("list", ONCE),
    Line("env schema", ONCE),
    Line("new machine_of_mine --template delta --out {output}/mine.yaml --replace", ONCE),
    Line("drive step single_motor_axis --duration 30 --cycle", ONCE, ITERATIVE),
    Line("drive step dual_motor_axis --duration 2", ONCE, ITERATIVE),
    Line("drive step dual_motor_inferred --duration 2", ONCE, ITERATIVE),
    Line(
        "drive tune single_motor_axis --bounds kp=100:300 --scales settling_time=1 --duration 2"
        " --budget 40",
        ONCE,
        ITERATIVE,
    ),
    Line(
        "drive fit dual_motor_axis {inputs}/steps.yaml --bounds cart_viscous=10:100,preload=5:12"
        " --generations 0",
        ONCE,
        ITERATIVE,
    ),
    Line(
        "accuracy ballbar {root}/examples/gantry_tau_racks/gantry_tau_racks.yaml --speed 0.8",
        ONCE,
        ITERATIVE,
    ),
    Line("study run {root}/examples/studies/modes.yaml --out {output}/study", ONCE),
    Line("paper list", ONCE, older="reproduce"),
    Line("paper reproduce nuwar", ONCE, ITERATIVE),
    Line("paper reproduce rcid", ONCE, ITERATIVE),
)
#: Input files that do not depend on the machine.
FILES = {
    "steps.yaml": """\
format: tauloop-steps/1
steps:
  slow: {step: 100 mm, set: {kp: 150, ti: 1.8}, measured: {rise_time: 660 ms}}
  fast: {step: 50 mm, set: {kp: 200, ti: 1.5}, measured: {rise_time: 560 ms}}
""",
}


@dataclass
class Facts:
    """Values of the fields of command lines for one machine."""

    machine: str
    folder: Path
    pose: str = ""
    rates: str = ""
    actuators: str = ""
    stroke: str = ""
    lengths: str = ""


@dataclass
class Outcome:
    """The end of a command.

    Attributes:
        code: its exit code; None if it exceeded the limit.
        value: its JSON, None if it is not valid.
        text: what it wrote, without the JSON.
        seconds: processor time.
    """

    code: int | None
    value: Any = None
    text: str = ""
    seconds: float = 0.0


# The process that runs commands in one checkout ------------------------------------------------


def work() -> None:
    """Run the command lines that arrive as JSON, one a line, and answer with exit code and texts."""
    import tempfile

    from tauloop.cli import main

    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        for line in sys.stdin:
            for file in (out, err):
                file.seek(0)
                file.truncate()
            sys.argv = ["tauloop", *json.loads(line)]
            start = time.process_time()
            code: Any = 0
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            except BaseException as error:
                code = f"{type(error).__name__}: {error}"
            seconds = time.process_time() - start
            sys.stdout.flush()
            sys.stderr.flush()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            answers.write(json.dumps([code, *texts, seconds]) + "\n")
            answers.flush()


class Checkout:
    """A checkout with the process that runs its commands."""

    def __init__(self, root: Path, folder: Path, limit: float) -> None:
        """Start no process yet.

        Args:
            root: the folder of the checkout.
            folder: working folder of the process.
            limit: largest processor time of a command, s.
        """
        self.root = root.resolve()
        self.folder = folder
        self.limit = limit
        self._process: subprocess.Popen[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, words: Sequence[str]) -> Outcome:
        """Return the end of a command."""
        process = self._process or self._start()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([*words]) + "\n")
        process.stdin.flush()
        end = _processor_time(process.pid) + self.limit
        ready: list[Any] = []
        while not ready and _processor_time(process.pid) < end:
            ready, _, _ = select.select([process.stdout], [], [], 1.0)
        answer = process.stdout.readline() if ready else ""
        if not answer:
            self.close()
            return Outcome(code=None, text="exceeds the limit" if not ready else "process died")
        code, out, err, seconds = json.loads(answer)
        out = out.replace(str(self.folder), "FOLDER")
        try:
            value = json.loads(out)
        except ValueError:
            return Outcome(code, None, out + err, seconds)
        return Outcome(code, value, err, seconds)

    def _start(self) -> subprocess.Popen[str]:
        paths = [self.root / "src", self.root / "papers" / "src"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.folder,
            env=environment,
            text=True,
        )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _processor_time(process: int) -> float:
    """Return the processor time of a process and of its ended children, s; Linux only."""
    try:
        fields = (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
    except OSError:
        return math.inf
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


# Names of the older checkout -------------------------------------------------------------------


def deprecated_names(root: Path) -> Any:
    """Return the module with the table of deprecated names of a checkout; None without a table."""
    common = root / "src" / "tauloop" / "common"
    paths = [common / "names" / "deprecated.py", common / "deprecated.py"]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    spec = importlib.util.spec_from_file_location("names_of_checkout", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def older_words(words: Sequence[str], names: Any) -> list[str]:
    """Return a command line with the names that the table of deprecated names replaces.

    Args:
        words: a command line with the current names.
        names: the module with the table; None changes nothing.
    """
    if names is None:
        return [*words]
    path, rest = _command(words, names)
    former = {new: old for old, new in names.COMMANDS.items()}
    options = {"--out": "--out"}
    for key in ("", path, former.get(path, path)):
        for old, new in names.OPTIONS.get(key, {}).items():
            options.setdefault(new.partition(" *")[0], old)
    # Options that choose another use of the command.
    for key, table in names.OPTIONS.items():
        command, dash, condition = key.partition(" --")
        if dash and command == path and f"--{condition}" in " ".join(words):
            options |= {new: old for old, new in table.items()}
    older = [former.get(path, path)]
    return [*older[0].split(), *(options.get(word, word) for word in rest)]


def _command(words: Sequence[str], names: Any) -> tuple[str, list[str]]:
    """Return the command of a command line, and the words after it."""
    pair = " ".join(words[:2])
    known = {*names.COMMANDS.values(), *names.OPTIONS}
    count = 2 if pair in known else 1
    return " ".join(words[:count]), [*words[count:]]


# Comparison ------------------------------------------------------------------------------------


@dataclass
class Difference:
    """A difference of two JSON documents."""

    place: str
    old: Any
    new: Any
    relative: float = math.inf

    def __str__(self) -> str:
        amount = f" ({self.relative:.1e})" if math.isfinite(self.relative) else ""
        return f"{self.place}: {_short(self.old)} -> {_short(self.new)}{amount}"


class Missing:
    """The value of a key that one document lacks."""

    def __repr__(self) -> str:
        return "(missing)"


MISSING = Missing()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 90 else f"{text[:87]}..."


@dataclass
class Comparison:
    """Compares JSON documents.

    Attributes:
        tolerance: largest relative difference of numbers.
        keys: new names of old keys.
        uncompared: keys that do not count.
    """

    tolerance: float
    keys: Mapping[str, str] = field(default_factory=dict)
    uncompared: frozenset[str] = UNCOMPARED

    def differences(
        self, old: Any, new: Any, place: str = "", scale: float = 0.0
    ) -> Iterator[Difference]:
        """Yield the differences of two values.

        Args:
            old: the older value.
            new: the newer value.
            place: keys that lead to them, with dots.
            scale: largest value in the list that contains them.
        """
        if isinstance(old, dict) and isinstance(new, dict):
            yield from self._of_objects(old, new, place)
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._of_lists(old, new, place, scale)
        elif _is_number(old) and _is_number(new):
            relative = _relative(old, new, scale)
            if relative > self.tolerance:
                yield Difference(place, old, new, relative)
        elif _is_prose(old) and _is_prose(new):
            return
        elif old != new or isinstance(old, bool) != isinstance(new, bool):
            yield Difference(place, old, new)

    def _of_objects(
        self, old: dict[str, Any], new: dict[str, Any], place: str
    ) -> Iterator[Difference]:
        renamed = {
            key if key in new else self.keys.get(key, key): value for key, value in old.items()
        }
        is_check = {"value", "lower", "upper"} <= {*renamed} & {*new}
        alike = {"value"} if is_check and _pass_alike(renamed, new) else set()
        numbers = [*renamed.values(), *new.values()]
        scale = NAMED_SHARE * _largest(numbers) if all(map(_is_number, numbers)) else 0.0
        for key in [*renamed, *(key for key in new if key not in renamed)]:
            if key in self.uncompared or key in alike:
                continue
            where = f"{place}.{key}" if place else key
            first, second = renamed.get(key, MISSING), new.get(key, MISSING)
            if not (key in ERRORS and _are_rounding(first, second)):
                yield from self.differences(first, second, where, scale)

    def _of_lists(
        self, old: list[Any], new: list[Any], place: str, scale: float
    ) -> Iterator[Difference]:
        if _has_names(old) and _has_names(new):
            yield from self._of_named(old, new, place)
            return
        if len(old) != len(new):
            yield Difference(f"{place}.length", len(old), len(new))
            return
        scale = max([scale, *map(_largest, (old, new))])
        for index, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from self.differences(first, second, f"{place}[{index}]", scale)

    def _of_named(self, old: list[Any], new: list[Any], place: str) -> Iterator[Difference]:
        """Yield the differences of lists of objects with names.

        Objects with equal names belong together; others in their order, if there are equally many.
        """
        by_name = {item["name"]: item for item in new}
        names = {item["name"] for item in old}
        rest_old = [item for item in old if item["name"] not in by_name]
        rest_new = [item for item in new if item["name"] not in names]
        pairs = [(item, by_name[item["name"]]) for item in old if item["name"] in by_name]
        if len(rest_old) == len(rest_new):
            pairs += zip(rest_old, rest_new, strict=True)
        else:
            for item in rest_old:
                yield Difference(f"{place}[{item['name']}]", item.get("value", "..."), MISSING)
            for item in rest_new:
                yield Difference(f"{place}[{item['name']}]", MISSING, item.get("value", "..."))
        for first, second in pairs:
            yield from self.differences(first, second, f"{place}[{first['name']}]")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_prose(value: Any) -> bool:
    """True for a text for readers: several words."""
    return isinstance(value, str) and " " in value.strip()


def _has_names(items: list[Any]) -> bool:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    return bool(names) and None not in names and len({*map(str, names)}) == len(names)


def _largest(value: Any) -> float:
    """Return the largest finite magnitude in a list of any depth; objects do not count."""
    if _is_number(value):
        return abs(value) if math.isfinite(value) else 0.0
    if isinstance(value, list):
        return max(map(_largest, value), default=0.0)
    return 0.0


def _relative(old: float, new: float, scale: float) -> float:
    if old == new or (math.isnan(old) and math.isnan(new)):
        return 0.0
    if not (math.isfinite(old) and math.isfinite(new)):
        return math.inf
    if max(abs(old), abs(new)) < ZERO:
        return 0.0
    return abs(new - old) / max(abs(old), abs(new), scale)


def _are_rounding(old: Any, new: Any) -> bool:
    return all(_is_number(value) and abs(value) <= ROUNDING for value in (old, new))


def _pass_alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """True for two diagnostics that pass with rounding errors, or far from a lower limit."""
    if old["lower"] != new["lower"] or old["upper"] != new["upper"]:
        return False
    if not all(_is_number(item["value"]) for item in (old, new)):
        return False
    if _is_number(new["upper"]):
        limit = min(ROUNDING, new["upper"])
        return all(abs(item["value"]) <= limit for item in (old, new))
    lower = new["lower"]
    return _is_number(lower) and all(item["value"] >= lower / ROUNDING for item in (old, new))


def numbers_and_words(text: str) -> list[float | str]:
    """Return the numbers and the words of C code without its comments."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    tokens = re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\w+|\S", text)
    return [
        float(token) if token[0].isdigit() or (token[0] == "." and token[1:]) else token
        for token in tokens
    ]


def differences_of_code(old: Path, new: Path, comparison: Comparison) -> Iterator[Difference]:
    """Yield the differences of the C files of two folders."""
    for path in sorted(new.rglob("*.[ch]")):
        name = path.relative_to(new)
        if not (old / name).exists():
            yield Difference(f"{name}", MISSING, "a file")
            continue
        first, second = (
            numbers_and_words((folder / name).read_text(encoding="utf-8")) for folder in (old, new)
        )
        if len(first) != len(second):
            yield Difference(f"{name}: words", len(first), len(second))
            continue
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from comparison.differences(*pair, f"{name}: word {index}")


def by_key(differences: Sequence[Difference]) -> dict[str, list[Difference]]:
    """Return the differences of each place; indices and names in brackets do not count."""
    groups: dict[str, list[Difference]] = {}
    for difference in differences:
        key = re.sub(r"\[[^\]]*\](?=\.|\[|$)", "[]", difference.place)
        groups.setdefault(key, []).append(difference)
    return groups


# Input files -----------------------------------------------------------------------------------


class Inputs:
    """Input files and poses of machines, computed by the older checkout."""

    def __init__(self, checkout: Checkout, names: Any, folder: Path) -> None:
        """Take the checkout that computes them, its names, and the folder for files."""
        self.checkout = checkout
        self.names = names
        self.folder = folder

    def of(self, machine: str) -> Facts:
        """Return the values for a machine, and write its files; both are kept for later runs."""
        facts = Facts(machine, self.folder / machine)
        facts.folder.mkdir(parents=True, exist_ok=True)
        stored = facts.folder / "facts.json"
        if stored.exists():
            return Facts(**json.loads(stored.read_text()) | {"folder": facts.folder})
        reference = self._json("ik", machine)
        length = max(1e-3, *(abs(p["value"]) for p in self._lengths(machine)))
        steps = _steps(reference["platform"], length)
        values = reference["poses"][0]["platform"]
        start = dict(zip(reference["platform"]["columns"], values, strict=True))
        pose = [f"{name}={start[name] + step!r}" for name, step in steps.items()]
        facts.rates = ",".join(f"{name}={2 * step!r}" for name, step in steps.items())
        facts.stroke = f"--end {','.join(pose)}"
        if not pose:
            pose, facts.rates, facts.stroke = ["rx=2deg"], "rx=0.1", "--rotation 0.04,0,0"
        facts.pose = ",".join(pose)
        moved = self._json("ik", machine, "--pose", facts.pose) or reference
        columns = moved["actuators"]["columns"]
        positions = moved["poses"][0]["actuators"]
        pairs = [f"{name}={value!r}" for name, value in zip(columns, positions, strict=True)]
        facts.actuators = ",".join(pairs)
        names = [p["name"] for p in self._lengths(machine)]
        facts.lengths = ",".join(names[:3])
        self._write_logs(facts)
        self._write_poses(facts, columns, positions, reference["poses"][0]["actuators"], moved)
        stored.write_text(json.dumps(vars(facts) | {"folder": ""}))
        return facts

    def _run(self, *words: str) -> Outcome:
        return self.checkout.run(older_words(words, self.names))

    def _json(self, *words: str) -> Any:
        return self._run(*words, "--json").value

    def _lengths(self, machine: str) -> list[dict[str, Any]]:
        shown = self._json("show", machine)
        return [p for p in shown["parameters"] if p["unit"] == "m" and p["value"]]

    def _write_logs(self, facts: Facts) -> None:
        """Write a motion, two logs of it and an identification."""
        folder = facts.folder
        stroke = facts.stroke.split()
        sines = "--shape multisine --terms 3 --seed 1 --frequencies 0.5,2 --duration 3 --rate 200"
        self._run(
            "plan", "stroke", facts.machine, *stroke, *sines.split(), "--out", f"{folder}/sines.csv"
        )
        exact = f"{folder}/exact.csv"
        self._run("dynamics", facts.machine, "--motion", f"{folder}/sines.csv", "--out", exact)
        if not Path(exact).exists():
            return
        for seed, name in enumerate(("log", "other")):
            _write_noisy_forces(Path(exact), folder / f"{name}.csv", seed)
        identified = ["--cutoff", "20", "--out", f"{folder}/identified.json"]
        words = older_words(
            ["identify", facts.machine, f"{folder}/log.csv", *identified], self.names
        )
        # In version 0.1 the whole result had an option of its own.
        if self.names is not None:
            words[words.index("--out")] = "--json-file"
        self.checkout.run(words)

    def _write_poses(
        self,
        facts: Facts,
        columns: Sequence[str],
        end: Sequence[float],
        start: Sequence[float],
        moved: Any,
    ) -> None:
        """Write a table of measured positions of the tool."""
        generator = random.Random(0)
        rows = []
        for _ in range(12):
            shares = [generator.uniform(-2.0, 2.0) for _ in columns]
            encoders = [
                first + share * (last - first)
                for first, last, share in zip(start, end, shares, strict=True)
            ]
            words = ",".join(f"{n}={v!r}" for n, v in zip(columns, encoders, strict=True))
            result = self._json("fk", facts.machine, "--actuators", words)
            if not result or not result.get("poses"):
                continue
            tool = [value + generator.gauss(0.0, 1e-5) for value in result["poses"][0]["tool_m"]]
            rows.append([*encoders, *tool])
        units = moved["actuators"]["units"]
        heads = [f"encoder.{name} [{unit}]" for name, unit in zip(columns, units, strict=True)]
        heads += [f"measured.{axis} [m]" for axis in "xyz"]
        with (facts.folder / "poses.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([heads, *rows])


def _steps(platform: Mapping[str, Any], length: float) -> dict[str, float]:
    """Return a step of each coordinate of the platform; components of quaternions have none."""
    steps: dict[str, float] = {}
    for index, (name, unit) in enumerate(zip(platform["columns"], platform["units"], strict=True)):
        if unit in ("m", "rad"):
            sign = (1.0, -1.0, 0.6)[index % 3]
            steps[name] = sign * STEP * (length if unit == "m" else 1.0)
    return steps


def _write_noisy_forces(source: Path, target: Path, seed: int) -> None:
    """Write the positions and forces of actuators in a table, with noise of 1 % on the forces."""
    with source.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    heads, body = rows[0], rows[1:]
    forces = [head.split("force.")[1].split(" ")[0] for head in heads if head.startswith("force.")]
    wanted = {"time", *(f"{kind}.{name}" for name in forces for kind in ("position", "force"))}
    indices = [index for index, head in enumerate(heads) if head.split(" ")[0] in wanted]
    generator = random.Random(seed)
    largest = {
        index: max(abs(float(row[index])) for row in body)
        for index in indices
        if heads[index].startswith("force.")
    }
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([heads[index] for index in indices])
        for row in body:
            writer.writerow(
                [float(row[i]) + generator.gauss(0.0, 0.01) * largest.get(i, 0.0) for i in indices]
            )


# Run -------------------------------------------------------------------------------------------


def main() -> None:
    """Compare two checkouts, print differences and a table of commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="the older checkout")
    parser.add_argument("new", type=Path, help="the newer checkout")
    parser.add_argument("--machines", default="", help="names with commas; all shipped ones")
    parser.add_argument("--commands", default="", help="starts of lines with commas; all lines")
    parser.add_argument("--without", default="-", help="starts of lines that are left out")
    parser.add_argument("--folder", type=Path, default=Path("compared"), help="folder for files")
    parser.add_argument("--limit", type=float, default=60.0, help="processor time of a line, s")
    parser.add_argument("--places", type=int, default=8, help="differences shown for a line")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    old = Checkout(arguments.old, folder / "old", arguments.limit)
    new = Checkout(arguments.new, folder / "new", arguments.limit)
    has_new_names = hasattr(deprecated_names(old.root), "COMMANDS")
    names = None if has_new_names else deprecated_names(new.root)
    machines = arguments.machines.split(",") if arguments.machines else _shipped(new)
    starts = tuple(arguments.commands.split(","))
    left_out = tuple(arguments.without.split(","))
    (folder / "inputs").mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / "inputs" / name).write_text(text, encoding="utf-8")
    inputs = Inputs(old, names, folder / "inputs")
    counts: dict[str, Counter[str]] = {}
    with (folder / "records.jsonl").open("a", encoding="utf-8") as records:
        for machine in machines:
            facts = inputs.of(machine)
            for line in LINES:
                is_meant = line.words.startswith(starts) and not line.words.startswith(left_out)
                if not is_meant or machine not in (line.machines or (machine,)):
                    continue
                record = _compared(line, facts, old, new, names)
                counts.setdefault(line.words, Counter())[record["verdict"]] += 1
                records.write(json.dumps(record) + "\n")
                records.flush()
                _print(record, arguments.places)
    old.close()
    new.close()
    _print_table(counts)


def _compared(line: Line, facts: Facts, old: Checkout, new: Checkout, names: Any) -> dict[str, Any]:
    """Return the record of a line on a machine."""
    words: list[list[str]] = []
    for checkout in (old, new):
        output = checkout.folder / facts.machine
        output.mkdir(exist_ok=True)
        values = {
            **vars(facts),
            "output": output,
            "inputs": facts.folder.parent,
            "root": new.root,
        }
        is_older = checkout is old and names is not None
        text = line.older if line.older and is_older else line.words
        filled = [*text.format(**values).split(), "--json"]
        is_renamed = is_older and not line.older
        words.append(older_words(filled, names) if is_renamed else filled)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(c.run, w) for c, w in zip((old, new), words, strict=True)]
        before, after = (job.result() for job in jobs)
    paths = names.JSON_KEYS if names else {}
    keys = {old.rpartition("/")[2]: new.rpartition("/")[2] for old, new in paths.items()}
    comparison = Comparison(line.tolerance, keys, UNCOMPARED | line.uncompared)
    found = _found(before, after, comparison)
    if line.words.startswith("export") and after.code == 0:
        kind = line.words.split()[1]
        folders = [checkout.folder / facts.machine / kind for checkout in (old, new)]
        found += differences_of_code(*folders, comparison)
    differences = [item for item in found if item.old is not MISSING]
    if before.code is None or after.code is None:
        verdict = "not compared"
    elif differences:
        verdict = "differ"
    else:
        verdict = "equal" if before.value is not None else "refused"
    return {
        "machine": facts.machine,
        "line": line.words,
        "words": words,
        "verdict": verdict,
        "codes": [before.code, after.code],
        "seconds": [before.seconds, after.seconds],
        "numbers": _count(after.value),
        "texts": [before.text[-2000:], after.text[-2000:]],
        "differences": {
            key: [len(items), max(item.relative for item in items), str(items[0])]
            for key, items in by_key(differences).items()
        },
        "added": sorted(by_key([item for item in found if item.old is MISSING])),
    }


def _print(record: Mapping[str, Any], places: int) -> None:
    times = ", ".join(f"{seconds:.1f}" for seconds in record["seconds"])
    print(
        f"{record['verdict']}: {record['machine']}: {record['line']} codes {record['codes']},"
        f" {times} s, {record['numbers']} values",
        flush=True,
    )
    for count, _, text in [*record["differences"].values()][:places]:
        print(f"    {count} x {text}")
    if len(record["differences"]) > places:
        print(f"    and {len(record['differences']) - places} more places")
    if record["added"]:
        print(f"    added: {', '.join(record['added'])[:300]}", flush=True)


def _print_table(counts: Mapping[str, Counter[str]]) -> None:
    verdicts = ("equal", "differ", "refused", "not compared")
    print("\n" + "".join(f"{verdict:>13}" for verdict in verdicts) + "  command")
    for line, row in counts.items():
        print("".join(f"{row[verdict]:13}" for verdict in verdicts) + f"  {line}")


def _count(value: Any) -> int:
    """Return the number of values in a JSON document."""
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _found(before: Outcome, after: Outcome, comparison: Comparison) -> list[Difference]:
    """Return the differences of two outcomes."""
    if before.code is None or after.code is None:
        return [Difference("not compared", before.text[-200:], after.text[-200:])]
    found = [] if before.code == after.code else [Difference("exit code", before.code, after.code)]
    if (before.value is None) != (after.value is None):
        texts = [text.strip()[-300:] for text in (before.text, after.text)]
        return [*found, Difference("JSON", *texts)]
    return [*found, *comparison.differences(before.value, after.value)]


def _shipped(checkout: Checkout) -> list[str]:
    """Return the names of all shipped machines."""
    return [machine["name"] for machine in checkout.run(["list", "--json"]).value["machines"]]


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main()

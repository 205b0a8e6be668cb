"""Pages state on which commit and processor a table was measured, and no table is much older than what it measures."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STAMP = re.compile(
    r"(?P<verb>Measured|Computed) at commit (?P<commit>[0-9a-f]{8}) "
    r"(on [^,]+, (AVX2|AVX-512)|by [^,]+, not measured), \d{4}-\d{2}-\d{2}\."
)
#: Programs whose tables are computed without the processor or GPU that they describe.
COMPUTED_BY = ("bench_gpu.py",)
#: Marks of the tables that programs write, and the line of a table's heads.
MARKED = re.compile(
    r"<!-- measured by (?P<program>\w+\.py)(?P<part>[^:]*): begin -->(?P<text>.*?)"
    r"<!-- measured by (?P=program)(?P=part): end -->",
    re.DOTALL,
)
HEAD = re.compile(r"^\|.*\|$", re.MULTILINE)
#: Number of commits that may have touched what a table measures since it was measured.
MAX_COMMITS = 75
#: What every benchmark measures: the code that makes machine code and calls it.
CORE = tuple(f"src/tauloop/{package}" for package in ("equations", "compiler", "model"))
#: Where this code was before version 0.2.
BEFORE = tuple(f"src/tauloop/{package}" for package in ("assembly", "programs", "codegen"))
#: What a benchmark measures besides, by program.
FURTHER = {
    "bench_calibration.py": ("src/tauloop/calibration",),
    "bench_certificates.py": ("src/tauloop/design",),
    "bench_control.py": ("src/tauloop/simulation", "src/tauloop/integrate"),
    "bench_fastest.py": ("src/tauloop/motion",),
    "bench_gpu.py": ("src/tauloop/export/gpu",),
    "bench_identification.py": ("src/tauloop/identification", "src/tauloop/logs"),
}


def measured_tables() -> list[tuple[str, str, str]]:
    """Page, beginning of the table's heads, and program of every table that is measured."""
    lines = (ROOT / "tests" / "tables_of_figures.txt").read_text(encoding="utf-8").splitlines()
    matches = [
        re.fullmatch(r"(\S+) \| (.*?) : measured by benchmarks/(\S+)", line) for line in lines
    ]
    listed = [(match[1], match[2], match[3]) for match in matches if match is not None]
    tables = [(f"docs/{page}", head, program) for page, head, program in listed]
    for page in sorted((ROOT / "benchmarks").glob("*.md")):
        tables.extend(marked_tables(page))
    return tables


def marked_tables(page: Path) -> list[tuple[str, str, str]]:
    """Page, heads and program of every table between marks of a page in benchmarks/."""
    tables = []
    for marked in MARKED.finditer(page.read_text(encoding="utf-8")):
        head = HEAD.search(marked["text"])
        assert head is not None, f"{page}: no table between the marks of {marked['program']}"
        tables.append((page.relative_to(ROOT).as_posix(), head[0], marked["program"]))
    return tables


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(
            f"needs the history of the repository: git {arguments[0]}: {done.stderr.strip()}"
        )
    return done.stdout.strip()


def stamp_below(page: str, head: str, program: str) -> re.Match[str]:
    """The stamp between a table and the next heading of its page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    below = text[text.index(f"\n{head}") :]
    section = re.split(r"^#", below, maxsplit=1, flags=re.MULTILINE)[0]
    match = STAMP.search(section)
    assert match is not None, f"{page}: no 'Measured at commit ... on ...' below the table {head}"
    verb = "Computed" if program in COMPUTED_BY else "Measured"
    assert match["verb"] == verb, f"{page}: {match[0]!r} is not a line of '{verb} at commit ...'"
    return match


@pytest.mark.parametrize(
    ("page", "head", "program"), measured_tables(), ids=lambda value: str(value)[:40]
)
def test_a_measured_table_states_its_commit_and_is_not_old(
    page: str, head: str, program: str
) -> None:
    stamp = stamp_below(page, head, program)
    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("needs the whole history of the repository, and this clone is shallow")
    known = subprocess.run(
        ["git", "merge-base", "--is-ancestor", stamp["commit"], "HEAD"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert known.returncode == 0, (
        f"{page}: commit {stamp['commit']} is not one of the commits before this one"
    )
    paths = (*CORE, *BEFORE, *FURTHER.get(program, ()))
    count = int(git("rev-list", "--count", f"{stamp['commit']}..HEAD", "--", *paths))
    assert count <= MAX_COMMITS, (
        f"{page}: {count} commits on measured code since {stamp['commit']}: run benchmarks/{program} again"
    )


def test_programs_with_further_paths_are_there() -> None:
    for program, paths in FURTHER.items():
        assert (ROOT / "benchmarks" / program).is_file(), program
        assert all((ROOT / path).is_dir() for path in (*CORE, *paths))

"""Code on pages as a reader meets it: page by page, block by block, in an empty folder.

Blocks of Python share one namespace a page. Those of the console (`$ command`, and what it prints)
and of bash (only commands) run line by line, `tauloop` in this process, all else in a shell. A
block with `title="NAME"` is a file that the reader writes, and is not run. A block of text behind
one that printed is what it printed; `...` stands for anything, and the last digit of a number may
differ by one. `value  # literal` in Python says what the value is.

`<!-- not run: REASON -->` before a block says that it cannot run; `<!-- nightly: REASON -->` that
it takes long.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from extras import EXTRAS, extra

from conftest import ROOT, shared_folder

PAGES = tuple(
    sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
)
_FENCED = re.compile(
    r"(?:<!-- (?P<mark>not run|nightly): (?P<reason>[^>]*?) -->\s*)?"
    r"^(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```",
    re.M | re.S,
)
_TITLE = re.compile(r'title="([^"]+)"')
_NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
#: Packages that pages compare Tauloop with, none of which it needs.
PEERS = ("figaroh", "roboticstoolbox")
#: What stands on pages for the folder of the arm's log.
DATA = re.compile(r"\bDATA\b")
#: Numbers below it are rounding, and another one everywhere.
ROUNDING = 1e-9
#: Seconds that a command in a shell may take.
PATIENCE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    #: The file whose content it is; empty where it is none.
    title: str
    body: str
    #: "not run", "nightly" or nothing, and why.
    mark: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_code(self) -> bool:
        return not self.title and self.language in ("python", "console", "bash")


def name_of(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str, page: str = "page") -> Iterator[Block]:
    """All fenced blocks of a page's text, in order."""
    for match in _FENCED.finditer(text):
        title = _TITLE.search(match["info"])
        indent = len(match["indent"])
        yield Block(
            page=page,
            line=text.count("\n", 0, match.start("language")) + 1,
            language=match["language"],
            title=title[1] if title else "",
            body="".join(line[indent:] for line in match["body"].splitlines(keepends=True)),
            mark=match["mark"] or "",
            reason=match["reason"] or "",
        )


def arm_s_log() -> Path:
    """The folder of the log of a measured arm, which pages call DATA."""
    return shared_folder() / "data" / "tx40"


def absent_parts(block: Block) -> list[str]:
    """What a block needs and is not here: a peer that it imports, the log of the arm."""
    peers = [name for name in PEERS if re.search(rf"^(import|from) {name}\b", block.body, re.M)]
    needs_data = block.language == "console" and DATA.search(block.body) is not None
    return [name for name in peers if importlib.util.find_spec(name) is None] + [
        "the log of the TX40 in the shared folder"
        for _ in range(needs_data and not arm_s_log().is_dir())
    ]


def _tokens(text: str) -> list[str]:
    return [part for word in text.split() for part in _NUMBER.split(word) if part]


def _same(shown: str, printed: str) -> bool:
    if shown == printed:
        return True
    if not (_NUMBER.fullmatch(shown) and _NUMBER.fullmatch(printed)):
        return False
    digits, _, power = shown.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    wanted, got = float(shown), float(printed)
    return max(abs(wanted), abs(got)) < ROUNDING or abs(wanted - got) < 1.5 * last * (
        "." in digits or bool(power)
    )


def is_output(shown: str, printed: str) -> bool:
    """Whether a text is what was printed, up to roundings and what `...` leaves out."""
    pieces = [_tokens(piece) for piece in re.split(r"(?:(?<=\s)|^)\.\.\.(?=\s|$)", shown)]
    came, at = _tokens(printed), 0
    for k, piece in enumerate(pieces):
        last = len(came) - len(piece)
        starts = (
            [at] if k == 0 else [last] if k == len(pieces) - 1 and piece else range(at, last + 1)
        )
        fits = (s for s in starts if s >= at and all(map(_same, piece, came[s:])) and s <= last)
        start = next(fits, None)
        if start is None:
            return False
        at = start + len(piece)
    return at == len(came) or (len(pieces) > 1 and not pieces[-1])


@dataclass(slots=True)
class Command:
    """A line behind `$`, continued lines joined, and what the page shows of its output."""

    line: str
    shown: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)

    @property
    def exit_code(self) -> int:
        """The one that its comment names, 0 where none does."""
        match = re.search(r"#.*exit code (\d)", self.line)
        return int(match[1]) if match else 0


def commands(body: str, language: str) -> list[Command]:
    """Commands of a block of the console, or of bash, where every line is one."""
    made: list[Command] = []
    prompt = "$ " if language == "console" else ""
    for line in re.sub(r"\\\n>?\s*", " ", body).splitlines(keepends=True):
        if line.strip() and line.startswith(prompt):
            made.append(Command(line.removeprefix(prompt).strip()))
        elif made:
            made[-1].shown += line
    return made


def literals(code: str) -> dict[int, tuple[str, object]]:
    """Expressions whose comment is a literal: line, its expression and the value that the comment says."""
    values: dict[int, tuple[str, object]] = {}
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.Expr) and node.lineno == node.end_lineno:
            text, _, comment = lines[node.lineno - 1].partition("  # ")
            with contextlib.suppress(ValueError, SyntaxError):
                values[node.lineno] = text, ast.literal_eval(comment.strip())
    return values


@dataclass
class Reader:
    """Somebody who follows a page in an empty folder, which the working directory must be."""

    page: Path
    nightly: bool = False
    namespace: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})
    #: What the last block printed, where no page has shown it yet.
    printed: str = ""

    @cached_property
    def blocks(self) -> list[Block]:
        return list(blocks(self.page.read_text(encoding="utf-8"), name_of(self.page)))

    def read(self) -> None:
        """Do all that the page says; where an extra is not installed the test is skipped."""
        for block in self.blocks:
            if block.language == "python" and not block.mark:
                for module in EXTRAS:
                    if re.search(rf"^(import|from) {module}\b", block.body, re.M):
                        extra(module)
        if any("examples/" in block.body for block in self.blocks):
            Path("examples").symlink_to(ROOT / "examples")
        lacking: dict[str, None] = {}
        for block in self.blocks:
            if block.mark == "not run" or (block.mark == "nightly" and not self.nightly):
                self.printed = ""
            elif missing := [name for name in absent_parts(block) if block.mark]:
                lacking |= dict.fromkeys(missing)
                self.printed = ""
            elif block.title:
                self.printed = ""
                path = Path(block.title)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.body, encoding="utf-8")
            elif block.language == "python":
                self.printed = self.python(block)
            elif block.language in ("console", "bash"):
                self.printed = self.console(block)
            elif block.language == "text" and self.printed:
                assert is_output(block.body, self.printed), (
                    f"{block.place}: not what comes:\n{self.printed}"
                )
                self.printed = ""
            else:
                self.printed = ""

        if lacking:
            pytest.skip(f"all has run but what needs {', '.join(lacking)}")

    def python(self, block: Block) -> str:
        """Run Python; values that comments say are compared."""
        code = "\n" * block.line + block.body  # a traceback names the page's line
        lines = literals(block.body)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            if any(re.search(rf"^(import|from) {name}\b", block.body, re.M) for name in PEERS):
                warnings.simplefilter("ignore")  # theirs
            for node in ast.parse(code).body:
                part = compile(ast.Module([node], []), block.page, "exec", dont_inherit=True)
                if (stated := lines.get(node.lineno - block.line)) is None:
                    exec(part, self.namespace)  # our own pages
                    continue
                value = eval(stated[0].strip(), self.namespace)
                assert _equal(value, stated[1]), (
                    f"{block.page}:{node.lineno}: {value!r}, and not {stated[1]!r}"
                )
        return printed.getvalue()

    def console(self, block: Block) -> str:
        """Run commands; the output that no page has shown is given back."""
        left = ""
        for command in commands(block.body, block.language):
            code, output = self.command(command)
            if command.shown.strip():
                assert is_output(command.shown, output), (
                    f"{block.place}: $ {command.line}\n{output}"
                )
            else:
                assert code == command.exit_code, (
                    f"{block.place}: $ {command.line} ends with {code}\n{output}"
                )
                left += output
        return left

    def command(self, command: Command) -> tuple[int, str]:
        """Exit code and output of one command."""
        words = [DATA.sub(str(arm_s_log()), word) for word in command.words]
        if words[0] == "tauloop" and not {"|", "||", ">", "&&"} & set(words):
            result = run(*words[1:], code=None, columns=80)
            if result.exit_code == 2 and (
                missing := re.search(r"pip install '?(tauloop\[\w+\])", result.output)
            ):
                pytest.skip(f"needs {missing[1]}: {command.line}")
            return result.exit_code, result.output
        done = subprocess.run(
            ["bash", "-c", f'PATH="{Path(sys.executable).parent}:$PATH"; {command.line}'],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            env=os.environ | {"COLUMNS": "80"},
            check=False,
        )
        return done.returncode, done.stdout


def _equal(value: object, stated: object) -> bool:
    if isinstance(stated, float):
        return bool(np.isclose(float(value), stated, rtol=1e-3, atol=ROUNDING))  # type: ignore[arg-type]
    if isinstance(stated, tuple | list):
        parts = list(value)  # type: ignore[call-overload]
        return len(parts) == len(stated) and all(map(_equal, parts, stated))
    return bool(value == stated)


@pytest.fixture
def reader_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in; viewers end as soon as they stand, and no browser is opened."""
    import webbrowser

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    with contextlib.suppress(ImportError):
        from tauloop.viewer import Viewer

        def interrupted(viewer: Viewer, elapsed: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Viewer, "advance", interrupted)
    return tmp_path

"""The installed program, run in this process: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tauloop.cli.app import app


def run(*arguments: object, code: int | None = 0, columns: int = 120) -> Result:
    """The program with these words; ``code`` is the exit code that it must have, None for any."""
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, result.output
    return result


def text_of(*arguments: object, code: int | None = 0) -> str:
    """All that it prints, on one line."""
    return " ".join(run(*arguments, code=code).output.split())


def run_json(*arguments: object, code: int | None = 0) -> Any:
    """Its JSON, beside which it prints no more."""
    result = run(*arguments, "--json", code=code)
    assert not result.stderr
    return json.loads(result.stdout, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def problems(*arguments: object) -> list[dict[str, Any]]:
    """Problems of a command that cannot use its input; the text names the same ones on standard error."""
    answer = run_json(*arguments, code=2)
    assert answer["status"] == "error"
    text = run(*arguments, code=2)
    assert not text.stdout
    for problem in answer["problems"]:
        assert problem["what"] in text.stderr
        assert problem["remedy"]
    return list(answer["problems"])

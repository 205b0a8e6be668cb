"""`tauloop run stream`: files for viewers, and refusals before any work."""

import json
from pathlib import Path

from extras import extra
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.app import app


def test_a_recording_is_written(tmp_path: Path) -> None:
    extra("foxglove")
    runner = CliRunner()
    motion = tmp_path / "motion.csv"
    assert (
        runner.invoke(app, ["simulate", "delta", "--duration", "0.05", "-o", str(motion)]).exit_code
        == 0
    )
    out = tmp_path / "motion.mcap"
    words = ["run", "stream", "delta", "--motion", str(motion), "-o", str(out)]
    result = runner.invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "for foxglove" in result.stdout
    printed = json.loads(runner.invoke(app, [*words, "--json"]).stdout)
    assert printed == json.loads(json.dumps(tl.run_stream("delta", out, motion=motion).as_dict()))
    assert out.read_bytes().startswith(b"\x89MCAP")


def test_other_endings_are_refused(tmp_path: Path) -> None:
    words = ["run", "stream", "delta", "--motion", "m.csv", "-o", str(tmp_path / "a.csv")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2

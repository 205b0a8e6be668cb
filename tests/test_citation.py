"""What CITATION.cff says is what the project says of itself; cffconvert holds it against the schema, by night."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import tauloop
from conftest import ROOT

CITATION = ROOT / "CITATION.cff"


def test_a_citation_names_this_version_under_this_licence() -> None:
    stated = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert stated["version"] == tauloop.__version__
    assert stated["license"] == project["license"]
    assert (
        stated["title"]
        == f"Tauloop: {project['description'][0].lower()}{project['description'][1:]}"
    )
    assert stated["keywords"] == project["keywords"]


@pytest.mark.nightly
def test_a_citation_is_valid_by_its_schema(tmp_path: Path) -> None:
    """In an environment of its own: cffconvert, which brings the schema, needs an older jsonschema than our tests."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    programs = tmp_path / "environment" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", "cffconvert>=2,<3"], check=True)
    done = subprocess.run(
        [programs / "cffconvert", "--validate", "-i", CITATION],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.cff"
    wrong.write_text(
        CITATION.read_text(encoding="utf-8").replace("type: software", "type: hammer"),
        encoding="utf-8",
    )
    assert subprocess.run(
        [programs / "cffconvert", "--validate", "-i", wrong], check=False
    ).returncode

"""Files around the package agree with pyproject.toml: versions of Python, lock, images, workflow."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = "requirements-dev.txt"
#: Extras that the lock contains, as `make test` and `make docs` install them.
LOCKED_EXTRAS = ("all", "engines", "film", "jax", "dev", "docs")
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(extras: tuple[str, ...]) -> list[Requirement]:
    """Requirements of Tauloop with some extras."""
    lines = list(PROJECT["dependencies"])
    pending = list(extras)
    while pending:
        for line in PROJECT["optional-dependencies"][pending.pop()]:
            need = Requirement(line)
            if need.name == "tauloop":
                pending += need.extras
            else:
                lines.append(line)
    return [Requirement(line) for line in lines]


def locked(python: str) -> dict[str, str]:
    """Versions in the lock by package, for one Python on Linux."""
    environment = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    lines = (ROOT / LOCK).read_text(encoding="utf-8").splitlines()
    needs = [Requirement(line) for line in lines]
    return {
        normalized(need.name): str(need.specifier).removeprefix("==")
        for need in needs
        if need.marker is None or need.marker.evaluate(environment)
    }


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_allowed_versions_of_all_dependencies(python: str) -> None:
    versions = locked(python)
    for need in wanted(LOCKED_EXTRAS):
        version = versions.get(normalized(need.name))
        assert version is not None, f"{need.name} is not in {LOCK}"
        assert need.specifier.contains(version), f"{need}: {LOCK} has {version}"


def test_classifiers_and_workflow_state_the_same_pythons() -> None:
    stated = [
        line.rpartition(" :: ")[2]
        for line in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    ]
    assert stated == PYTHONS
    assert SpecifierSet(PROJECT["requires-python"]).contains(PYTHONS[0])
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    matrix = jobs["matrix"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert {"run": "bash .ci/run"} in jobs["everything"]["steps"]
    assert "never run" in text
    for step in jobs["matrix"]["steps"]:
        for folder in re.findall(r"\btests/\w+", step.get("run", "")):
            assert (ROOT / folder).is_dir(), folder


def test_the_image_copies_what_the_build_needs() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [word for line in re.findall(r"^COPY (.*)", text, re.M) for word in line.split()[:-1]]
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"} == set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    assert 'ENTRYPOINT ["tauloop"]' in text


def test_the_development_container_installs_the_lock() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    settings = json.loads(text)
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).is_file()
    assert f"--requirement {LOCK}" in settings["postCreateCommand"]
    assert "--editable . --editable papers" in settings["postCreateCommand"]

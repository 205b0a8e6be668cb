"""Experiments as data: a YAML file names the procedure, the machines, and every setting and choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tauloop.errors import InputError, Problem
from tauloop.mechanism.suggestions import suggestion

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: of its file, as `tauloop reproduce` takes it.
        title: one line.
        source: the paper.
        procedure: module of `tauloop.reproduce` that does it; that of `tauloop.report` with ``_figures`` draws it.
        settings: what the procedure needs, as plain data in SI.
    """

    name: str
    title: str
    source: str
    procedure: str
    settings: Mapping[str, Any]


def experiments() -> tuple[str, ...]:
    """Names of all experiments, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        InputError: there is none.
    """
    if name not in experiments():
        remedy = suggestion(name, experiments()) or f"there are {', '.join(experiments())}"
        raise InputError(Problem(where=name, what="no experiment has this name", remedy=remedy))
    content = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return Experiment(
        name=name,
        title=content.pop("title"),
        source=content.pop("source"),
        procedure=content.pop("procedure"),
        settings=content,
    )

"""Experiments on another machine file, and the models of that machine for comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tauloop as tl
from tauloop.common.errors import InputError, Problem
from tauloop.drives import load_drive
from tauloop.mechanism import Mechanism
from tauloop_papers.reproduction import Experiment


def settings_on(item: Experiment, file: str) -> Any:
    """Return an experiment's settings with another file for its machine or drive line.

    Raises:
        InputError: the experiment has no machine file, or elements of the paper's machine are
            missing in the file.
        DescriptionError: the file has errors.
    """
    settings = item.settings
    if not item.file:
        remedy = "fit a plant to measured steps with `tauloop drive fit MINE.yaml steps.yaml`"
        raise InputError.of(
            item.name, "searches a plant for printed tables and takes no machine", remedy
        )
    paper = item.machine_of(settings)
    load = tl.load if item.file == "machine" else load_drive
    required, present = _names_by_kind(load(paper)), _names_by_kind(load(file))
    remedy = f"use these names, or begin with the paper's: {paper}"
    if item.file == "machine":
        remedy = f"use these names, or begin with `tauloop new mine --template {paper}`"
    problems = []
    for kind, names in required.items():
        if missing := names - present[kind]:
            what = f"has no {kind} {', '.join(sorted(missing))}, which the experiment needs"
            problems.append(Problem(file, what, remedy))
    InputError.raise_if_any(problems)
    return replace(settings, **{item.file: file})


def _names_by_kind(machine: Any) -> dict[str, set[str]]:
    """Return the names that experiments use, by kind of element."""
    names = {"parameter": set(machine.parameters.values)}
    if isinstance(machine, Mechanism):
        names["actuator"] = {actuator.name for actuator in machine.actuators}
        names["body"] = {body.name for body in machine.bodies}
    return names


def of_same_parts(model: str, machine: Mechanism) -> Mechanism:
    """Return another model of a machine, with the machine's values of common parameters."""
    described = tl.load(model)
    values = machine.parameters.values
    return described.with_values(
        {name: values[name] for name in described.parameters.values if name in values}
    )


def one_link_per_cluster(model: str, machine: Mechanism) -> Mechanism:
    """Return the Gantry-Tau model with one link per cluster that nominally equals the machine.

    The first link of a cluster represents all of it, with its length and the track's position plus
    its A - B (eq. 1 of the calibration's paper).
    """
    values = machine.parameters.values
    own = {}
    for track, link in (("track1", "triple1"), ("track2", "pair1"), ("track3", "single1")):
        own[f"{track}.length"] = values[f"{link}.length"]
        for axis in "xyz":
            place = values.get(f"{track}.track_{axis}", 0.0)
            # rounded to 1 pm, because differences of decimal numbers are decimal
            own[f"{track}.offset_{axis}"] = round(
                place + values[f"{link}.A_{axis}"] - values[f"{link}.B_{axis}"], 12
            )
    own |= {name: values[f"{name}xx"] for name in ("I_s", "I_l") if f"{name}xx" in values}
    return of_same_parts(model, machine).with_values(own)

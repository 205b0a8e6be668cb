"""An experiment on a machine file of one's own, and the other models of that machine which experiments compare with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tauloop as tl
from tauloop.common.errors import InputError, Problem
from tauloop.drives import load_drive
from tauloop.mechanism import Mechanism
from tauloop_papers.reproduction import Experiment


def settings_on(item: Experiment, file: str) -> Any:
    """An experiment's settings with a file of one's own in the place of the paper's machine, or of its drive line.

    Raises:
        InputError: the experiment has no machine of its own, or parts of the paper's machine are
            not in the file.
        DescriptionError: the file is wrong.
    """
    settings = item.settings
    if not item.file:
        remedy = "fit a plant to steps of yours by `tauloop drive fit MINE.yaml steps.yaml`"
        raise InputError.of(
            item.name, "searches the plant behind printed tables and takes no machine", remedy
        )
    paper = item.machine_of(settings)
    ours, own = (_parts(load(name)) for load in (_loader(item),) for name in (paper, file))
    InputError.raise_if_any(
        Problem(
            file,
            f"has no {kind} {', '.join(sorted(names - own[kind]))}, which the experiment asks for",
            f"name it so, or begin with the paper's: `tauloop new mine --template {paper}`"
            if item.file == "machine"
            else f"name it so, or begin with the paper's: {paper}",
        )
        for kind, names in ours.items()
        if names - own[kind]
    )
    return replace(settings, **{item.file: file})


def _loader(item: Experiment) -> Any:
    return tl.load if item.file == "machine" else load_drive


def _parts(machine: Any) -> dict[str, set[str]]:
    """What experiments call by name."""
    parts = {"parameter": set(machine.parameters.values)}
    if isinstance(machine, Mechanism):
        parts["actuator"] = {actuator.name for actuator in machine.actuators}
        parts["body"] = {body.name for body in machine.bodies}
    return parts


def of_same_parts(model: str, machine: Mechanism) -> Mechanism:
    """Another model of a machine: what both files call alike has the machine's values."""
    described = tl.load(model)
    values = machine.parameters.values
    return described.with_values(
        {name: values[name] for name in described.parameters.values if name in values}
    )


def one_link_per_cluster(model: str, machine: Mechanism) -> Mechanism:
    """The model of a Gantry-Tau with a link for each cluster that is nominally the machine.

    The first link of a cluster stands for all: its length, and the track's place plus A - B of it
    (eq. 1 of the calibration's paper).
    """
    values = machine.parameters.values
    own = {}
    for track, link in (("track1", "triple1"), ("track2", "pair1"), ("track3", "single1")):
        own[f"{track}.length"] = values[f"{link}.length"]
        for axis in "xyz":
            place = values.get(f"{track}.track_{axis}", 0.0)
            # to 1 pm: a difference of decimal figures is one
            own[f"{track}.offset_{axis}"] = round(
                place + values[f"{link}.A_{axis}"] - values[f"{link}.B_{axis}"], 12
            )
    own |= {name: values[f"{name}xx"] for name in ("I_s", "I_l") if f"{name}xx" in values}
    return of_same_parts(model, machine).with_values(own)

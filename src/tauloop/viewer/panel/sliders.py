"""Sliders that move the machine: one for each position of the platform or of the actuators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.common.errors import AssemblyError, TauloopError
from tauloop.equations.ports import Entry
from tauloop.model import Model
from tauloop.viewer.panel.handles import Handle, Handles
from tauloop.viewer.stage import Stage

#: Steps of sliders: m, deg, pure numbers.
SLIDER_STEPS = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}


class Sliders:
    """The sliders of both entries, which follow every motion of the machine.

    Attributes:
        handles: handles that they move, by entry.
        sliders: one slider for each handle, by entry.
    """

    def __init__(self, viewer: Stage, model: Model) -> None:
        """Add a folder for each entry, or the reason if it does not determine the machine."""
        self._viewer, self._model, self._syncing = viewer, model, False
        self.handles: dict[Entry, Handles] = {}
        self.sliders: dict[Entry, list[Any]] = {}
        for entry in Entry:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        gui, q = self._viewer.server.gui, self._viewer.q
        try:
            handles = Handles(self._model, self._model.motion(entry), q)
        except AssemblyError as error:
            gui.add_markdown(as_markdown(error, f"Cannot be moved by its {entry.name}:"))
            return
        if any(handles.names == others.names for others in self.handles.values()):
            return  # the independent coordinates of the platform are those of the motors
        with gui.add_folder(entry.name.capitalize()):
            self.handles[entry], self.sliders[entry] = handles, []
            for number, (handle, value) in enumerate(
                zip(handles.handles, handles.values(q), strict=True)
            ):
                slider = gui.add_slider(
                    f"{handle.name} [{handle.unit}]" if handle.unit != "1" else handle.name,
                    min=handle.lower,
                    max=handle.upper,
                    step=SLIDER_STEPS[handle.unit],
                    initial_value=_initial_value(handle, value),
                )
                slider.on_update(self._moves(entry, number))
                self.sliders[entry].append(slider)

    def move(self, entry: Entry, number: int, value: float, dragged: Any = None) -> None:
        """Move one handle: the machine follows, or stays and the panel shows the reason."""
        with self._viewer.lock:
            try:
                self._viewer.show(self.handles[entry].moved(self._viewer.q, number, value), dragged)
            except TauloopError as error:
                self._viewer.explain(error)

    def _moves(self, entry: Entry, number: int) -> Callable[[Any], None]:
        """Return the callback of a slider, which ignores changes that follow the machine."""

        def moved(event: Any) -> None:
            with self._viewer.lock:
                if not self._syncing:
                    self.move(entry, number, float(event.target.value), event.target)

        return moved

    def follow(self, q: np.ndarray, dragged: Any) -> None:
        """Move all sliders to the machine's pose, except the slider that the user drags."""
        self._syncing = True
        try:
            for entry, sliders in self.sliders.items():
                for slider, value in zip(sliders, self.handles[entry].values(q), strict=True):
                    if slider is not dragged:
                        slider.value = rounded(value, slider.step)
        finally:
            self._syncing = False


def rounded(value: float, step: float) -> float:
    """Return a value rounded to the step of a slider."""
    return round(float(value), round(-np.log10(step))) + 0.0


def _initial_value(handle: Handle, value: float) -> float:
    """Return a slider's first value within its range."""
    step = SLIDER_STEPS[handle.unit]
    return float(np.clip(rounded(value, step), handle.lower, handle.upper))


def as_markdown(error: TauloopError, heading: str) -> str:
    """Return an error's problems as a list for the panel."""
    lines = [f"**{heading}**", ""]
    for problem in error.problems:
        place = f" (line {problem.line})" if problem.line is not None else ""
        lines.append(
            f"- `{problem.where}`{place}: {problem.what}"
            + (f"; *{problem.remedy}*" if problem.remedy else "")
        )
    return "\n".join(lines)

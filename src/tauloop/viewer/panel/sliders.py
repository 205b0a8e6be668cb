"""Sliders that move the machine: one for each position of the platform or of the actuators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.common.errors import AssemblyError, TauloopError
from tauloop.equations.ports import Entry
from tauloop.model import Model
from tauloop.viewer.panel.handles import Handle, Handles
from tauloop.viewer.stage import Movable

#: Steps of sliders by unit.
SLIDER_STEPS = {"m": 1e-4, "deg": 1e-2, "1": 1e-4}
#: Handles whose values differ by less than this, in their unit, are the same quantity.
EQUALITY_TOLERANCE = 1e-6


class Sliders:
    """Sliders of the platform and the actuators, which follow every motion of the machine.

    A handle of the actuators that is the same quantity as a handle of the platform has no slider.
    An example is a direct-drive motor on a joint that is also a platform coordinate.

    Attributes:
        handles: handles by entry (platform or actuators).
        sliders: sliders by entry and index of their handle.
    """

    def __init__(self, viewer: Movable, model: Model) -> None:
        """Add a folder each for platform and actuators, or the reason why they cannot be moved."""
        self._viewer, self._model = viewer, model
        self._is_following = False
        self.handles: dict[Entry, Handles] = {}
        self.sliders: dict[Entry, dict[int, Any]] = {}
        for entry in Entry:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        gui, q = self._viewer.server.gui, self._viewer.q
        try:
            handles = Handles(self._model, self._model.functions(entry), q)
        except AssemblyError as error:
            gui.add_markdown(as_markdown(error, f"Cannot be moved by its {entry.name}:"))
            return
        repeated = self._repeated_handles(handles)
        if len(repeated) == len(handles.handles):
            return
        self.handles[entry], self.sliders[entry] = handles, {}
        values = handles.values(q)
        with gui.add_folder(entry.name.capitalize()):
            for number, handle in enumerate(handles.handles):
                if number in repeated:
                    continue
                step = SLIDER_STEPS[handle.unit]
                slider = gui.add_slider(
                    f"{handle.name} [{handle.unit}]" if handle.unit != "1" else handle.name,
                    min=_slider_end(handle.lower, step, np.ceil),
                    max=_slider_end(handle.upper, step, np.floor),
                    step=step,
                    initial_value=_initial_value(handle, values[number]),
                )
                slider.on_update(self._slider_callback(entry, number))
                self.sliders[entry][number] = slider

    def _repeated_handles(self, handles: Handles) -> set[int]:
        """Return the indices of handles that equal a handle with a slider, at all tested states."""
        states = self._model.assembly.states
        values, repeated = handles.values(states), set[int]()
        for entry, others in self.handles.items():
            earlier = others.values(states)
            for i, handle in enumerate(handles.handles):
                for k in self.sliders[entry]:
                    is_same_unit = handle.unit == others.handles[k].unit
                    is_same = np.abs(values[:, i] - earlier[:, k]).max() < EQUALITY_TOLERANCE
                    if is_same_unit and is_same:
                        repeated.add(i)
        return repeated

    def move(self, entry: Entry, number: int, value: float, dragged: Any = None) -> None:
        """Move one handle: the machine follows, or stays and the panel shows the reason."""
        with self._viewer.lock:
            try:
                self._viewer.show(self.handles[entry].moved(self._viewer.q, number, value), dragged)
            except TauloopError as error:
                self._viewer.explain(error)

    def _slider_callback(self, entry: Entry, number: int) -> Callable[[Any], None]:
        """Return the callback of a slider; changes due to the machine's motion are ignored."""

        def on_update(event: Any) -> None:
            with self._viewer.lock:
                if not self._is_following:
                    self.move(entry, number, float(event.target.value), event.target)

        return on_update

    def follow(self, q: np.ndarray, dragged: Any) -> None:
        """Move all sliders to the machine's pose, except the slider that the user drags."""
        self._is_following = True
        try:
            for entry, sliders in self.sliders.items():
                values = self.handles[entry].values(q)
                for number, slider in sliders.items():
                    if slider is not dragged:
                        slider.value = rounded(values[number], slider.step)
        finally:
            self._is_following = False


def rounded(value: float, step: float) -> float:
    """Return a value rounded to the step of a slider."""
    return round(float(value), round(-np.log10(step))) + 0.0


def _slider_end(limit: float, step: float, towards: Callable[[float], Any]) -> float:
    """Return the end of a slider: a limit, rounded to a multiple of the slider's step.

    Args:
        limit: the limit.
        step: step of the slider.
        towards: `numpy.ceil` or `numpy.floor`, which rounds into the range.
    """
    steps = limit / step
    nearest = round(steps)
    count = nearest if abs(steps - nearest) < 1e-6 else int(towards(steps))
    return rounded(count * step, step)


def _initial_value(handle: Handle, value: float) -> float:
    """Return the first value of a slider, clipped to its range."""
    step = SLIDER_STEPS[handle.unit]
    low, high = (
        _slider_end(handle.lower, step, np.ceil),
        _slider_end(handle.upper, step, np.floor),
    )
    return float(np.clip(rounded(value, step), low, high))


def as_markdown(error: TauloopError, heading: str) -> str:
    """Return an error's problems as a list for the panel."""
    lines = [f"**{heading}**", ""]
    for problem in error.problems:
        line_number = f" (line {problem.line})" if problem.line is not None else ""
        remedy = f"; *{problem.remedy}*" if problem.remedy else ""
        lines.append(f"- `{problem.where}`{line_number}: {problem.what}{remedy}")
    return "\n".join(lines)

"""Positions of logs of redundant drives: the motion that all encoders agree on best, and how far they disagree.

The leading actuators' positions are replaced by those of the pose that fits all encoders by least
squares. A constant error e_i of an encoder leaves residuals R_i e_i at every sample (R as in
`tauloop.model.encoder_fit`). Least squares over all samples give e_i and the share of the misfit
that it explains: a wrong zero shows even with one spare encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import AssemblyError, PoseError
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.identification.preparation.measured_log import MeasuredLog
from tauloop.logs import Signals, channels, samples
from tauloop.logs.matching import channel_problems
from tauloop.model import Model
from tauloop.model.encoder_fit import all_positions, encoder_deviations, least_squares

#: Largest misfit, as a share of the machine's characteristic length or in rad: forces follow the
#: geometry likewise.
LARGEST_SHARE = 1e-3
#: Samples that are fitted at once.
AT_ONCE = 20_000
#: Steps of Gauss and Newton from the pose of the leading actuators.
STEPS = 4


def with_all_encoders(
    model: Model, logs: Sequence[MeasuredLog]
) -> tuple[list[MeasuredLog], tuple[Diagnostic, ...]]:
    """The logs with positions on which all encoders agree best, and how far these disagree.

    Logs of machines without redundant drives, or without positions of the spare actuators, stay as
    they are.
    """
    fitted: list[MeasuredLog] = []
    diagnostics: list[Diagnostic] = []
    for log in logs:
        names = _encoders(model, log.log)
        try:
            made = (
                _fitted(model, log.log, names) if len(names) > len(model.assembly.leading) else None
            )
        except (PoseError, AssemblyError):
            made = None  # the regressor of the same log raises again, and names the samples
        if made is None:
            fitted.append(log)
            continue
        signals, misfit = made
        fitted.append(replace(log, log=signals))
        diagnostics.append(
            misfit if len(logs) == 1 else replace(misfit, name=f"{log.name}: {misfit.name}")
        )
    return fitted, tuple(diagnostics)


def _encoders(model: Model, log: Signals) -> tuple[str, ...]:
    """The actuators whose positions are in a log in the machine's units; none where a leading one is missing."""
    port = model.actuators.ports.position
    every = all_positions(model.assembly, port)
    measured = channels(log, "position")
    names = [name for name in every.columns if name in measured]
    units = dict(zip(every.columns, every.units, strict=True))
    if not set(port.columns) <= set(names) or channel_problems(
        log, {"position": {name: units[name] for name in names}}
    ):
        return ()
    return tuple(actuator.name for actuator in model.mechanism.actuators if actuator.name in names)


def _fitted(model: Model, log: Signals, names: tuple[str, ...]) -> tuple[Signals, Diagnostic]:
    """A log with fitted positions of the leading actuators, and the misfit of all encoders."""
    assembly, entry = model.assembly, model.actuators
    chosen = [k for k, actuator in enumerate(model.mechanism.actuators) if actuator.name in names]
    deviations = encoder_deviations(assembly, None)[chosen]
    measured = samples(log, "position", names)
    columns = entry.ports.position.columns
    position = samples(log, "position", columns)
    q = entry.track(position).q
    square, along, length = 0.0, np.zeros(len(names)), np.zeros(len(names))
    squares = np.zeros(len(names))
    for begin in range(0, len(position), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        fit = least_squares(
            entry,
            assembly.loops.transmission[chosen],
            lambda states: model.actuator_position(states)[:, chosen],
            measured[part],
            deviations,
            position[part],
            q[part],
            moving=len(assembly.leading),
            steps=STEPS,
        )
        position[part] = fit.position
        whitened = fit.residual / deviations
        effects = fit.projector / deviations[:, None]
        squares += (fit.residual**2).sum(axis=0)
        square += float((whitened**2).sum())
        along += np.einsum("kei,ke->i", effects, whitened)
        length += np.einsum("kei,kei->i", effects, effects)
    error = along / np.maximum(length, 1e-300)
    explained = error**2 * length / max(square, 1e-300)
    scale = [
        1.0 if unit == "rad" else assembly.loops.length
        for unit in np.array(model.actuator_units)[chosen]
    ]
    share = np.sqrt(squares / len(position)) / scale
    worst = int(explained.argmax())
    unit = model.actuator_units[chosen[worst]]
    replaced = dict(zip(columns, position.T, strict=True))
    fitted = tuple(
        replace(channel, values=replaced[channel.channel])
        if channel.quantity == "position" and channel.channel in replaced
        else channel
        for channel in log.channels
    )
    diagnostics = diagnostic(
        "largest misfit of redundant encoders, rad or share of the machine's characteristic length",
        share.max(),
        at_most=LARGEST_SHARE,
        advice=f"an error of {error[worst]:.3g} {unit} of the encoder of {names[worst]} explains "
        f"{100 * explained[worst]:.0f} % of it: check its zero, its scale and its column, or calibrate the machine",
    )
    return replace(log, channels=fitted), diagnostics

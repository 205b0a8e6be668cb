"""Positions of redundant drives: the least-squares fit to all encoders, and their disagreement.

The leading actuators' positions are replaced by those of the pose that fits all encoders by least
squares. A constant error e_i of an encoder leaves residuals R_i e_i at every sample (R as in
`tauloop.model.positions.encoder_fit`). Least squares over all samples estimate e_i and the fraction
of the misfit that it explains. A wrong zero is detected even with a single redundant encoder.
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
from tauloop.model.positions.encoder_fit import all_positions, encoder_deviations, least_squares

#: Largest accepted misfit, as a fraction of the machine's characteristic length, or in rad. The
#: relative error of forces is about as large.
MAX_MISFIT = 1e-3
#: Number of samples that are fitted at once.
BATCH_SAMPLES = 20_000
#: Number of Gauss-Newton steps from the pose of the leading actuators.
GAUSS_NEWTON_STEPS = 4


def with_all_encoders(
    model: Model, logs: Sequence[MeasuredLog]
) -> tuple[list[MeasuredLog], tuple[Diagnostic, ...]]:
    """Return the logs with positions fitted to all encoders, and the encoders' disagreement.

    Logs of machines without redundant drives, or without positions of the redundant actuators, are
    returned unchanged.
    """
    fitted: list[MeasuredLog] = []
    diagnostics: list[Diagnostic] = []
    for log in logs:
        names = _encoders(model, log.log)
        if len(names) <= len(model.assembly.leading):
            fitted.append(log)
            continue
        try:
            signals, misfit = _fit_positions(model, log.log, names)
        except (PoseError, AssemblyError):
            # The error is raised again, with the samples, when the regressor of the log is
            # computed.
            fitted.append(log)
            continue
        fitted.append(replace(log, log=signals))
        name = misfit.name if len(logs) == 1 else f"{log.name}: {misfit.name}"
        diagnostics.append(replace(misfit, name=name))
    return fitted, tuple(diagnostics)


def _encoders(model: Model, log: Signals) -> tuple[str, ...]:
    """Return the actuators whose positions are in a log, in the machine's units.

    The result is empty if the position of a leading actuator is missing.
    """
    port = model.actuators.ports.position
    all_port = all_positions(model.assembly, port)
    measured = channels(log, "position")
    names = [name for name in all_port.columns if name in measured]
    units = dict(zip(all_port.columns, all_port.units, strict=True))
    if not set(port.columns) <= set(names) or channel_problems(
        log, {"position": {name: units[name] for name in names}}
    ):
        return ()
    return tuple(actuator.name for actuator in model.mechanism.actuators if actuator.name in names)


def _fit_positions(
    model: Model, log: Signals, names: tuple[str, ...]
) -> tuple[Signals, Diagnostic]:
    """Return a log with fitted positions of the leading actuators, and the encoders' misfit."""
    assembly = model.assembly
    actuators = model.actuators
    chosen = [k for k, actuator in enumerate(model.mechanism.actuators) if actuator.name in names]
    deviations = encoder_deviations(assembly, None)[chosen]
    measured = samples(log, "position", names)
    columns = actuators.ports.position.columns
    position = samples(log, "position", columns)
    q = actuators.track(position).q
    squares = np.zeros(len(names))
    whitened_square = 0.0
    effect_products = np.zeros(len(names))
    effect_squares = np.zeros(len(names))
    for begin in range(0, len(position), BATCH_SAMPLES):
        batch = slice(begin, begin + BATCH_SAMPLES)
        fit = least_squares(
            actuators,
            assembly.loops.transmission[chosen],
            lambda states: model.actuator_position(states)[:, chosen],
            measured[batch],
            deviations,
            position[batch],
            q[batch],
            moving=len(assembly.leading),
            steps=GAUSS_NEWTON_STEPS,
        )
        position[batch] = fit.position
        whitened = fit.residual / deviations
        effects = fit.projector / deviations[:, None]
        squares += (fit.residual**2).sum(axis=0)
        whitened_square += float((whitened**2).sum())
        effect_products += np.einsum("kei,ke->i", effects, whitened)
        effect_squares += np.einsum("kei,kei->i", effects, effects)
    error = effect_products / np.maximum(effect_squares, 1e-300)
    explained = error**2 * effect_squares / max(whitened_square, 1e-300)
    scale = [
        1.0 if unit == "rad" else assembly.loops.length
        for unit in np.array(model.actuator_units)[chosen]
    ]
    misfits = np.sqrt(squares / len(position)) / scale
    worst = int(explained.argmax())
    unit = model.actuator_units[chosen[worst]]
    replaced = dict(zip(columns, position.T, strict=True))
    fitted = tuple(
        replace(channel, values=replaced[channel.channel])
        if channel.quantity == "position" and channel.channel in replaced
        else channel
        for channel in log.channels
    )
    misfit = diagnostic(
        "largest misfit of redundant encoders, rad or fraction of the machine's characteristic length",
        misfits.max(),
        at_most=MAX_MISFIT,
        advice=f"an error of {error[worst]:.3g} {unit} of the encoder of {names[worst]} explains "
        f"{100 * explained[worst]:.0f} % of the misfit: check the zero, the scale and the column of "
        "this encoder, or calibrate the machine",
    )
    return replace(log, channels=fitted), misfit

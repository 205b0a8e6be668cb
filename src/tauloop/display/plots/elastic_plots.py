"""Plots of elastic machines: shares of parts, elastic energy of modes, frequency responses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.pieces import Plot
from tauloop.display.plots.building import by_name, rounded, traces
from tauloop.elasticity.machine_stiffness import DIRECTIONS, Stiffness
from tauloop.elasticity.machine_vibration import Vibration

#: Frequencies of a response: number, and limits as fractions of the lowest and highest mode.
RESPONSE_COUNT, LOWEST, HIGHEST = 400, 0.2, 1.2


def stiffness_plots(result: Stiffness) -> Iterator[Plot]:
    """Yield the share of each part in the compliance at the softest pose, weakest part first."""
    pose = int(np.argmin(result.worst_translational))
    order = np.argsort(-result.worst_shares[pose], kind="stable")
    names = [result.items[k] for k in order]
    shares = 100.0 * result.shares[pose][:, order]
    groups = {
        "Softest direction of force": {"softest": 100.0 * result.worst_shares[pose][order]},
        "Forces": dict(zip(DIRECTIONS[:3], shares[:3], strict=True)),
        "Moments": dict(zip(DIRECTIONS[3:], shares[3:], strict=True)),
    }
    for title, columns in groups.items():
        yield by_name(
            f"{title}: share of each part",
            "share of the compliance [%]",
            names,
            columns,
            style="bars",
        )


def vibration_plots(result: Vibration) -> Iterator[Plot]:
    """Yield where each mode has its energy, and the tool's response to forces with a damping."""
    modes = [f"{k}: {value:.4g} Hz" for k, value in enumerate(result.frequency[0], start=1)]
    yield Plot(
        title="Elastic energy of each mode",
        x="mode",
        y="",
        grid=tuple(rounded(row) for row in 100.0 * result.shares[0].T),
        grid_x=tuple(modes),
        grid_y=result.items,
        grid_name="energy [%]",
        grid_range=(0.0, 100.0),
    )
    elastic = result.frequency[0, result.free :]
    if not len(elastic):
        return
    frequencies = np.geomspace(LOWEST * elastic[0], HIGHEST * elastic[-1], RESPONSE_COUNT)
    try:
        response = np.abs(result.tool_response(frequencies)[0])
    except InputError:  # neither the file nor the options state a damping
        return
    names = DIRECTIONS[:3]
    amplitudes = {name: 1e6 * response[:, k, k] for k, name in enumerate(names)}
    yield Plot(
        title="Response of the tool to a harmonic force in the same direction",
        x="frequency [Hz]",
        y="amplitude [um/N]",
        traces=traces(frequencies, amplitudes),
        log_x=True,
        log_y=True,
    )

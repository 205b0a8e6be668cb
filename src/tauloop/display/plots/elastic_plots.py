"""Plots of elastic machines: compliance by part, modes, responses, deflection in motion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.pieces import Plot
from tauloop.display.plots.building import by_name, channels_over_time, rounded, traces
from tauloop.elasticity.heat.expansion import ThermalExpansion
from tauloop.elasticity.static_analysis.rated_loads import StaticCompliance
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS, Stiffness
from tauloop.elasticity.vibrations.responses import FrequencyResponses
from tauloop.elasticity.vibrations.stability_lobes import StabilityLobes
from tauloop.elasticity.vibrations.vibration import Vibration
from tauloop.simulation.elastic.result import ElasticSimulation

#: Number of frequencies of a response.
RESPONSE_COUNT = 400
#: First frequency of a response, as a multiple of the lowest natural frequency.
START_FACTOR = 0.2
#: Last frequency of a response, as a multiple of the highest natural frequency.
END_FACTOR = 1.2
#: Largest drawn depth of cut, as a multiple of the smallest limit.
MAX_DEPTH_FACTOR = 6.0


def stiffness_plots(result: Stiffness) -> Iterator[Plot]:
    """Yield the fraction of the compliance due to each part at the softest pose, largest first."""
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


def static_compliance_plots(result: StaticCompliance) -> Iterator[Plot]:
    """Yield the displacement of the tool over the force, for each direction."""
    distances = dict(zip(result.directions, 1e3 * result.distance, strict=True))
    yield Plot(
        title="Displacement of the tool",
        x="force [N]",
        y="displacement [mm]",
        traces=traces(result.load, distances),
    )


def thermal_plots(result: ThermalExpansion) -> Iterator[Plot]:
    """Yield the tool's motion per kelvin of each part; for a log also the error in each row."""
    pose = int(np.argmax(result.distance))
    motion_per_kelvin = 1e6 * np.nan_to_num(result.per_kelvin[pose])
    distance = np.linalg.norm(motion_per_kelvin[:3], axis=0)
    order = np.argsort(-distance, kind="stable")
    yield by_name(
        "Motion of the tool per kelvin of each part",
        "distance [um/K]",
        [result.parts[k] for k in order],
        {"distance": distance[order]},
        style="bars",
    )
    if len(result.tool) > 1:
        number = np.arange(1.0, len(result.tool) + 1)
        axes = {name: 1e6 * result.error[:, k] for k, name in enumerate(DIRECTIONS[:3])}
        yield Plot(
            title="Error of the tool due to heat",
            x="row",
            y="error [um]",
            traces=traces(number, axes),
        )


def vibration_plots(result: Vibration) -> Iterator[Plot]:
    """Yield the energy of modes by part, stability lobes, and responses if damping is specified."""
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
    if result.lobes is not None:
        yield _lobe_plot(result.lobes)
    if result.responses is not None:
        yield from response_plots(result.responses)
        return
    elastic = result.frequency[0, result.free :]
    if not len(elastic):
        return
    start, end = START_FACTOR * elastic[0], END_FACTOR * elastic[-1]
    frequencies = np.geomspace(start, end, RESPONSE_COUNT)
    try:
        responses = result.frequency_responses(frequencies)
    except InputError:  # neither the file nor the options specify a damping
        return
    yield next(response_plots(responses))


def _lobe_plot(lobes: StabilityLobes) -> Plot:
    """Return a plot of the limit of the depth of cut as a function of the spindle speed."""
    least = 1e3 * lobes.least_depth
    limit = np.where(np.isfinite(lobes.limit), 1e3 * lobes.limit, np.nan)
    process = f"milling with {lobes.teeth} teeth" if lobes.teeth else "turning"
    drawn = {"limit": limit}
    if np.isfinite(least):
        drawn["stable at every speed"] = np.full(limit.shape, least)
    return Plot(
        title=f"Stability lobes of {process}",
        x="spindle speed [1/min]",
        y="depth of cut [mm]",
        traces=traces(60.0 * lobes.spindle_speed, drawn),
        log_x=True,
        y_range=(0.0, MAX_DEPTH_FACTOR * least) if np.isfinite(least) else (),
        note="Below the curve cutting is stable, above it the machine chatters.",
    )


def response_plots(responses: FrequencyResponses) -> Iterator[Plot]:
    """Yield amplitude and phase of the tool, its dynamic stiffness, and responses of encoders.

    The plots show the first pose; the smallest dynamic stiffness is also plotted for all poses.
    """
    frequency = responses.frequency
    tool = np.diagonal(responses.tool[0, :, :3, :3], axis1=-2, axis2=-1)
    heading = "the tool to a harmonic force in the same direction"
    by_axis = dict(zip(DIRECTIONS[:3], tool.T, strict=True))
    yield _over_frequency(
        f"Response of {heading}",
        "amplitude [um/N]",
        frequency,
        {name: 1e6 * np.abs(values) for name, values in by_axis.items()},
    )
    yield _over_frequency(
        f"Phase of {heading}",
        "phase [deg]",
        frequency,
        {name: np.degrees(np.angle(values)) for name, values in by_axis.items()},
        log_y=False,
    )
    by_direction = 1e-6 * responses.dynamic_stiffness[0].T
    stiffness = dict(zip(DIRECTIONS[:3], by_direction, strict=True))
    stiffness["any direction"] = 1e-6 * responses.worst_dynamic_stiffness[0]
    yield _over_frequency(
        "Dynamic stiffness of the tool", "force / amplitude [N/um]", frequency, stiffness
    )
    if len(responses.tool) > 1:
        yield Plot(
            title="Smallest dynamic stiffness of each pose",
            x="pose",
            y="force / amplitude [N/um]",
            traces=traces(
                np.arange(1, len(responses.tool) + 1),
                {"any direction": 1e-6 * responses.least_dynamic_stiffness},
            ),
        )
    for title, response in (
        ("Motor to encoder, with open loops", responses.encoder),
        ("Reference to encoder", responses.reference),
    ):
        if response is None:
            continue
        # Response of each encoder to its own actuator.
        direct = np.diagonal(response[0], axis1=-2, axis2=-1)
        columns = dict(zip(responses.actuators, direct.T, strict=True))
        amplitudes = {name: np.abs(values) for name, values in columns.items()}
        phases = {name: np.degrees(np.angle(values)) for name, values in columns.items()}
        yield _over_frequency(title, "amplitude [SI]", frequency, amplitudes)
        yield _over_frequency(f"{title}: phase", "phase [deg]", frequency, phases, log_y=False)


def _over_frequency(
    title: str,
    y: str,
    frequency: np.ndarray,
    columns: Mapping[str, np.ndarray],
    *,
    log_y: bool = True,
) -> Plot:
    """Return a plot of quantities as functions of the frequency."""
    return Plot(
        title=title,
        x="frequency [Hz]",
        y=y,
        traces=traces(frequency, columns),
        log_x=True,
        log_y=log_y,
    )


def elastic_simulation_plots(result: ElasticSimulation) -> Iterator[Plot]:
    """Yield deflection, forces and energies over time."""
    quantities = [
        ("Deflection of the tool", "deflection"),
        ("Axial force of the links", "axial"),
        ("Force of the drives", "drive"),
        ("Energy of the elastic motion", "energy"),
    ]
    if result.motors:
        quantities += [
            ("Force of the motors", "motor"),
            ("Following error of the motors", "following_error"),
        ]
    for title, quantity in quantities:
        yield from channels_over_time(title, result, quantity)

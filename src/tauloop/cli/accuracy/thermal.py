"""``tauloop accuracy thermal``: error of the tool due to thermal expansion of parts."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, FIGURE, RESULT


@command(out=CSV.of("the error by part"), figure=FIGURE, json_file=RESULT)
def thermal(
    machine: MachineArgument,
    options: tl.ThermalExpansionOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compute the thermal error of the tool, and its derivative with respect to temperature.

    Motors are locked. The derivative is listed per kelvin of each part. Expansion coefficients come
    from the materials of parts or from --expansions, which can also set them for rigid bodies and
    the base. Exit code 1 when a diagnostic is outside its limit, or the pose is beyond a stop.
    `tauloop workspace --color heat` maps the error.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.thermal_expansion(model, pose, options)
    finish(result, text_file(out, result.to_csv), within_limits=within_limits)

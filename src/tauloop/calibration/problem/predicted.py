"""Readings that a machine predicts, with elastic and thermal deflection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.problem import calibration_problem
from tauloop.common.errors import PoseError, solving
from tauloop.formats.library import mechanism_of
from tauloop.model.model import MachineSource


@solving(PoseError)
def predicted_readings(machine: MachineSource, series: Series) -> np.ndarray:
    """Return the readings (N, n_columns), SI, that a machine predicts at the encoders of a series.

    With loads or temperatures, the elastic deflection due to loads and weight and the thermal
    deflection are added to the rigid pose. Parameters of the instrument have their start values.
    The readings of the series are not used.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        series: encoders, loads and temperatures.

    Raises:
        InputError: loads or temperatures do not suit the machine.
        PoseError: poses are out of reach.

    Examples:
        >>> import numpy as np
        >>> import tauloop as tl
        >>> from tauloop.calibration import Position, Series, predicted_readings
        >>> tracker = Position(name="tracker")
        >>> idle = Series(instrument=tracker, encoders=np.zeros((1, 3)), readings=np.zeros((1, 3)), noise=1e-5)
        >>> predicted_readings("linear_delta", idle).shape
        (1, 3)
    """
    columns = series.instrument.columns
    zero_readings = np.zeros((len(series), len(columns)))
    zero_readings[:, [name == "qw" for name, _ in columns]] = 1.0
    nuisance = series.instrument.nuisances()[0].name
    problem = calibration_problem(
        mechanism_of(machine), [replace(series, readings=zero_readings)], [nuisance]
    )
    (state,) = problem.evaluate(np.zeros(1)).states
    return series.instrument.readings_at(state.errors)

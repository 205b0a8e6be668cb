"""A motion from a table: times, and values by port."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError
from tauloop.equations.ports import Port


def motion_table(ports: Mapping[str, Port], path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return times (N,), s, and values (N, n) of ports by name, from a CSV or Parquet file.

    Raises:
        InputError: columns are missing or have wrong units; lists all problems.
    """
    # Logs are slow to import, and a single pose does not need them.
    from tauloop.logs import read_log, samples
    from tauloop.logs.log import TIME
    from tauloop.logs.matching import channel_problems

    log = read_log(path)
    units = {name: dict(zip(port.columns, port.units, strict=True)) for name, port in ports.items()}
    InputError.raise_if_any(channel_problems(log, units, str(path)))
    values = {name: samples(log, name, tuple(columns)) for name, columns in units.items()}
    return log[TIME].to_numpy(), values

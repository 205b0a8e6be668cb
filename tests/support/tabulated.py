"""What every result must give a notebook, whatever it is of."""

from __future__ import annotations

from matplotlib import pyplot

from tauloop.common.datasets import Tabular


def assert_tabulated(result: Tabular, *names: str) -> None:
    """Numbers have units, a table has rows, and a picture has axes; these quantities are among them."""
    data = result.to_xarray()
    assert {*names} <= {*map(str, data.data_vars)}
    for name, values in data.variables.items():
        is_number = values.dtype.kind != "U"
        assert (
            not is_number or "units" in values.attrs or f"{values.dims[0]}_unit" in data.coords
        ), name
    assert len(result.to_pandas())
    open_before = pyplot.get_fignums()
    assert result.plot()
    for number in {*pyplot.get_fignums()} - {*open_before}:
        pyplot.close(number)

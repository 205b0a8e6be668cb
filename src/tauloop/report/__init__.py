"""Figures and tables of results."""

from tauloop.report.figures import save_figure
from tauloop.report.identification_figure import identification_figure
from tauloop.report.identification_table import fit_table, identification_table

__all__ = ["fit_table", "identification_figure", "identification_table", "save_figure"]

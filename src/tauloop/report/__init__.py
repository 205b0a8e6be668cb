"""Figures and tables of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.report.figures import (
        FAINT,
        LARGE,
        MEASURED,
        NORMAL,
        PREDICTED,
        RESIDUAL,
        SMALL,
        TEXT,
        clean,
        save_figure,
    )
    from tauloop.report.identification_figures import identification_figure
    from tauloop.report.identification_tables import fit_table, identification_table
    from tauloop.report.parts import PARTS, ReportPart, parts_of
    from tauloop.report.reduction_table import reduction_tables
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(
                (
                    "FAINT",
                    "LARGE",
                    "MEASURED",
                    "NORMAL",
                    "PREDICTED",
                    "RESIDUAL",
                    "SMALL",
                    "TEXT",
                    "clean",
                    "save_figure",
                ),
                "figures",
            ),
            **dict.fromkeys(("PARTS", "ReportPart", "parts_of"), "parts"),
            "fit_table": "identification_tables",
            "identification_figure": "identification_figures",
            "identification_table": "identification_tables",
            "reduction_tables": "reduction_table",
        },
    )

__all__ = [
    "FAINT",
    "LARGE",
    "MEASURED",
    "NORMAL",
    "PARTS",
    "PREDICTED",
    "RESIDUAL",
    "SMALL",
    "TEXT",
    "ReportPart",
    "clean",
    "fit_table",
    "identification_figure",
    "identification_table",
    "parts_of",
    "reduction_tables",
    "save_figure",
]

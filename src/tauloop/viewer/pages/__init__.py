"""Reports: results as one HTML page that needs no network and no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.viewer.pages.document import write_page as write_page
    from tauloop.viewer.pages.showing import Demo as Demo, demo as demo
    from tauloop.viewer.pages.workflow import (
        ReportOptions as ReportOptions,
        WrittenReport as WrittenReport,
        write_report as write_report,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

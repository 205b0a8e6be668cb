"""Views of a machine in the browser: rotate it, move it by hand, and play motions.

Examples:
    >>> import tauloop as tl
    >>> view = tl.view(tl.load("four_bar"))
    >>> tl.display.save_figure(view.picture(), "four_bar.png").name
    'four_bar.png'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.viewer import pages as pages
    from tauloop.viewer.film import save_animation as save_animation
    from tauloop.viewer.layers import Layers as Layers
    from tauloop.viewer.mode_animation import save_modes as save_modes
    from tauloop.viewer.playback import Playback as Playback, read_playback as read_playback
    from tauloop.viewer.streams.workflow import (
        StreamedMotion as StreamedMotion,
        StreamOptions as StreamOptions,
        run_stream as run_stream,
    )
    from tauloop.viewer.viewer import Viewer as Viewer
    from tauloop.viewer.workflow import View as View, ViewOptions as ViewOptions, view as view
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""A machine in the browser: turned, moved by hand, and played back."""

from tauloop.viewer.playback import Playback, read_playback
from tauloop.viewer.viewer import Viewer
from tauloop.viewer.workflow import View, ViewOptions, view

__all__ = ["Playback", "View", "ViewOptions", "Viewer", "read_playback", "view"]
__dir__ = __all__.copy

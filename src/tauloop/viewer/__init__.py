"""A machine in the browser: turned, moved by hand, and played back."""

from tauloop.viewer.playback import Playback, read_playback
from tauloop.viewer.viewer import Viewer

__all__ = ["Playback", "Viewer", "read_playback"]
__dir__ = __all__.copy

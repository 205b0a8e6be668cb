"""A motion as an HTML page that plays without network and Python (a recording of viser)."""

from __future__ import annotations

import html

import numpy as np

from tauloop.common.progress import Progress, Stages
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.model import Model
from tauloop.viewer.guard import Guard, silent, start_guarded, viser_module
from tauloop.viewer.scene.machine_scene import MachineScene

#: Typical size of the picture, pixels.
PICTURE_SIZE = (620.0, 400.0)
#: Heading of a page over the picture, which lets mouse events pass to the picture. Viser's note on
#: computers without a graphics card is hidden, because it would cover the heading and the machine.
HEADING = (
    "<style>#webgl-software-rendering {{ display: none }}</style>"
    '<div style="position:fixed;left:1em;top:0.6em;font:13px system-ui,sans-serif;color:#30363d;'
    'pointer-events:none;z-index:9"><h1 style="margin:0;font:600 15px system-ui,sans-serif">{}</h1>'
    "A recording: drag to rotate it.</div>"
)


def page(
    model: Model,
    geometry: MachineGeometry,
    times: np.ndarray,
    heading: str,
    progress: Progress | None = None,
) -> str:
    """Return the text of a page that plays a motion.

    Args:
        model: the machine.
        geometry: the machine at N states.
        times: times of the states (N,), s, from 0.
        heading: heading of the page, as text.
        progress: function (completed states, all states).

    Raises:
        EngineError: viser or trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    viser, guard = viser_module(), Guard(host="127.0.0.1")
    with silent():
        server = start_guarded(
            guard, lambda: viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        )
        try:
            scene = MachineScene(server, model, geometry)
            scene.draw_path(geometry.tool)
            scene.frame_below_heading(server, PICTURE_SIZE)
            recording = server.get_scene_serializer()
            stages = Stages(progress, len(times))
            for state, duration in stages.over(enumerate(np.diff(times, append=times[-1]))):
                scene.show(geometry, state)
                scene.arrange_labels(state)
                recording.insert_sleep(float(duration))
            text = str(recording.as_html())
        finally:
            server.stop()
    escaped = html.escape(heading)
    text = text.replace("<title>Viser</title>", f"<title>{escaped}</title>", 1)
    before, body, after = text.rpartition("</body>")
    return before + HEADING.format(escaped) + body + after

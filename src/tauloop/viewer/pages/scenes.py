"""Page for an iframe that animates the motion stored in a record.

The page posts the time of the animation to the enclosing page.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.display.pieces import MotionScene
from tauloop.formats import loads
from tauloop.model import Model
from tauloop.viewer.film import film_page, still

#: Script that reports the elapsed fraction of the animation, from viser's slider, to the
#: enclosing page.
REPORT_SCRIPT = """<script>
(() => {
  let last = -1;
  const report = () => {
    const slider = document.querySelector("[role=slider]");
    if (slider) {
      const share = Number(slider.ariaValueNow) / Number(slider.ariaValueMax);
      if (share !== last && share >= 0) parent.postMessage({share: last = share}, "*");
    }
    requestAnimationFrame(report);
  };
  report();
})();
</script>"""


def scene_page(scene: MotionScene) -> tuple[str, bytes]:
    """Return the text of the page in the frame, and a PNG of the first state, for printing.

    Raises:
        TauloopError: the machine's description is damaged, or the states do not match it.
        EngineError: viser or trimesh is not installed.
    """
    model = Model(loads(scene.machine))
    q, time = np.array(scene.q, dtype=float), np.array(scene.time, dtype=float)
    if q.ndim != 2 or q.shape[1] != model.topology.n_q:
        raise TauloopError.of(
            "q",
            f"has states of shape {q.shape[1:]}",
            f"give {model.topology.n_q} coordinates per state",
        )
    text = film_page(model, q, time)
    before, end, after = text.rpartition("</body>")
    return before + REPORT_SCRIPT + end + after, still(model, q[0])

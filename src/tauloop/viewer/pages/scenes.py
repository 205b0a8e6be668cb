"""A machine of a record in motion: a page in a frame of the page, which says what time it shows."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.display.pieces import MotionScene
from tauloop.formats import loads
from tauloop.model import Model
from tauloop.viewer.film import film_page, still

#: What the frame tells the page around it: the share of the film that is over, wherever viser's
#: slider stands.
FOLLOWED = """<script>
(() => {
  let last = -1;
  const tell = () => {
    const slider = document.querySelector("[role=slider]");
    if (slider) {
      const share = Number(slider.ariaValueNow) / Number(slider.ariaValueMax);
      if (share !== last && share >= 0) parent.postMessage({share: last = share}, "*");
    }
    requestAnimationFrame(tell);
  };
  tell();
})();
</script>"""


def scene_page(scene: MotionScene) -> tuple[str, bytes]:
    """Return the text of the page in the frame, and a picture (PNG) of the first state for print.

    Raises:
        TauloopError: the machine's description is damaged, or its states are none of it.
        EngineError: viser or trimesh is not installed.
    """
    model = Model(loads(scene.machine))
    q, time = np.array(scene.q, dtype=float), np.array(scene.time, dtype=float)
    if q.ndim != 2 or q.shape[1] != model.topology.n_q:
        raise TauloopError.of(
            "q", f"has states of shape {q.shape[1:]}", f"give {model.topology.n_q} coordinates each"
        )
    text = film_page(model, q, time)
    before, end, after = text.rpartition("</body>")
    return before + FOLLOWED + end + after, still(model, q[0])

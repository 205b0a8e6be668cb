"""From a machine's file to a first call of compiled inverse dynamics: `python -m rows.first_call MACHINE [cold]`.

The modules that create functions are imported only when one is created. `cold` imports them before,
so that neither time includes it.
"""

from __future__ import annotations

import json
import sys
import time

if __name__ == "__main__":
    begin = time.perf_counter()
    from tauloop import load_function

    if sys.argv[2:] == ["cold"]:
        pass

    imported = time.perf_counter()
    kernel = load_function(sys.argv[1], "inverse_dynamics", ("force",))
    _, call = kernel.bind()
    call()
    ready = time.perf_counter()
    print(json.dumps({"imports": imported - begin, "ready": ready - imported}))

"""Programs as C code: printing, compiling, caching and calling.

Examples:
    >>> import tauloop as tl
    >>> tl.Model(tl.load("delta"), evaluator=tl.compiler.c.Interpreted()).mechanism.name
    'delta'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.compiler.c.calling.cache import (
        CacheOptions as CacheOptions,
        CompiledCache as CompiledCache,
        compiled_cache as compiled_cache,
    )
    from tauloop.compiler.c.calling.evaluator import (
        Compiled as Compiled,
        Evaluator as Evaluator,
        Interpreted as Interpreted,
    )
    from tauloop.compiler.c.printing.precision import (
        Precision as Precision,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""Programs as C: printed, compiled, kept in a cache, called.

Examples:
    >>> import tauloop as tl
    >>> tl.Model(tl.load("delta"), evaluator=tl.codegen.Interpreted()).mechanism.name
    'delta'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.codegen.cache import (
        CacheOptions as CacheOptions,
        CompiledCache as CompiledCache,
        compiled_cache as compiled_cache,
    )
    from tauloop.codegen.evaluator import (
        Compiled as Compiled,
        Evaluator as Evaluator,
        Interpreted as Interpreted,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""Programs as C: printed, compiled, kept in a cache, called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.codegen.cache import CacheOptions, CompiledCache, compiled_cache
    from tauloop.codegen.evaluator import Compiled, Evaluator, Interpreted
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(("CacheOptions", "CompiledCache", "compiled_cache"), "cache"),
            **dict.fromkeys(("Compiled", "Evaluator", "Interpreted"), "evaluator"),
        },
    )

__all__ = ["CacheOptions", "Compiled", "CompiledCache", "Evaluator", "Interpreted", "compiled_cache"]

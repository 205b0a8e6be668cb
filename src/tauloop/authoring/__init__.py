"""New machine files: from templates, other machines, or files of other tools.

Examples:
    >>> import tauloop as tl
    >>> "delta" in tl.authoring.TEMPLATES
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.authoring.conversion import (
        Conversion as Conversion,
        ConvertOptions as ConvertOptions,
        convert as convert,
    )
    from tauloop.authoring.creation import (
        NewMachine as NewMachine,
        NewMachineOptions as NewMachineOptions,
        dimensions as dimensions,
        new_machine as new_machine,
    )
    from tauloop.authoring.templates import (
        TEMPLATES as TEMPLATES,
        title as title,
    )
    from tauloop.authoring.text import (
        NamedValue as NamedValue,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)

"""A machine written in another format."""

from tauloop.conversion.workflow import Conversion as Conversion, ConvertOptions as ConvertOptions, convert as convert
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)

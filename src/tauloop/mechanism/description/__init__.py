"""Machine files: grammar, expressions, units, and the reader from text to a `Mechanism`."""

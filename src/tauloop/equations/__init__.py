"""The machine as expressions: pure functions of (mechanism, q, v, ..., parameters), on symbols and numbers alike."""

"""The terminal: streams, signals, bars of progress, completion."""

"""C text compiled, cached, loaded and called."""

"""Commands on studies of many samples."""

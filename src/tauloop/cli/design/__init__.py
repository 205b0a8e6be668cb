"""Commands that choose the parts and boxes of a design."""

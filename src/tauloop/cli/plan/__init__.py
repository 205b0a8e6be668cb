"""Commands that plan motions, excitations and poses."""

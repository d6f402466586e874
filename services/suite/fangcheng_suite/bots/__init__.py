"""Bots: players that use the public API alone."""

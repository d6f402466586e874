"""Version 1 of what is on disk: see `event.proto`."""

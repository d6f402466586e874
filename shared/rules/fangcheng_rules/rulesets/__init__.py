"""The rule sets: one file each, and the tuple that makes them known."""

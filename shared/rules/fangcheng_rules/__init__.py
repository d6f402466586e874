"""The game itself: tiles, hands, rule sets and one hand of play, without I/O."""

"""How much of everything so many players need: `fangcheng capacity`."""

"""The command `fangcheng`: local launcher, demo, bots and tools."""

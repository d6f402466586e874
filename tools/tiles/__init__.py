"""The pictures of the tiles and the font of the console: see ``__main__``."""

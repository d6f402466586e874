"""`fangcheng play`: a person at a table, in the terminal."""

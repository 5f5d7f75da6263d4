"""Commands for a robot of your own: its file, its identification."""

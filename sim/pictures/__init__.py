"""Pictures and films of flights, drawn by MuJoCo's renderer without a display."""

"""Pictures and videos of episodes, drawn by MuJoCo's renderer without a display."""

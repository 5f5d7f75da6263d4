"""A car races on one's own tracks: a centre line in a CSV file, and a corridor in a map of ROS's map_server."""

from pathlib import Path

from robo_rl.sim.scenes.tracks.courses import read_course
from robo_rl.sim.tasks.car.race import CarRace

TRACKS = ("loop.csv", "corridor.yaml")


class OwnTracks(CarRace):
    """A lap of the loop or of the corridor."""

    name = "own-tracks"
    summary = "drive a lap of one's own tracks as fast as it goes, by lidar"
    files = ("loop.csv", "corridor.yaml", "corridor.png")  # kept with a run, and brought by its exported file
    courses = tuple(read_course(Path(__file__).with_name(name)) for name in TRACKS)

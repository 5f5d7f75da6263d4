"""PX4 autopilots over MAVLink, by pymavlink."""

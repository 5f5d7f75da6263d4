"""What arms of bus servos have in common, whoever made them: LeRobot's calibration, steps and angles, the cycle."""

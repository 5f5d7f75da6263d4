"""Feetech's serial bus servos (STS and SMS series, as the STS3215): packets, registers, the bus, LeRobot's files."""

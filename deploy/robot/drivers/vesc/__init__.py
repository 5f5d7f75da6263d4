"""VESC motor controllers, which also steer a car by a servo: packets, messages, and a car as a driver."""

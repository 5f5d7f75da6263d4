"""Universal Robots' Real-Time Data Exchange (RTDE), protocol 2, on TCP port 30004."""

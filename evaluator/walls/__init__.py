"""What is taken away from a process before it meets anything that a candidate wrote."""

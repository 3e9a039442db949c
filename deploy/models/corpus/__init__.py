"""Generated training texts: one task a file, every draw from a seeded `random.Random`."""

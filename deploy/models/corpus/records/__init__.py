"""What JSON is extracted from: one kind of record a file."""

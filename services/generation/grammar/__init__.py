"""Languages that an answer is kept to: from a schema, a pattern or choices to allowed tokens."""

"""The services of Braid; see DESIGN notes in README and DECISIONS."""

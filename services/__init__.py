"""The services of Braid, one package each."""

__version__ = "0.1.0"

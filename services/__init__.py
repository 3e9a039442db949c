"""The services of Braid, one package each."""

import os

__version__ = "0.1.0"

# gRPC's C core writes to standard error in a form of its own, and reads this as
# it is loaded; what matters of it reaches us as errors.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

"""The demo pair: a small autoregressive model and its diffusion twin, from corpus to checkpoint."""

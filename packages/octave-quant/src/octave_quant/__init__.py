"""The octave 3-4 bit KV-cache format: rotation, codebooks, packing."""

"""Planning of epochs: positions of inputs, the watermark, and the size of an epoch."""

"""Trains several encoders at once on a GPU: weights are stacked, and one matrix product serves them all.

A step of the paper's recipe is eight pairs through a small encoder: hundreds of kernels, each of which ends
before the GPU is busy. As many steps of other runs beside it (other meta-paths, other seeds) make the kernels
larger, not more. Each run keeps its own weights, batches, dropout, optimiser and best checkpoint; what one
would have learned alone it learns here (tests/test_stacked.py).

On a GPU, what is bound by memory runs in kernels of our own (`kernels`, put to use in `fused`); on a CPU all
is plain torch, which they are compared with (`check`).

Only what the paper's recipe needs is here: BERT, [CLS], Adam without weight decay, a linear schedule without
warm-up, and the checkpoint with the lowest validation loss.
"""

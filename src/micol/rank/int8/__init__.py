"""BERT-family encoders in 8-bit arithmetic, on CPUs that multiply bytes four times as quickly as floats.

Every output of a linear layer has its own scale for the weights, found once. Every token has its own scale
and offset for the inputs, found as it passes: so a vector does not depend on what else is in its batch, and
an unusual token does not coarsen the others. Attention, normalisation and activation stay in float32.
"""

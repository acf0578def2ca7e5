"""What benchmarks/development_sets.py is made of: a module for each source, and what they share."""

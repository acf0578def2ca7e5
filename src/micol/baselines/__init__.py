"""The systems of the paper's comparison: each a small file that ranks the candidate labels of documents."""

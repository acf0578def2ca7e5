"""Evidence for labels from several sources, fused with weights that are learned without labels."""

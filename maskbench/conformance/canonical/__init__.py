"""Gates for forced tokens and canonical masks."""

"""A demonstration: what forcing tokens that the text would not have does to a small model."""

"""What a text in progress costs beside its masks: accept, rollback, fork, validate, forced."""

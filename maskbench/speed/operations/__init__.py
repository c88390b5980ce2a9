"""The cost of a matcher's operations besides masks: accept, rollback, fork, validate, forced."""

"""How engines are run: processes with limits, groups of them, what is kept of an unfinished run."""

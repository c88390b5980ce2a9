"""The figures that the README and docs/ show: recorded summaries, and pages filled from them."""

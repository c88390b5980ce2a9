"""A page to try a grammar: `ffwd play`, and `ffwd.view.explore` in notebooks."""

"""Jinja2 as chat templates need it. The only package of ffwd that imports jinja2."""

"""What engines let through, judged by others; its drawers and walkers also serve the tests."""

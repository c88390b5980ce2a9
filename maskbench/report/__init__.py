"""Reports of a run: tables for terminals, documents and programs, and an HTML page."""

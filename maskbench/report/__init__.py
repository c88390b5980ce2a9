"""What a run found, for readers: tables for terminals, documents and programs, and an HTML page."""

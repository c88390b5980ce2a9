"""What serving stacks measure of a tokenizer: `python -m maskbench serving`."""

"""Makes `maskbench`, which is not installed, importable, and passes it on to worker processes."""

import sys
from pathlib import Path

# At the end: an installed ffwd is to be found before the one in the working tree.
sys.path.append(str(Path(__file__).resolve().parents[2]))

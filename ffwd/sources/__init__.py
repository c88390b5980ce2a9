"""Grammars as people write them: a text and its notation, and the positions of what is wrong.

The command line and `ffwd play` share it.
"""

from ffwd.sources.packages import missing_package as missing_package
from ffwd.sources.places import caret as caret
from ffwd.sources.places import line_and_column as line_and_column
from ffwd.sources.places import locate as locate
from ffwd.sources.places import locate_all as locate_all
from ffwd.sources.places import syntax_error as syntax_error
from ffwd.sources.problems import keywords as keywords
from ffwd.sources.problems import unused as unused
from ffwd.sources.text import LANGUAGES as LANGUAGES
from ffwd.sources.text import SUFFIXES as SUFFIXES
from ffwd.sources.text import SourceText as SourceText
from ffwd.sources.text import read_source as read_source
from ffwd.sources.tokens import BYTES as BYTES
from ffwd.sources.tokens import NamedTokens as NamedTokens

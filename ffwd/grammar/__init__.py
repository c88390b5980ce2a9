"""What the text may be: a JSON Schema, a regular expression, or one of several texts."""

from ffwd.grammar._fidelity import Fidelity as Fidelity
from ffwd.grammar._fidelity import KeywordFidelity as KeywordFidelity
from ffwd.grammar._fidelity import fidelity_report as fidelity_report
from ffwd.grammar._kinds import Choice as Choice
from ffwd.grammar._kinds import Grammar as Grammar
from ffwd.grammar._kinds import JsonSchema as JsonSchema
from ffwd.grammar._kinds import Policy as Policy
from ffwd.grammar._kinds import Regex as Regex
from ffwd.grammar._kinds import Whitespace as Whitespace
from ffwd.grammar._kinds import choice as choice
from ffwd.grammar._kinds import json_schema as json_schema
from ffwd.grammar._kinds import regex as regex

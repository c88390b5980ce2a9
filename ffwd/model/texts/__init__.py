"""The texts that the model was trained on, generated: conversations about records.

Nothing here is read from a file or fetched: a seed decides everything.
"""

from ffwd.model.texts.conversations import SIMPLE_KINDS as SIMPLE_KINDS
from ffwd.model.texts.conversations import TASKS as TASKS
from ffwd.model.texts.conversations import Example as Example
from ffwd.model.texts.conversations import conversation as conversation
from ffwd.model.texts.conversations import extraction as extraction
from ffwd.model.texts.conversations import simple_extraction as simple_extraction
from ffwd.model.texts.records import KINDS as KINDS
from ffwd.model.texts.records import Fact as Fact
from ffwd.model.texts.records import Record as Record
from ffwd.model.texts.words import Words as Words

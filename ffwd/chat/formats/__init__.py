"""Chat formats as data: the texts before, between and after the messages."""

from ffwd.chat.formats.format import ChatFormat as ChatFormat
from ffwd.chat.formats.format import SystemPlacement as SystemPlacement

"""Chat formats as data: what stands before, between and behind the messages."""

from ffwd.chat.formats.format import ChatFormat as ChatFormat
from ffwd.chat.formats.format import SystemPlacement as SystemPlacement

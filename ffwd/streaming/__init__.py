"""Streaming: text from token ids, token by token.

`DecodeStream` returns text as soon as it is certain, `StopSequenceDecoder` also stops at tokens and
strings, and `Sequence` keeps tokens and text with their offsets. Each takes a `Decoder` or a
tokenizer, and belongs to one request.
"""

from ffwd._native import Decoder as Decoder
from ffwd._native import DecodeStream as DecodeStream
from ffwd._native import Held as Held
from ffwd._native import Stopped as Stopped
from ffwd._native import StoppedWithText as StoppedWithText
from ffwd._native import StopSequenceDecoder as StopSequenceDecoder
from ffwd._native import StopSequenceError as StopSequenceError
from ffwd._native import StreamInUseError as StreamInUseError
from ffwd._native import Text as Text
from ffwd.streaming.sequence import Sequence as Sequence

"""Hugging Face transformers: masks in every decoding mode, fast-forward in a loop of its own.

`GrammarLogitsProcessor` constrains any `generate()` call. `fast_forward_generate` also skips the
forward passes whose outcome the grammar has already decided; it is given to
`generate(custom_generate=...)`. `Structured` makes the arguments for either from a schema, an
expression, a choice or a grammar; pipelines take them, too. `constrained_generate_batch` and
`constrain_manager` are for continuous batching. `ChatModel` is all of it in one call, from messages
to a value; `ffwd.generate` and `ffwd.stream` make one.
"""

# Before the others, which need torch and transformers.
from ffwd.adapters.transformers import needs as needs
from ffwd.adapters.transformers.chat_model import ChatModel as ChatModel
from ffwd.adapters.transformers.continuous import constrain_manager as constrain_manager
from ffwd.adapters.transformers.continuous import (
    constrained_generate_batch as constrained_generate_batch,
)
from ffwd.adapters.transformers.errors import ContinuousBatchingError as ContinuousBatchingError
from ffwd.adapters.transformers.errors import ModelError as ModelError
from ffwd.adapters.transformers.errors import NoTokenLeftError as NoTokenLeftError
from ffwd.adapters.transformers.errors import RefusedTokenError as RefusedTokenError
from ffwd.adapters.transformers.errors import (
    UnsupportedGenerationError as UnsupportedGenerationError,
)
from ffwd.adapters.transformers.fast_forward import FastForward as FastForward
from ffwd.adapters.transformers.generate import fast_forward_generate as fast_forward_generate
from ffwd.adapters.transformers.generation import FinishReason as FinishReason
from ffwd.adapters.transformers.generation import Generation as Generation
from ffwd.adapters.transformers.load import LocalModel as LocalModel
from ffwd.adapters.transformers.load import load_local as load_local
from ffwd.adapters.transformers.particles import Particle as Particle
from ffwd.adapters.transformers.particles import Sampling as Sampling
from ffwd.adapters.transformers.processor import GrammarLogitsProcessor as GrammarLogitsProcessor
from ffwd.adapters.transformers.report import GenerationReport as GenerationReport
from ffwd.adapters.transformers.report import GenerationStats as GenerationStats
from ffwd.adapters.transformers.report import TokenTrace as TokenTrace
from ffwd.adapters.transformers.stream import Chunk as Chunk
from ffwd.adapters.transformers.stream import Stream as Stream
from ffwd.adapters.transformers.structured import Structured as Structured

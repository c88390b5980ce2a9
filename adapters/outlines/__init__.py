"""outlines: a logits processor for `outlines.Generator(model, processor=...)`.

    model = outlines.from_transformers(model, tokenizer)
    processor = GrammarLogitsProcessor(model, JsonSchema(schema))
    generator = outlines.Generator(model, processor=processor)
    text = generator("Where does the parcel go?", max_new_tokens=60)

It takes the output types of outlines and all grammars of ffwd, for models of transformers,
llama-cpp-python and mlx-lm.
"""

from ffwd.adapters.outlines.output_types import (
    UnsupportedOutputTypeError as UnsupportedOutputTypeError,
)
from ffwd.adapters.outlines.output_types import grammar_of as grammar_of
from ffwd.adapters.outlines.processor import GrammarLogitsProcessor as GrammarLogitsProcessor
from ffwd.adapters.outlines.processor import UnsupportedModelError as UnsupportedModelError
from ffwd.adapters.outlines.processor import vocabulary_of as vocabulary_of
from ffwd.adapters.shared.sequence import NoTokenLeftError as NoTokenLeftError
from ffwd.adapters.shared.sequence import RefusedTokenError as RefusedTokenError

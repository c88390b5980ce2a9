"""mlx-lm: masks by a logits processor, forced tokens by a draft model that computes nothing.

model, tokenizer = mlx_lm.load("path/of/a/model")
grammar = ffwd.compile(ffwd.json_schema(schema), vocabulary_of(model, tokenizer))
processor = GrammarLogitsProcessor(grammar)
mlx_lm.generate(model, tokenizer, prompt, logits_processors=[processor])
"""

from ffwd.adapters.mlx_lm.drafts import ForcedDrafts as ForcedDrafts
from ffwd.adapters.mlx_lm.processor import GrammarLogitsProcessor as GrammarLogitsProcessor
from ffwd.adapters.mlx_lm.processor import vocabulary_of as vocabulary_of
from ffwd.adapters.shared.sequence import NoTokenLeftError as NoTokenLeftError
from ffwd.adapters.shared.sequence import RefusedTokenError as RefusedTokenError
from ffwd.adapters.shared.sequence import SharedProcessorError as SharedProcessorError

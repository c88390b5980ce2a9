"""ExLlamaV3: a filter for the jobs of its generator.

grammar = ffwd.compile(ffwd.json_schema(schema), vocabulary_of(tokenizer))
job = Job(input_ids, filters=[GrammarFilter(tokenizer, grammar, eos_after_completed=True)])
"""

from ffwd.adapters.exllamav3.filter import GrammarFilter as GrammarFilter
from ffwd.adapters.exllamav3.filter import vocabulary_of as vocabulary_of
from ffwd.adapters.shared.sequence import RefusedTokenError as RefusedTokenError

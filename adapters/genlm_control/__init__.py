"""genlm-control: a grammar as a `Potential`, of weight 1 for its texts and 0 for all others.

llm = PromptedLLM.from_name("path/of/a/model", backend="hf")
grammar = ffwd.compile(ffwd.json_schema(schema), vocabulary_of(llm))
sampler = direct_token_sampler(llm * GrammarPotential(grammar, llm))
"""

from ffwd.adapters.genlm_control.potential import GrammarPotential as GrammarPotential
from ffwd.adapters.genlm_control.potential import UnsupportedTokensError as UnsupportedTokensError
from ffwd.adapters.genlm_control.potential import vocabulary_of as vocabulary_of

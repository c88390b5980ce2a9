"""ONNX Runtime GenAI: a generator that masks logits and appends the tokens that a grammar forces.

model = og.Model("path/of/a/model")
grammar = ffwd.compile(ffwd.json_schema(schema), vocabulary_of("path/of/a/model"))
generator = GrammarGenerator(model, og.GeneratorParams(model), grammar)
generator.append_tokens(og.Tokenizer(model).encode(prompt))
while not generator.is_done():
generator.generate_next_token()
"""

from ffwd.adapters.onnxruntime_genai.generator import GrammarGenerator as GrammarGenerator
from ffwd.adapters.onnxruntime_genai.generator import (
    UnsupportedGenerationError as UnsupportedGenerationError,
)
from ffwd.adapters.onnxruntime_genai.vocabulary import vocabulary_of as vocabulary_of
from ffwd.adapters.shared.sequence import NoTokenLeftError as NoTokenLeftError
from ffwd.adapters.shared.sequence import RefusedTokenError as RefusedTokenError

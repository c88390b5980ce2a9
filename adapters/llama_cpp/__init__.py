"""llama-cpp-python: masks by a logits processor, forced tokens by a draft model.

    llama = Llama("model.gguf", logits_all=True)
    pair = GrammarPair()
    pair.attach(llama)
    grammar = ffwd.compile(ffwd.json_schema(schema), vocabulary_of(llama))
    with pair.constrain(grammar) as processors:
        llama.create_chat_completion(messages, logits_processor=processors)

The draft model proposes the tokens that the grammar forces, so that llama.cpp evaluates them in one
batch. It pays for texts with many forced tokens; the logits processor works without it.
"""

from ffwd.adapters.llama_cpp.pair import GrammarPair as GrammarPair
from ffwd.adapters.llama_cpp.pair import GrammarProcessors as GrammarProcessors
from ffwd.adapters.llama_cpp.pair import PairStats as PairStats
from ffwd.adapters.llama_cpp.pair import Processor as Processor
from ffwd.adapters.llama_cpp.pair import UnsupportedLlamaError as UnsupportedLlamaError
from ffwd.adapters.llama_cpp.vocabulary import tokenizer_of as tokenizer_of
from ffwd.adapters.llama_cpp.vocabulary import vocabulary_of as vocabulary_of
from ffwd.adapters.shared.sequence import NoTokenLeftError as NoTokenLeftError
from ffwd.adapters.shared.sequence import RefusedTokenError as RefusedTokenError

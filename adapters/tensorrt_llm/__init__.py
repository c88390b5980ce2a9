"""TensorRT-LLM: guided decoding of its PyTorch backend, instead of XGrammar's or llguidance's.

ffwd.adapters.tensorrt_llm.register()
llm = LLM("path/of/a/model", guided_decoding_backend="xgrammar")
"""

from ffwd.adapters.tensorrt_llm.matcher import GuidedMatcher as GuidedMatcher
from ffwd.adapters.tensorrt_llm.matcher import GuidedMatcherFactory as GuidedMatcherFactory
from ffwd.adapters.tensorrt_llm.matcher import register as register

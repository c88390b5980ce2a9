"""LMDeploy: guided decoding of its PyTorch engine, instead of XGrammar's.

ffwd.adapters.lmdeploy.register()
pipe = lmdeploy.pipeline("path/of/a/model", backend_config=PytorchEngineConfig())
"""

from ffwd.adapters.lmdeploy.manager import GrammarDecodingManager as GrammarDecodingManager
from ffwd.adapters.lmdeploy.manager import GrammarProcessor as GrammarProcessor
from ffwd.adapters.lmdeploy.manager import check_response_format as check_response_format
from ffwd.adapters.lmdeploy.manager import register as register

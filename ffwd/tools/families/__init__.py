"""How families of models write calls, one file for each."""

from ffwd.tools.families.deepseek import DEEPSEEK_V3 as DEEPSEEK_V3
from ffwd.tools.families.deepseek import DEEPSEEK_V31 as DEEPSEEK_V31
from ffwd.tools.families.deepseek import DEEPSEEK_V32 as DEEPSEEK_V32
from ffwd.tools.families.glm import GLM45 as GLM45
from ffwd.tools.families.glm import GLM47 as GLM47
from ffwd.tools.families.harmony import HARMONY as HARMONY
from ffwd.tools.families.kimi import KIMI_K2 as KIMI_K2
from ffwd.tools.families.llama import LLAMA3_JSON as LLAMA3_JSON
from ffwd.tools.families.llama import LLAMA3_PYTHONIC as LLAMA3_PYTHONIC
from ffwd.tools.families.llama import LLAMA4_PYTHONIC as LLAMA4_PYTHONIC
from ffwd.tools.families.minimax import MINIMAX_M2 as MINIMAX_M2
from ffwd.tools.families.mistral import MISTRAL_V2 as MISTRAL_V2
from ffwd.tools.families.mistral import MISTRAL_V3 as MISTRAL_V3
from ffwd.tools.families.mistral import MISTRAL_V11 as MISTRAL_V11
from ffwd.tools.families.qwen import HERMES as HERMES
from ffwd.tools.families.qwen import QWEN3_CODER as QWEN3_CODER
from ffwd.tools.format import ToolFormat

FORMATS: dict[str, ToolFormat] = {
    each.name: each
    for each in (
        LLAMA3_JSON,
        LLAMA3_PYTHONIC,
        LLAMA4_PYTHONIC,
        HERMES,
        QWEN3_CODER,
        MISTRAL_V2,
        MISTRAL_V3,
        MISTRAL_V11,
        DEEPSEEK_V3,
        DEEPSEEK_V31,
        DEEPSEEK_V32,
        KIMI_K2,
        HARMONY,
        GLM45,
        GLM47,
        MINIMAX_M2,
    )
}
"""All formats by name."""

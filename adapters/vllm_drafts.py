"""The name that `--speculative-config` of vLLM takes: `ffwd.adapters.vllm_drafts.ForcedDrafts`."""

from ffwd.adapters.vllm.drafts import ForcedDrafts as ForcedDrafts
from ffwd.adapters.vllm.drafts import ForcedDraftsError as ForcedDraftsError
from ffwd.adapters.vllm.drafts import ForcingGrammar as ForcingGrammar
from ffwd.adapters.vllm.drafts import install as install

"""Texts and chats as token ids, and back, for clients that count them."""

from collections.abc import Sequence
from typing import Any

from ffwd.adapters.server.errors import BAD_INPUT, bad, of_ffwd
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.preparing import Preparer
from ffwd.adapters.server.protocol import DetokenizeRequest, TokenizeRequest


def tokenize(loaded: LoadedModel, preparer: Preparer, request: TokenizeRequest) -> dict[str, Any]:
    """Return the answer of `/tokenize`, as vLLM has it.

    Raises:
        ApiError: What is wrong with the text or the messages.

    """
    if request.messages is None:
        ids = preparer.text_ids(request.prompt or "", special=request.add_special_tokens)
    else:
        ids = preparer.chat_ids(request)
    return {
        "count": len(ids),
        "max_model_len": loaded.max_model_len,
        "tokens": ids,
        "token_strs": _texts(loaded, ids) if request.return_token_strs else None,
    }


def detokenize(loaded: LoadedModel, request: DetokenizeRequest) -> dict[str, Any]:
    """Return the answer of `/detokenize`: the text of all tokens, special ones included.

    Raises:
        ApiError: An id is not one of the tokenizer's.

    """
    size = loaded.tokenizer.vocab_size
    for place, token in enumerate(request.tokens):
        if not 0 <= token < size:
            raise bad(
                f"token {token} is not one of the {size} of the tokenizer",
                param=f"tokens[{place}]",
            )
    try:
        return {"prompt": loaded.tokenizer.decode(request.tokens, skip_special_tokens=False)}
    except BAD_INPUT as error:
        raise of_ffwd(error, "tokens") from error


def _texts(loaded: LoadedModel, ids: Sequence[int]) -> list[str]:
    """Return the text of each token; bytes that are no whole character are U+FFFD."""
    token_bytes = loaded.tokenizer.token_bytes
    return [(token_bytes(token) or b"").decode(errors="replace") for token in ids]

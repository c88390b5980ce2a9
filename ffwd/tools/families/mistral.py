"""Mistral, by the versions of its tokenizers."""

from ffwd.tools.format import ARGUMENTS, NAME, OneOf, Pattern, ToolFormat

_ID = Pattern("[a-zA-Z0-9]{9}")
_NAMES = r"[A-Za-z0-9_-]{1,64}"
_SOURCE = "mistral-common, InstructTokenizer"

MISTRAL_V2 = ToolFormat(
    name="mistral-v2",
    source=f"{_SOURCE}V2",
    call=('{"name": "', NAME, '", "arguments": ', ARGUMENTS, "}"),
    # A SentencePiece tokenizer puts a space before a text.
    begin=("[TOOL_CALLS]", OneOf((("[",), (" [",)))),
    separator=(", ",),
    end=("]",),
    excluding=("[TOOL_CALLS]",),
    names=_NAMES,
    spelled_in_json=True,
)
"""Mistral 7B v0.2, Mixtral: calls have no ids."""

MISTRAL_V3 = ToolFormat(
    name="mistral-v3",
    source=f"{_SOURCE}V3 and V7; the chat template of Mistral Nemo",
    call=('{"name": "', NAME, '", "arguments": ', ARGUMENTS, ', "id": "', _ID, '"}'),
    begin=("[TOOL_CALLS]", OneOf((("[",), (" [",)))),
    separator=(", ",),
    end=("]",),
    excluding=("[TOOL_CALLS]",),
    names=_NAMES,
    spelled_in_json=True,
)
"""V3 (also with Tekken) and V7: Mistral 7B v0.3, Nemo, Large, Small 3."""

MISTRAL_V11 = ToolFormat(
    name="mistral-v11",
    source="mistral-common's grammar_factory, InstructTokenizerV11 and V13",
    call=("[TOOL_CALLS]", NAME, "[ARGS]", ARGUMENTS),
    excluding=("[TOOL_CALLS]",),
    names=_NAMES,
    # V11 writes the ids of earlier calls. Models write none, and vLLM would take one for a part of
    # the name.
    shown=("[TOOL_CALLS]", NAME, OneOf(((), ("[CALL_ID]", _ID))), "[ARGS]", ARGUMENTS),
)
"""V11 and later: Mistral Small 3.2, Magistral, Devstral 2507, Ministral 3."""

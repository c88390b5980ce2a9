"""The description of the interface in OpenAPI 3.1, for clients, gateways and fuzzers."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import ffwd
from ffwd.adapters.server.protocol import (
    IGNORED,
    REFUSED,
    AnyRequest,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    TokenizeRequest,
)
from ffwd.adapters.server.responses import reading

# The description may be wider than the server, whose errors say which fields exclude each other. It
# must not be narrower: a gateway that checks requests by it would refuse what the server takes.


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object; members that are not required may be null."""
    members = {
        name: form if name in required else _or_null(form) for name, form in properties.items()
    }
    return {"type": "object", "properties": members, "required": list(required)}


def _or_null(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [form, {"type": "null"}]}


_STRING = {"type": "string"}
_CONTENT = {
    "anyOf": [
        _STRING,
        {
            "type": "array",
            "items": {
                "anyOf": [
                    _STRING,
                    _object({"type": {"const": "text"}, "text": _STRING}, "type", "text"),
                    _object({"type": {"const": "refusal"}, "refusal": _STRING}, "type", "refusal"),
                ]
            },
        },
    ]
}
_ARGUMENTS = {"anyOf": [{**_STRING, "contentMediaType": "application/json"}, {"type": "object"}]}
_CALL = {
    "anyOf": [
        _object(
            {
                "id": _STRING,
                "type": _STRING,
                "function": _object({"name": _STRING, "arguments": _ARGUMENTS}, "name"),
            },
            "function",
        ),
        _object(
            {
                "id": _STRING,
                "type": {"const": "custom"},
                "custom": _object({"name": _STRING, "input": _STRING}, "name", "input"),
            },
            "type",
            "custom",
        ),
    ]
}
_ROLES = ["system", "developer", "user", "assistant", "tool", "function"]
_MESSAGE = _object(
    {
        # A chat template may know further ones.
        "role": {"anyOf": [{"enum": _ROLES}, _STRING]},
        "content": _CONTENT,
        "name": _STRING,
        "reasoning_content": _STRING,
        "tool_calls": {"type": "array", "items": _CALL},
        "tool_call_id": _STRING,
    },
    "role",
)
_SCHEMA = {"type": ["object", "boolean"], "description": "A JSON Schema"}
_STRICT = {"type": "boolean"}
_FUNCTION = {
    "name": _STRING,
    "description": _STRING,
    "parameters": _SCHEMA,
    "strict": _STRICT,
}
_CUSTOM_TOOL = _object({"type": {"const": "custom"}}, "type")
_FLAT_TOOL = _object({"type": {"const": "function"}, **_FUNCTION}, "type", "name")
_TOOL = {
    "anyOf": [
        _object(
            {"type": {"const": "function"}, "function": _object(_FUNCTION, "name")},
            "type",
            "function",
        ),
        _FLAT_TOOL,
        _CUSTOM_TOOL,
    ]
}
_NAMED_SCHEMA = {"name": _STRING, "schema": _SCHEMA, "strict": _STRICT}
_RESPONSE_FORMAT = _object(
    {
        "type": {**_STRING, "examples": ["text", "json_object", "json_schema"]},
        "json_schema": _object(_NAMED_SCHEMA, "schema"),
    },
    "type",
)
_ITEM = {
    "anyOf": [
        _object(
            {
                "type": {"const": "message"},
                "role": {"enum": ["user", "assistant", "system", "developer"]},
                "content": {"anyOf": [_STRING, {"type": "array", "items": {"type": "object"}}]},
            },
            "role",
            "content",
        ),
        _object(
            {
                "type": {"const": "function_call"},
                **dict.fromkeys(("call_id", "name", "arguments"), _STRING),
            },
            *("type", "call_id", "name", "arguments"),
        ),
        _object(
            {"type": {"const": "function_call_output"}, "call_id": _STRING, "output": _STRING},
            *("type", "call_id", "output"),
        ),
        # Reasoning, calls of custom tools, and their outputs.
        _object({"type": _STRING}, "type"),
    ]
}

# What the fields of requests hold that are checked where they are used.
_FIELDS: dict[str, Any] = {
    "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
    "tools": {"type": "array", "items": _TOOL},
    "response_format": _RESPONSE_FORMAT,
}
_OF_RESPONSES: dict[str, Any] = {
    "instructions": _STRING,
    "max_output_tokens": {"type": "integer", "minimum": 1},
    "text": {
        **_object({"format": _object({"type": _STRING, **_NAMED_SCHEMA}, "type"), "verbosity": {}}),
        "additionalProperties": False,
    },
    "reasoning": {
        **_object({"effort": _STRING, "summary": {}, "generate_summary": {}}),
        "additionalProperties": False,
    },
    "include": {
        "type": "array",
        "items": {"enum": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
    },
    "stream_options": {
        **_object({"include_obfuscation": {}, "include_usage": {}}),
        "additionalProperties": False,
    },
    "metadata": {"type": "object", "additionalProperties": _STRING},
    "tools": {"type": "array", "items": {"anyOf": [_FLAT_TOOL, _CUSTOM_TOOL]}},
}
_INPUT = {"anyOf": [_STRING, {"type": "array", "minItems": 1, "items": _ITEM}]}

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}


@lru_cache(maxsize=1)
def description() -> Mapping[str, Any]:
    """Return the description: paths, bodies of requests, and the form of errors."""
    shared: dict[str, Any] = {"Error": _ERROR}
    chat = _body(ChatRequest, shared)
    health = _get("Whether requests are answered")
    health["get"]["responses"]["503"] = {
        "description": "The server is shutting down",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "ffwd", "version": ffwd.__version__},
        "paths": {
            "/v1/chat/completions": _post("Answer a chat", chat, events=True),
            "/v1/completions": _post(
                "Continue texts", _body(CompletionRequest, shared), events=True
            ),
            "/v1/responses": _post("Answer items", _responses(chat), events=True),
            "/v1/models": _get("The model, as a list"),
            "/v1/models/{name}": _get(
                "The model",
                {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
            ),
            "/tokenize": _post("The token ids of a text or a chat", _body(TokenizeRequest, shared)),
            "/detokenize": _post("The text of token ids", _body(DetokenizeRequest, shared)),
            "/version": _get("The version"),
            "/health": health,
            "/metrics": _get("Metrics of Prometheus", media="text/plain"),
            "/openapi.json": _get("This description"),
        },
        "components": {
            "schemas": shared,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        # A server without keys asks for none.
        "security": [{}, {"key": []}],
    }


def _body(model: type[AnyRequest], shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a body; what it refers to is added to `shared`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    shared |= schema.pop("$defs", {})
    for name, form in _FIELDS.items():
        if name in schema["properties"]:
            required = name in schema.get("required", ())
            schema["properties"][name] = form if required else _or_null(form)
    if "stream" in schema["properties"]:
        schema["properties"] |= _without_effect(IGNORED, REFUSED)
        # vLLM's older fields, one for each constraint.
        schema["patternProperties"] = {"^guided_": {}}
    return schema


def _without_effect(
    ignored: Iterable[str], refused: Mapping[str, tuple[Any, str]]
) -> dict[str, Any]:
    """Return the fields that change no answer, and the refused ones with the value of none."""
    fields: dict[str, Any] = {name: {} for name in sorted(ignored)}
    return fields | {name: _or_null({"const": none}) for name, (none, _) in refused.items()}


def _responses(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the body of a response, whose fields are those of a chat, or its own."""
    known = reading.RESPONSE_FIELDS | IGNORED | REFUSED.keys()
    properties = {name: form for name, form in chat["properties"].items() if name in known}
    properties |= _without_effect(reading.IGNORED, reading.REFUSED)
    properties |= {name: _or_null(form) for name, form in _OF_RESPONSES.items()}
    return {
        **chat,
        "title": "ResponsesRequest",
        "properties": properties | {"input": _INPUT},
        "required": ["input"],
    }


def _post(summary: str, body: Mapping[str, Any], *, events: bool = False) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if events:
        content["text/event-stream"] = {"schema": {}}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {"200": {"description": summary, "content": content}, **_errors()},
        }
    }


def _get(
    summary: str, *parameters: Mapping[str, Any], media: str = "application/json"
) -> dict[str, Any]:
    content: dict[str, Any] = {media: {"schema": {}}}
    return {
        "get": {
            "summary": summary,
            "parameters": list(parameters),
            "responses": {"200": {"description": summary, "content": content}, **_errors()},
        }
    }


def _errors() -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    answer = {
        "description": "What is wrong, where, and what would work",
        "content": {"application/json": {"schema": schema}},
    }
    return {"4XX": answer, "5XX": answer}

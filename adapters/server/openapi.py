"""The description of the interface in OpenAPI 3.1, for clients, gateways and fuzzers."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import ffwd
from ffwd.adapters.server.protocol import (
    IGNORED,
    AnyRequest,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    TokenizeRequest,
)
from ffwd.adapters.server.responses import RESPONSE_FIELDS

_TEXT_PART = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
}
_CONTENT = {"anyOf": [{"type": "string"}, {"type": "array", "items": _TEXT_PART}]}
_CALL = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "arguments": {"type": "string", "contentMediaType": "application/json"},
            },
            "required": ["name"],
        },
    },
    "required": ["function"],
}
_MESSAGE = {
    "type": "object",
    "properties": {
        # A chat template may know further ones.
        "role": {
            "anyOf": [
                {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
                {"type": "string"},
            ]
        },
        "content": {"anyOf": [*_CONTENT["anyOf"], {"type": "null"}]},
        "name": {"type": "string"},
        "reasoning_content": {"type": "string"},
        "tool_calls": {"type": "array", "items": _CALL},
        "tool_call_id": {"type": "string"},
    },
    "required": ["role"],
}
_SCHEMA = {"type": "object", "description": "A JSON Schema"}
_FUNCTION = {
    "name": {"type": "string"},
    "description": {"type": "string"},
    "parameters": _SCHEMA,
    "strict": {"type": "boolean"},
}
_FLAT_TOOL = {
    "type": "object",
    "properties": {"type": {"const": "function"}, **_FUNCTION},
    "required": ["type", "name"],
}
_TOOL = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "type": {"const": "function"},
                "function": {"type": "object", "properties": _FUNCTION, "required": ["name"]},
            },
            "required": ["type", "function"],
        },
        _FLAT_TOOL,
        {"type": "object", "properties": {"type": {"const": "custom"}}, "required": ["type"]},
    ]
}
_NAMED_SCHEMA = {"name": {"type": "string"}, "schema": _SCHEMA, "strict": {"type": "boolean"}}
_RESPONSE_FORMAT = {
    "type": "object",
    "properties": {
        "type": {"examples": ["text", "json_object", "json_schema"], "type": "string"},
        "json_schema": {"type": "object", "properties": _NAMED_SCHEMA, "required": ["schema"]},
    },
    "required": ["type"],
}
_ITEM = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "type": {"const": "message"},
                "role": {"enum": ["user", "assistant", "system", "developer"]},
                "content": {"type": "string"},
            },
            "required": ["role", "content"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"const": "function_call"},
                **{name: {"type": "string"} for name in ("call_id", "name", "arguments")},
            },
            "required": ["type", "call_id", "name", "arguments"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"const": "function_call_output"},
                "call_id": {"type": "string"},
                "output": {"type": "string"},
            },
            "required": ["type", "call_id", "output"],
        },
        {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
    ]
}

# What the fields of requests hold that are checked where they are used.
_FIELDS: dict[str, Any] = {
    "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
    "tools": {"type": "array", "items": _TOOL},
    "response_format": _RESPONSE_FORMAT,
}
_OF_RESPONSES: dict[str, Any] = {
    "input": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": _ITEM}]},
    "instructions": {"type": "string"},
    "max_output_tokens": {"type": "integer", "minimum": 1},
    "text": {
        "type": "object",
        "properties": {
            "format": {
                "type": "object",
                "properties": {"type": {"type": "string"}, **_NAMED_SCHEMA},
                "required": ["type"],
            },
            "verbosity": {},
        },
        "additionalProperties": False,
    },
    "reasoning": {
        "type": "object",
        "properties": {"effort": {"type": "string"}, "summary": {}, "generate_summary": {}},
        "additionalProperties": False,
    },
    "include": {
        "type": "array",
        "items": {"enum": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
    },
    "stream_options": {
        "type": "object",
        "properties": {"include_obfuscation": {}, "include_usage": {}},
        "additionalProperties": False,
    },
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    "tools": {"type": "array", "items": _FLAT_TOOL},
}

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
        schema["properties"] |= {name: {} for name in sorted(IGNORED)}
    return schema


def _responses(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the body of a response, whose fields are those of a chat, or its own."""
    own = {name: _or_null(form) for name, form in _OF_RESPONSES.items()} | {
        "input": _OF_RESPONSES["input"]
    }
    properties = {
        name: form
        for name, form in chat["properties"].items()
        if name in RESPONSE_FIELDS or name in IGNORED
    }
    return {**chat, "title": "ResponsesRequest", "properties": properties | own} | {
        "required": ["input"]
    }


def _or_null(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [form, {"type": "null"}]}


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

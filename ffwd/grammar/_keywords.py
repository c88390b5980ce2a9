"""The keywords of JSON Schema, and the one that a misspelt name resembles."""

from difflib import get_close_matches

KEYWORDS = frozenset(
    {"$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor"}
    | {"$recursiveRef", "$ref", "$schema", "$vocabulary", "additionalItems", "additionalProperties"}
    | {"allOf", "anyOf", "const", "contains", "contentEncoding", "contentMediaType"}
    | {"contentSchema", "default", "definitions", "dependencies", "dependentRequired"}
    | {"dependentSchemas", "deprecated", "description", "else", "enum", "examples"}
    | {"exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maxContains", "maxItems"}
    | {"maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength"}
    | {"minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties"}
    | {"prefixItems", "properties", "propertyNames", "readOnly", "required", "then", "title"}
    | {"type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly"}
)
"""Of all dialects, annotations among them."""

# OpenAPI's keywords, and one that many tools write.
_ELSEWHERE = frozenset({"discriminator", "example", "externalDocs", "nullable", "xml", "enumNames"})
_NEAR = 0.78
_BY_LETTERS = {
    "".join(filter(str.isalnum, keyword)).lower(): keyword for keyword in sorted(KEYWORDS)
}


def meant_by(name: str) -> str | None:
    """Return the keyword that a name misspells; None if it resembles none.

    Names of extensions (`x-…`) and of OpenAPI are no misspellings.
    """
    if name in KEYWORDS or name in _ELSEWHERE or name.startswith("x-"):
        return None
    # A longer name is no misspelling, and comparing it takes time.
    if len(name) > 40:
        return None
    letters = "".join(filter(str.isalnum, name)).lower()
    if letters in _BY_LETTERS:
        return _BY_LETTERS[letters]
    near = get_close_matches(letters, _BY_LETTERS, n=1, cutoff=_NEAR)
    return _BY_LETTERS[near[0]] if near else None

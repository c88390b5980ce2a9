"""`mask`, `explain`, `tokenize`, `count`, `split` and `chat render`."""

import json
import warnings

import pytest
from climodels import as_json, ffwd

import ffwd.tokenizer as tokenizers
from ffwd.chat import ChatTemplate

TEXT = "Grüße, Ada: 12 kettles\n\tand\u200b more."


# --------------------------------------------------------------------------------------- mask


def test_mask_says_what_the_matcher_says(schema, model):
    """By the library's own calls."""
    import ffwd

    vocabulary = tokenizers.load(model).vocabulary()
    grammar = ffwd.compile(ffwd.json_schema(schema.read_text(), whitespace="compact"), vocabulary)
    matcher = grammar.matcher()
    assert matcher.accept_tokens(vocabulary.encode(b'{"name":"Ada"'))
    data = as_json(
        "mask", schema, '{"name":"Ada"', "-t", model, "--whitespace", "compact", "--top", 9999
    )
    assert [token["id"] for token in data["allowed"]] == matcher.allowed_token_ids()
    assert data["num_allowed"] == len(data["allowed"])
    assert data["vocab_size"] == vocabulary.vocab_size
    assert data["forced_text"] == matcher.forced_bytes().decode()
    assert [t["id"] for t in data["forced_tokens"]] == matcher.fast_forward_tokens()
    assert data["can_end"] is False
    ids = ",".join(map(str, vocabulary.encode(b'{"name":"Ada"')))
    assert data == as_json(
        "mask", schema, "-t", model, "--ids", ids, "--whitespace", "compact", "--top", 9999
    )


def test_mask_for_people(schema):
    done = ffwd("mask", schema, '{"name":"Ada","status":"', "--top", 2)
    assert done.exit_code == 0
    assert "3 of 257 tokens may come" in done.stdout
    assert "the text may not end here" in done.stdout
    assert "and 1 more: --top lists more of them" in done.stdout
    forced = ffwd("mask", schema, '{"name":"Ada","status":"s').stdout
    assert 'forced next: "hipped\\""' in forced or "hipped" in forced
    ended = ffwd("mask", schema, '{"name":"Ada","status":"new"}').stdout
    assert "the text may end here" in ended


def test_a_text_that_is_refused_is_bad(schema):
    done = ffwd("mask", schema, '{"nome"')
    assert done.exit_code == 1
    assert 'after 3 bytes, "{\\"n"' in done.stderr
    assert 'the key "name"' in done.stderr
    assert done.stdout == ""
    error = as_json("mask", schema, '{"nome"', code=1)["error"]
    assert (error["good_bytes"], error["token"]["text"]) == (3, "o")
    assert ffwd("mask", schema, "--ids", "1;2").exit_code == 2
    assert ffwd("mask", schema, "--ids", "100000").exit_code == 1


def test_what_the_library_warns_of_is_a_line(schema, monkeypatch):
    """Others' warnings are Python's business."""
    import ffwd

    class OwnWarning(UserWarning):
        __module__ = "ffwd.grammar"

    compile_it = ffwd.compile

    def warn(*arguments):
        warnings.warn("a keyword is misspelt", OwnWarning, stacklevel=2)
        return compile_it(*arguments)

    monkeypatch.setattr(ffwd, "compile", warn)
    from climodels import ffwd as run

    assert run("mask", schema).stderr == "warning: a keyword is misspelt\n"
    # `check` has them among its problems.
    assert run("check", schema).stderr == ""


# ------------------------------------------------------------------------------------ explain


def test_explain_says_why_and_what_instead(schema):
    done = ffwd("explain", schema, '{"name": 3')
    assert done.exit_code == 1
    assert "'3' may not come" in done.stdout
    assert "#/properties/name" in done.stdout
    data = as_json("explain", schema, '{"name": 3', code=1)
    assert data["refused"]
    assert data["answer"]["refused_byte"] == ord("3")
    assert ord('"') in data["answer"]["instead_bytes"]
    fine = as_json("explain", schema, '{"name": ')
    assert not fine["refused"]
    assert fine["answer"] is None
    assert fine["expected"][0]["pointers"] == ["#/properties/name"]


def test_explain_answers_about_a_token_or_a_text(schema):
    good = ffwd("explain", schema, '{"name":"Ada"', "--next", ',"status"')
    assert good.exit_code == 0
    assert "may come" in good.stdout
    bad = ffwd("explain", schema, '{"name":"Ada"', "--next", "}")
    assert bad.exit_code == 1
    assert 'before its required key "status"' in bad.stdout
    token = as_json("explain", schema, '{"name":"Ada"', "--token", 256, code=1)
    assert token["answer"]["token"] == 256
    both = ffwd("explain", schema, "--next", "a", "--token", 1)
    assert both.exit_code == 2
    assert ffwd("explain", schema, "--token", 99999).exit_code == 1


def test_explain_draws_a_picture(schema, tmp_path, model):
    path = tmp_path / "view.html"
    done = ffwd("explain", schema, '{"name": 3', "-t", model, "--view", path)
    assert done.exit_code == 1
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "may not come" in page
    assert str(path) in done.stderr
    nowhere = ffwd("explain", schema, "--view", tmp_path / "no/where.html")
    assert nowhere.exit_code == 2


def test_bytes_that_are_no_text_are_explained(tmp_path, model):
    """An argument of the command line may have any."""
    path = tmp_path / "a.re"
    path.write_text("a", encoding="utf-8")
    data = as_json("explain", path, "a\udcff", code=1)
    assert data["answer"]["refused_byte"] == 0xFF
    assert data["answer"]["text"] == {"hex": "ff"}
    assert ffwd("explain", path, "a\udcff", "-t", model).exit_code == 2


# ------------------------------------------------------------------- tokenize, count and split


@pytest.mark.parametrize("text", ["", "Ada", TEXT, "<|im_end|>"])
def test_tokens_are_those_of_the_tokenizer(model, text):
    tokenizer = tokenizers.load(model)
    ids = tokenizer.encode(text)
    data = as_json("tokenize", "-t", model, "--file", "-", input=text)
    assert data["ids"] == ids
    assert data["num_tokens"] == len(ids) == as_json("count", "-t", model, text)["num_tokens"]
    for token in data["tokens"]:
        start, end = token["characters"]
        assert 0 <= start < end <= len(text)
    line = ffwd("tokenize", "-t", model, text, "--ids").stdout
    assert [int(part) for part in line.split()] == ids
    lines = ffwd("tokenize", "-t", model, input=text).stdout.splitlines()
    assert [int(line.split("\t")[0]) for line in lines] == ids
    assert int(ffwd("count", "-t", model, text).stdout) == len(ids)


def test_special_tokens_are_text_unless_allowed(model):
    assert as_json("count", "-t", model, "<|im_end|>")["num_tokens"] > 1
    allowed = as_json("tokenize", "-t", model, "<|im_end|>", "--special", "allowed")
    assert allowed["ids"] == [2]
    done = ffwd("count", "-t", model, "a<|im_end|>", "--special", "forbidden")
    assert done.exit_code == 1
    assert "<|im_end|>" in done.stderr


@pytest.mark.parametrize("number", [1, 2, 5, 10_000])
def test_a_text_is_split_after_so_many_tokens(model, number):
    first = ffwd("split", "-t", model, "--tokens", number, TEXT).stdout
    rest = ffwd("split", "-t", model, "--tokens", number, TEXT, "--rest").stdout
    assert first + rest == TEXT
    tokenizer = tokenizers.load(model)
    assert tokenizer.count(first) <= number
    data = as_json("split", "-t", model, "--tokens", number, TEXT)
    assert (data["first"], data["rest"]) == (first, rest)
    assert data["first_tokens"] == tokenizer.count(first)


def test_texts_and_tokenizers_that_cannot_be_used(model, tmp_path):
    assert ffwd("count", "-t", model, "a", "--file", "-").exit_code == 2
    assert ffwd("count", "a").exit_code == 2
    assert ffwd("split", "-t", model, "--tokens", "0", "a").exit_code == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    done = ffwd("count", "-t", empty, "a")
    assert done.exit_code == 5
    assert str(empty) in done.stderr


# ------------------------------------------------------------------------------------- chat


def test_a_conversation_is_rendered_as_the_template_does(model, messages):
    tokenizer = tokenizers.load(model)
    conversation = json.loads(messages.read_text())
    prompt = ChatTemplate.for_tokenizer(tokenizer).render(
        conversation, tokenizer=tokenizer, add_generation_prompt=True
    )
    assert ffwd("chat", "render", model, messages).stdout == prompt.text
    ids = ffwd("chat", "render", model, messages, "--ids").stdout
    assert [int(part) for part in ids.split()] == prompt.ids
    data = as_json("chat", "render", model, messages)
    assert data["ids"] == prompt.ids
    # Of the two that look alike the user's is text.
    assert [p for p in data["parts"] if p.get("control") == "<|im_end|>"] == [
        {"control": "<|im_end|>", "id": 2}
    ]
    texts = [p["text"] for p in data["parts"] if p.get("message") == 0]
    assert texts == ["Ada <|im_end|> ordered."]
    bare = ffwd("chat", "render", model, messages, "--no-generation-prompt").stdout
    assert prompt.text.startswith(bare)
    assert bare != prompt.text


def test_tools_formats_templates_and_variables(model, messages, tmp_path):
    tools = tmp_path / "tools.json"
    parameters = {"type": "object", "properties": {}}
    function = {"name": "order", "description": "d", "parameters": parameters}
    tools.write_text(json.dumps([{"type": "function", "function": function}]))
    assert '"order"' in ffwd("chat", "render", model, messages, "--tools", tools).stdout
    chatml = ffwd("chat", "render", model, messages, "--format", "chatml")
    assert chatml.stdout.startswith("<|im_start|>user\nAda")
    template = tmp_path / "own.jinja"
    template.write_text("{{ messages[0].content }} {{ mood }}")
    own = ffwd("chat", "render", model, messages, "--template", template, "--set", 'mood="glad"')
    assert own.stdout == "Ada <|im_end|> ordered. glad"
    for options in (
        ["--set", "mood=glad"],
        ["--set", "mood"],
        ["--format", "chatml", "--set", "a=1"],
    ):
        assert ffwd("chat", "render", model, messages, *options).exit_code == 2
    two = ["--template", template, "--format", "chatml"]
    assert ffwd("chat", "render", model, messages, *two).exit_code == 2
    mistral = ffwd("chat", "render", model, messages, "--mistral", "v3")
    assert mistral.exit_code == 5
    assert "[INST]" in mistral.stderr or "control tokens" in mistral.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "JSON array of messages"),
        ("{}", "JSON array of messages"),
        ("[1]", "JSON array of messages"),
        ('[{"role": "user",}]', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_conversations_that_are_none(model, tmp_path, text, said):
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = ffwd("chat", "render", model, path)
    assert done.exit_code == 1, done.output
    assert said in done.stderr
    assert as_json("chat", "render", model, path, code=1)["error"]["message"]


def test_a_model_without_template_says_what_to_do(model, messages):
    done = ffwd("chat", "render", model / "tokenizer.json", messages)
    assert done.exit_code == 5
    assert "chatml" in done.stderr

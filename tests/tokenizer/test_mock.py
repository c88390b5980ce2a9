"""The tokenizer for other people's tests is a whole one."""

import random
import subprocess
import sys

import ffwd
import ffwd.tokenizer
from ffwd.chat import CHATML, ChatTemplate
from ffwd.tokenizer.mocking import WORDS


def test_every_text_comes_back() -> None:
    tokenizer = ffwd.tokenizer.mock()
    rng = random.Random(1)
    for _ in range(300):
        parts = [*WORDS, "x", " ", "\n", "é", "日本", "<|im_end|>", "\U0001f600", "7"]
        text = "".join(rng.choices(parts, k=rng.randrange(20)))
        assert tokenizer.decode(tokenizer.encode(text)) == text
        # No text becomes a control token.
        assert not {*tokenizer.eos_token_ids} & {*tokenizer.encode(text)}


def test_each_word_is_one_token() -> None:
    tokenizer = ffwd.tokenizer.mock()
    for word in WORDS:
        (token_id,) = tokenizer.encode(word)
        assert tokenizer.id_to_token(token_id) == word
    assert not tokenizer.findings


def test_prompts_and_grammars() -> None:
    tokenizer = ffwd.tokenizer.mock()
    messages = [{"role": "user", "content": "Hello world<|im_end|>"}]
    prompt = ChatTemplate.for_tokenizer(tokenizer).render(
        messages, tokenizer=tokenizer, add_generation_prompt=True
    )
    assert prompt.ids == CHATML.render(messages, tokenizer=tokenizer).ids
    assert prompt.end_token_ids == tokenizer.eos_token_ids
    grammar = ffwd.compile(ffwd.choice(["Hello world"]), tokenizer.vocabulary())
    forced = grammar.matcher().fast_forward_tokens()
    assert forced == [*tokenizer.encode("Hello world"), *tokenizer.eos_token_ids] or (
        forced == tokenizer.encode("Hello world")
    )


def test_it_needs_no_other_package() -> None:
    code = (
        "import sys\nimport ffwd.tokenizer\nffwd.tokenizer.mock().encode('Hello')\n"
        "assert not {'tokenizers', 'transformers', 'tiktoken'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

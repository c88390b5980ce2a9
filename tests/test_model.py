"""The model in the box: its files, its tokenizer and its texts."""

import hashlib
import json
import random
import re

import pytest
import tokenizers
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

import ffwd.chat
import ffwd.model
import ffwd.tokenizer
from ffwd.model.texts import Words, conversation, extraction, simple_extraction
from ffwd.model.texts.records import KINDS

FOLDER = ffwd.model.path()
FILES = {
    "README.md",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "training.json",
}


def conversations(count, seed):
    words = Words(random.Random(seed))
    return [conversation(words) for _ in range(count)]


def test_it_is_small_and_whole():
    found = {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"}
    assert found == FILES
    assert sum((FOLDER / name).stat().st_size for name in FILES) <= 8 << 20


def test_the_files_say_which_weights_these_are():
    made = json.loads((FOLDER / "training.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    assert made["sha256"] == digest
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Apache-2.0" in card
    config = AutoConfig.from_pretrained(FOLDER)
    assert re.search(rf"{config.vocab_size:,} tokens", card)


def test_ffwd_encodes_as_the_tokenizers_library():
    bpe = ffwd.tokenizer.load(FOLDER).bpe
    theirs = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    texts = [message["content"] for each in conversations(300, 1) for message in each.messages]
    texts += [each.answer for each in conversations(300, 2)]
    source = random.Random(3)
    alphabet = "aeT \"{}:,.orderIdName0123\n\té语🙂'"
    texts += ["".join(source.choices(alphabet, k=source.randrange(40))) for _ in range(500)]
    for text in texts:
        assert (
            bpe.encode(text, special="allowed") == theirs.encode(text, add_special_tokens=False).ids
        ), text


def test_the_chat_template_gives_the_same_in_both():
    transformers = AutoTokenizer.from_pretrained(FOLDER)
    template = ffwd.chat.ChatTemplate.for_tokenizer(ffwd.tokenizer.load(FOLDER))
    for each in conversations(200, 4):
        theirs = transformers.apply_chat_template(
            each.messages, tools=each.tools or None, add_generation_prompt=True, tokenize=False
        )
        ours = template.render_text(
            each.messages, tools=each.tools or None, add_generation_prompt=True
        )
        assert ours == theirs


def test_a_name_has_the_same_tokens_after_a_space_as_in_quotes():
    bpe = ffwd.tokenizer.load(FOLDER).bpe
    words = Words(random.Random(5))
    names = [words.invented() for _ in range(500)]
    same = sum(bpe.encode(f" {name}")[1:] == bpe.encode(name) for name in names)
    assert same > 400


@pytest.mark.parametrize(
    ("stem", "words"),
    [
        ("order", ("orderId", "orderName")),
        ("user", ("userId", "userName")),
        ("start", ("startDate", "startTime")),
    ],
)
def test_keys_are_tokens_that_their_common_beginning_hides(stem, words):
    bpe = ffwd.tokenizer.load(FOLDER).bpe
    alone = bpe.encode(f'{{"{stem}')
    for word in words:
        assert bpe.encode(f'{{"{word}"')[: len(alone)] != alone


def test_texts_follow_their_seed():
    assert conversations(50, 6) == conversations(50, 6)
    assert conversations(50, 6) != conversations(50, 7)


def test_answers_follow_their_schemas():
    vocabulary = ffwd.tokenizer.load(FOLDER).vocabulary()
    for each in conversations(300, 8):
        if each.schema is None or each.task == "reasoning":
            continue
        grammar = ffwd.compile(
            ffwd.json_schema(json.dumps(each.schema), whitespace="compact"), vocabulary
        )
        matcher = grammar.matcher()
        assert matcher.accept_tokens(vocabulary.bpe.encode(each.answer)), each
        assert matcher.is_accepting()


def test_every_fact_is_in_its_text():
    words = Words(random.Random(9))
    for kind, make in KINDS.items():
        for _ in range(100):
            record = make(words)
            assert record.kind == kind
            for fact in record.facts:
                values = fact.value if isinstance(fact.value, list) else [fact.value]
                spelled = [value for value in values if not isinstance(value, bool)]
                if "enum" not in fact.schema:
                    assert all(str(value) in record.text for value in spelled), record
            example = extraction(words, record)
            assert record.text in example.messages[-1]["content"]


def test_it_is_right_about_texts_that_it_has_not_seen():
    """Greedily it writes an answer exactly if each token of it is the likeliest one there."""
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model = AutoModelForCausalLM.from_pretrained(FOLDER).eval()
    words = Words(random.Random(10))
    right = 0
    for _ in range(200):
        example = simple_extraction(words)
        prompt = tokenizer.apply_chat_template(
            example.messages, add_generation_prompt=True, return_dict=True
        )["input_ids"]
        answer = [*tokenizer.encode(example.answer), tokenizer.eos_token_id]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0]
        right += logits[len(prompt) - 1 : -1].argmax(-1).tolist() == answer
    assert right >= 180

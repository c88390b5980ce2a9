"""Recordings for the tests of `ffwd.view`."""

import json

import ffwd
from ffwd.view import Recorder, Recording, replay

NASTY = "</script><img src=x onerror=alert(1)><!--"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tall": {"type": "boolean"}},
    "required": ["name", "tall"],
    "additionalProperties": False,
}
BYTES = [bytes([byte]) for byte in range(256)]
# Some tokens are whole words, one is hostile, one is a piece of a character.
WORDS = [
    b'{"',
    b'name":',
    b'"tall":',
    b"true",
    b"false",
    NASTY.encode(),
    "\u00e9".encode()[:1] + b"x",
]
CONTROL = "<|end|><script>alert(2)</script>"
END = 256 + len(WORDS)


def vocabulary() -> ffwd.Vocabulary:
    """Bytes, a few words and an end."""
    words = {word: 256 + place for place, word in enumerate(WORDS)}

    def encode(data: bytes) -> list[int]:
        """The longest word first."""
        ids = []
        while data:
            found = max((w for w in words if data.startswith(w)), key=len, default=data[:1])
            ids.append(words.get(found, found[0]))
            data = data[len(found) :]
        return ids

    return ffwd.Vocabulary(
        [*BYTES, *WORDS, None], eos_token_ids=[END], encode=encode, token_names={CONTROL: END}
    )


def grammar(schema: object = None) -> ffwd.CompiledGrammar:
    """Compact JSON."""
    text = json.dumps(SCHEMA if schema is None else schema)
    return ffwd.compile(ffwd.json_schema(text, whitespace="compact"), vocabulary())


def hostile() -> Recording:
    """A text, a title, a prompt and names that would be elements."""
    compiled = grammar()
    text = '{"name":"' + NASTY + '","tall":true}'
    ids = [*compiled.vocabulary.encode(text.encode()), END]
    prompt = list(compiled.vocabulary.encode(NASTY.encode()))
    return replay(compiled, ids, title=NASTY, prompt_ids=[*prompt, END])


def generated() -> Recording:
    """What a loop notes: sampled, forced and healed tokens, with a model's probabilities."""
    compiled = grammar()
    matcher = compiled.matcher(prefix=b"> ")
    bitmask = ffwd.allocate_bitmask(1, compiled.vocabulary.vocab_size)
    recorder = Recorder(
        compiled.vocabulary, title="a test", prompt_ids=[65, 66], taken_back=[ord(">"), ord(" ")]
    )
    for token in [*compiled.vocabulary.encode(b'> {"name":"Al","tall":false}'), END]:
        if matcher.fast_forward_tokens()[:1] == [token] and token not in (62, 32):
            assert matcher.accept_token(token)
            recorder.forced([token], 2_000)
            continue
        matcher.fill_bitmask(bitmask, 0)
        recorder.masked(bitmask[0], 1_500)
        recorder.scored(
            [(token, 0.625), (65, 0.25)], allowed_probability=0.5, preferred=(END, 0.4375)
        )
        assert matcher.accept_token(token)
        recorder.sampled(token, model=3_000_000, accept=700)
    return recorder.recording()

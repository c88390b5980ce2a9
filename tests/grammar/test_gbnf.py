"""GBNF beside llama.cpp and EBNF beside XGrammar: texts of grammars, and what is refused."""

from collections.abc import Callable

import pytest
from bnfpeers import END, Llama, XGrammar
from tagpeers import variants

import ffwd

VOCABULARY = ffwd.Vocabulary([bytes([byte]) for byte in range(END)] + [None], eos_token_ids=[END])

BOTH = {
    "json": (
        r"""root ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
value ::= (string | number | root | "[" ws (value ("," ws value)*)? "]" | "true" | "null") ws
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,5}) ("." [0-9]+)?
ws ::= [ \n]*
""",
        ['{"a": [1, -0.5, "x\\u00e9\\n"], "b": {}}', '{ "é" : null }\n', "{}"],
    ),
    "arithmetic": (
        'root ::= (sum "=" sum "\\n")+\nsum ::= term ([-+*/] term)*\n'
        'term ::= [a-z]+ [0-9_]{0,2} | [0-9]+ | "(" sum ")"',
        ["1+x=y\n", "(1*(2-ab_1))=3\na=b\n"],
    ),
    "list": ('root ::= item+\nitem ::= "- " [^\\n\\x0b\\u2028]+ "\\n"', ["- a\n- zwei\n", "- é\n"]),
    "chess": (
        'root ::= (move " " move "\\n"){1,3}\n'
        'move ::= ([NBKQR] [a-h]? "x"? [a-h] [1-8] | ([a-h] "x")? [a-h] [1-8] | "O-O" "-O"?) [+#]?',
        ["e4 e5\n", "Nf3 O-O-O\nexd5 Qxe4+\n"],
    ),
    "c": (
        'root ::= ("int" ws name "(" ")" "{" stmt* "}")*\n'
        'stmt ::= name "=" sum ";" | "if(" sum ")" "{" stmt* "}" ("else{" stmt* "}")? |\n'
        '"return" ws sum ";"\n'
        "sum ::= factor ([-+*] factor)*\n"
        'factor ::= name | [0-9]+ | "(" sum ")" | name "(" (sum ("," sum)*)? ")"\n'
        'name ::= [a-z]+\nws ::= " "+',
        ["int f(){return 1;}", "int f(){x=a*(b+1);if(x){x=f(x,1);}else{}}"],
    ),
    "ambiguous": ('root ::= a a? "b"*\na ::= "ab" | "a" | "ab" "b"', ["abab", "abbb", "aab"]),
    "empty": (
        'root ::= ("" | x) "y"\nx ::= "x"{2} | "z"{1,2} | "w"{3,}',
        ["y", "xxy", "zzy", "wwwwy"],
    ),
    "characters": ('root ::= [^a-y]* "\\x41\\u00e9\\U0001F600" [\\]\\-]', ["zzAé😀]", "A1Aé😀-"]),
}

EBNF = {
    "lookahead": ('root ::= r* "b" | r "c"\nr ::= "a" (= "x")', ["aab", "b", "ac"]),
    "left": ('root ::= root "+" n | n\nn ::= [0-9]+', ["1", "1+23+4"]),
    "tags": (
        'root ::= TagDispatch(("<a>", r), ("<bb>", q), excludes=("zz", "<ab"))\n'
        'r ::= "q"\nq ::= "x" r',
        ["x<a>qy<<a>q", "z<bb>xq", "<a", "z"],
    ),
    "one tag": (
        'root ::= "(" TagDispatch(("<a>", r), loop_after_dispatch=false) ")"\nr ::= "q"',
        ["(x<a>q)", "(()"],
    ),
    "lazy": ('root ::= x [0-9!]*\nx[lazy] ::= y "!"\ny ::= [a-z]*', ["!", "ab!!1"]),
    "short": ('root ::= x "!"\nx[max_chars=3] ::= ("ab" | "c")*', ["ab!", "abc!", "abab!", "ccc!"]),
    "regex": ('root ::= Regex("a.c|[b-d]{2,3}x?") Regex("[a-z]+", flags="i")', ["a\ncX", "bcdxy"]),
    "strings": ('root ::= "\\"" Regex("[^x]*", json_string=true) "\\""', ['"aé"', '"\\"', '""']),
    "substring": ('root ::= Substring("ab", "c", "ab", "de") "!"', ["!", "abcab!", "cabde!"]),
}

REFUSED = [
    "root ::= x",
    'x ::= "a"',
    'root ::= "a',
    "root ::= [a",
    'root ::= ("a"',
    'root ::= "a")',
    'root ::= "\\q"',
    'root ::= "\\x"',
    'root ::= "a"{x}',
    'root ::= "a"{,2}',
    "root ::= * ",
    'root = "a"',
    'root ::= "a" b ::= "c"',
    'root ::= "a" ; "b"',
]


def accepted(grammar: ffwd.Grammar, texts: list[str]) -> list[bool]:
    """Which texts belong to the grammar."""
    compiled = ffwd.compile(grammar, VOCABULARY)
    return [compiled.matcher().accept_tokens([*text.encode(), END]) for text in texts]


def compare(
    read: Callable[[str], ffwd.Grammar],
    peer: Llama | XGrammar,
    cases: dict[str, tuple[str, list[str]]],
) -> None:
    """The examples belong to each grammar, and of texts like them the same as in the peer."""
    for name, (grammar, examples) in cases.items():
        texts = [text for text in variants(examples, seed=3, number=150) if "\0" not in text]
        verdicts = accepted(read(grammar), texts)
        assert verdicts == peer.accepts(grammar, texts), name
        assert any(verdicts), name
        assert not all(verdicts), name


def test_gbnf_beside_llama_cpp():
    """The texts are those that llama.cpp accepts."""
    compare(ffwd.gbnf, Llama(), BOTH)


def test_ebnf_beside_xgrammar():
    """The texts are those that XGrammar accepts, in the grammars of GBNF too."""
    compare(ffwd.ebnf, XGrammar(), BOTH | EBNF)


def test_what_the_peers_refuse():
    """Grammars that both refuse are refused here, with a place."""
    peer = XGrammar()
    for grammar in REFUSED:
        assert peer.accepts(grammar, []) is None, grammar
        for read in (ffwd.gbnf, ffwd.ebnf):
            with pytest.raises(ffwd.GrammarError) as caught:
                ffwd.compile(read(grammar), VOCABULARY)
            assert caught.value.line == 1
            assert caught.value.column >= 1


def test_llama_cpp_refuses_them_too():
    """The same grammars."""
    llama = Llama()
    assert [grammar for grammar in REFUSED if llama.accepts(grammar, []) is not None] == []

"""Lark grammars with texts that belong to them and texts that do not."""

# A case is one line wherever it can be.
# ruff: noqa: E501, RUF001

# Grammar, texts of it, others.
# fmt: off
CASES: list[tuple[str, list[str], list[str]]] = [
    # Structure.
    ('start: a "x"\na: a "y" | "y"', ["yx", "yyyx"], ["x", "xy", "y"]),
    ('start: e\ne: e "+" e | e "*" e | "(" e ")" | /[0-9]/', ["1+2*3", "(1)*(2+3)"], ["1+", "()", "12"]),
    ('start: "a"? ["b" "c"] ("d" | )', ["", "a", "bcd", "ad"], ["b", "da", "aa"]),
    ('start: "a"~2..3 "b"{2} "c"{,2} "d"{1,}', ["aabbd", "aaabbccdd"], ["abbd", "aabb", "aabbcccd"]),
    ("start:\n  | x x\nx: /a*/ | start", ["", "aaa"], ["b"]),
    ('start: "[" list{item} "]"\nlist{x}: x ("," x)*\nitem: /[a-z]/ | "(" list{item} ")"', ["[a,(b,c)]"], ["[]"]),
    # Strings and patterns.
    ('start: "ß"i "\\x41\\u00e9\\ud83d\\ude00\\n"', ["ßAé😀\n", "ẞAé😀\n"], ["ssAé😀\n", "ßaé😀\n"]),
    ('start: "α".."γ"+', ["αβγ"], ["δ", "a", ""]),
    ("start: /a.b/i /c.d/s /e\\/f/", ["AxBc\nde/f"], ["a\nbc\nde/f", "axbCxde/f"]),
    ("start: /\\w+\\s\\d/", ["é ٣", "ab\t1"], ["- 1", "a b"]),
    # Terminals.
    ("start: A\nA: B? C~2 | ~/(?s:.*)x(?s:.*)/ & /[xyz]{3}/\nB: \"b\"\nC: \"c\"", ["bcc", "cc", "yzy"], ["bc", "yxz"]),
    ('start: %regex {"substring_words": "one two, two"} "!"', ["one two!", "two, two!", "!"], ["tw!", "one,!"]),
    ("%import common (SIGNED_NUMBER, ESCAPED_STRING, C_COMMENT)\nstart: SIGNED_NUMBER ESCAPED_STRING C_COMMENT",
     ['-1.5e3"a\\"b"/* * */', '1.""/**/'], ["--1\"\"/**/", '1"/**/', '1""/**']),
    # The longest match.
    ('start: "if" ID | ID "=" ID\nID: /[a-z]+/\n%ignore / +/', ["ifx=y", "if x", "if=y", "x  = y"], ["ifx", "x y", " x=y"]),
    ('start: A B | "c"\nA: /a+/\nB: /ab/', ["c"], ["aab", "aaab", "ab"]),
    ('start: "a" "b" "d" | /abc/', ["abc"], ["abd", "ab"]),
    ('start: "a" "b" "d" | /abc?/ "d"', ["abd", "abcd"], ["ab", "abc"]),
    ('start: "a" ID\nID: /[a-z]+/', ["ab", "aab"], ["a", "b"]),
    ("start: A A \"x\"\nA: /a*/", ["x", "aax"], ["b"]),
    ('start: INT ".." INT | FLOAT\nINT: /[0-9]+/\nFLOAT: /[0-9]+\\.[0-9]*/', ["1.", "1.5"], ["1..2", "1"]),
    ('start: ">" ">" | ">>" "x" | ">" "=" ', [">=", ">>x"], [">>", ">"]),
    # Lazy lexemes.
    ('start: l "1" | G "2"\nl[lazy]: /a+/\nG: /a/', ["a1"], ["a2", "aa1"]),
    ('start: l "1" | G "2"\nl[lazy]: /aa/\nG: /a+/', ["aa1", "a2"], ["aa2", "aaa2"]),
    ('start: l "1" | k "2"\nl[lazy]: /a+/\nk[lazy]: /a+b?/', ["a1", "a2"], ["ab2"]),
    ('start: l "1" | k "2"\nl[suffix="xx"]: /[ax]+/\nk[suffix="x"]: /[ab]+/', ["ax2"], ["axx1", "xx2"]),
    ('start: w "!"\nw[suffix=/<.>/]: /(.|\\n)*/', ["a<b>!", "<<<a>!"], ["<a>", "a!", "<a>b!"]),
    ('start: w "!"\nw[stop="x"]: /a*/', ["aax!", "x!"], ["aa!", "axx!"]),
    ('start: w "xy" w X w "z"\nw[stop="x"]: /a*/\nX: "x"', ["xyxxz", "axyaxaxz"], ["xyxxxz", "xxyxxz"]),
    ('start: tool* rest\ntool: head "=" /[0-9]/ ">"\nhead[lazy]: TEXT "<f"\nrest: TEXT\nTEXT: /(.|\\n)*/',
     ["", "a<b", "a<f=1>b<f=2>", "<"], ["<f", "<f=>", "a<f=1"]),
    ("%ignore / /\nstart: a \"x\"\na[lazy]: \"b\" \"c\"", ["bcx", "bc x"], ["b cx"]),
    ("%ignore / /\nstart: a\na[max_tokens=5]: \"b\" \"c\"", ["bc"], ["b c"]),
    # What is ignored.
    ('%ignore / +/\n%ignore /#[^\\n]*\\n/\nstart: "a" "b"+', ["ab", "a b  b", "a#x\n b #\n#\n", "a b "], [" ab", "a#b"]),
    ('%llguidance {"allow_initial_skip": true}\n%ignore / +/\nstart: "a" "b"', [" ab", "  a b"], [" "]),
    ('%llguidance {"ignore_once": true}\n%ignore / /\nstart: "(" ")"', ["()", "( )"], ["(  )"]),
    ('%ignore / +/\nstart: e "x"\ne: "" | "a"', ["x", "a x"], [" x"]),
    ('%ignore / +/\nstart: A "x"\nA: /a*/', ["x", "aa x", " x"], ["a"]),
    ('%ignore / +/\nstart: "(" / +x/ ")"', ["(  x)", "( x )"], ["( )", "()"]),
    ('%ignore /_/\nstart: "a" %lark {\n%ignore / +/\nstart: "b" "c"\n} "x"', ["abcx", "ab cx", "abc_x"], ["ab_cx", "abc_"]),
    ('%ignore /_+/\nstart: %json {"type": "integer"} "x"', ["12x", "-3_x"], ["_1x", "1 x", "x"]),
    # Rules with a parameter.
    ('start: p::0\np::_: "" %if is_ones([0:3])\n | "a" p::set_bit(0) %if bit_clear(0)\n | "b" p::set_bit(1) %if bit_clear(1)\n'
     ' | "c" p::set_bit(2) %if bit_clear(2)', ["abc", "cab"], ["ab", "aab", "abca"]),
    ('start: aa::0\naa::_: "b" aa::incr(_) %if lt(_, 5) | bb::_\nbb::_: "a" bb::incr(_) %if lt(_, 5) | ""',
     ["", "bba", "bbbaa"], ["ab", "bbbaaa"]),
    ('start: p::0x5\np::_: "a" p::clear_bit(0) %if bit_set(0) | "b" p::decr([1:3]) %if ge([1:3], 1)\n'
     ' | "c" %if and(eq([0:1], 0), or(bit_count_eq(_, 0), not(true)))', ["abbc", "babc"], ["abc", "ac", "bbc"]),
    ('start: p::0\np::_: "a" p::bit_or(3) %if is_zeros(_) | "b" p::bit_and(0xfffe) %if bit_count_gt([0:4], 1) | "" %if ne(_, 0)',
     ["a", "ab"], ["", "b", "abb"]),
]

# Grammar, text, whether it belongs to it here (llguidance has it the other way), and why.
DIFFERENCES: list[tuple[str, str, bool, str]] = [
    ('%ignore / +/\nstart: "(" / +/ ")"', "( )", True, "ignored and a lexeme of the same length: both are read"),
    ('%ignore / /\nstart: "a" %json {"type": "integer"}', "a 1", True, "what is ignored may come before %json"),
    ('start: v "x" "!"\nv: w\nw[stop="x"]: /a*/', "aax!", False, "the ending is shared with what directly follows"),
    ('start: B (l | G)\nl[lazy]: /a/\nG: /ab/\nB: /b+/', "bab", False, "a lazy lexeme ends with its first byte, also where that byte ended the lexeme before"),
    ('start: A\nA: /a*/\n%ignore / /', " ", True, "what is ignored may come behind an empty lexeme"),
]

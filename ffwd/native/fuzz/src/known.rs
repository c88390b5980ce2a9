//! Grammars of every kind, for what is fuzzed beside them.

use std::sync::Arc;

use ffwd_automaton::{Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_engine::engine::{Compiled, Engine};
use ffwd_grammar::{ebnf, gbnf, lark};

enum Known {
    Schema(&'static str, PropertyOrder),
    Regex(&'static str),
    Lark(&'static str),
    Gbnf(&'static str),
    Ebnf(&'static str),
}
use Known::{Ebnf, Gbnf, Lark, Regex, Schema};
use PropertyOrder::{Any, Declared};

const GRAMMARS: [Known; 26] = [
    Schema("true", Declared),
    Schema(
        r#"{"type":"object","properties":{"name":{"type":"string"},"a":{"type":"array",
            "items":{"type":"integer"}}},"required":["name"]}"#,
        Declared,
    ),
    Schema(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"ab":{"enum":["x","xy",1]},
            "b":{"const":null}},"required":["a","ab"],"additionalProperties":false}"#,
        Any,
    ),
    Schema(
        r#"{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},
            "required":["kind","x"],"additionalProperties":false},{"type":"object","properties":
            {"kind":{"const":"b"},"name":{"type":"string"}},"required":["kind"]}]}"#,
        Any,
    ),
    Schema(
        r##"{"$defs":{"t":{"type":"object","properties":{"name":{"maxLength":3,"type":"string"},
            "k":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":2}},
            "additionalProperties":false}},"$ref":"#/$defs/t"}"##,
        Declared,
    ),
    Schema(
        r#"{"type":"array","items":{"type":"integer","minimum":-3,"maximum":120},
            "uniqueItems":true,"minItems":2,"maxItems":4}"#,
        Declared,
    ),
    Schema(r#"{"type":"array","contains":{"const":1},"minContains":2,"maxContains":3}"#, Declared),
    Schema(
        r#"{"type":"object","patternProperties":{"^a":{"type":"integer"}},
            "propertyNames":{"maxLength":3},"minProperties":1,"maxProperties":3}"#,
        Any,
    ),
    Schema(r#"{"type":"string","pattern":"^(\\S+ ){0,40}\\S+$","maxLength":60}"#, Declared),
    Schema(r#"{"not":{"type":"object","required":["a"]},"type":["object","number"]}"#, Declared),
    Schema(
        r#"{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},
            "else":{"properties":{"b":false}},"type":"object"}"#,
        Any,
    ),
    Schema(r#"{"type":"number","multipleOf":0.25,"exclusiveMinimum":-1}"#, Declared),
    Regex("[ab]{0,200}x"),
    Regex(r#""([^"\\]|\\.)*""#),
    Regex("(?:aa|bb){0,30}(?:a|b)?"),
    Regex("é{1,3}|€+|😀"),
    Lark("start: (WORD | NUMBER)+\nWORD: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore \" \"\n"),
    Lark("start: \"(\" start? \")\" | <|call|> | \"a\" <|call|> \"b\"\n"),
    Lark("start: e\ne: e \"+\" t | t\nt: /[0-9]+/ | \"(\" e \")\"\n"),
    Lark("start: a b\na[max_tokens=3]: /[a-z]*/\nb: \"<a>\" %json {\"type\":\"integer\"}\n"),
    Lark("start: text \"</a>\"\ntext[capture, suffix=\"<a>\"]: /[^<]*/\n"),
    Lark(
        "start: p::0\np::_: \"\" %if is_ones([0:2])\n | \"a\" p::set_bit(0) %if bit_clear(0)\n \
         | \"b\" p::set_bit(1) %if bit_clear(1)\n",
    ),
    Gbnf("root ::= \"a\" root \"b\" | \"\"\n"),
    Gbnf("root ::= item (\",\" item)*\nitem ::= [a-z]{1,3} | [0-9]+ | \"[\" root \"]\"\n"),
    Gbnf("root ::= <[328]> [a-z]+ | !<[329]> \"x\"\n"),
    Ebnf("root ::= a{2,4} | (\"x\" | b)+\na ::= [a-c]\nb ::= \"[\" root? \"]\"\n"),
];

pub const COUNT: usize = GRAMMARS.len();

/// One of them; whatever the number, it is one.
pub fn compile(number: usize, engine: &Arc<Engine>) -> Compiled {
    let known = &GRAMMARS[number % COUNT];
    let writing = |property_order| {
        let compact = Whitespace { mode: WhitespaceMode::Compact };
        Writing { property_order, numbers: Numbers::Any, ..Writing::from(compact) }
    };
    let grammar = match known {
        Schema(schema, order) => {
            let compiled = engine.compile_json_schema(schema, writing(*order));
            return compiled.expect("a schema that is known");
        }
        Regex(pattern) => return engine.compile_regex(pattern).expect("a pattern that is known"),
        Lark(text) => lark::parse(text),
        Gbnf(text) => gbnf::parse(text, "root"),
        Ebnf(text) => ebnf::parse(text, "root"),
    };
    let grammar = match grammar {
        Ok(grammar) => grammar,
        Err(error) => panic!("a grammar that is known: {error}"),
    };
    match engine.compile_grammar(&grammar, writing(Declared).into()) {
        Ok(compiled) => compiled,
        Err(error) => panic!("grammar {number}: {error}"),
    }
}

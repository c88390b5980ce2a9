//! The native core of ffwd: from a grammar and a vocabulary to token bitmasks and forced tokens.
//!
//! The layers; a module uses only the modules above it:
//!
//! * [`error`] an exceeded limit, which any layer may report
//! * [`section`] work that a fork of the process must not interrupt
//! * [`limits`] the bounds of a grammar, and [`meter`] the use of one call
//! * [`regex`] text languages: the syntax tree and the front ends that parse patterns
//! * [`expr`] byte expressions, and lexemes: automata that are built from them on demand
//! * [`vocabulary`] the bytes of tokens, and the trie over them; independent of grammars
//! * [`streaming`] token ids to text, at once and token by token
//! * [`bpe`] byte-pair encoding of one piece of text; independent of pre-tokenizers and grammars
//! * [`pretokenizer`] the split of a text into pieces; independent of tokens
//! * [`tokenizer`] whole texts to tokens, and token counts of changing texts
//! * [`canonical`] the tokenizations that a text can have
//! * [`logits`] bitmasks onto logits; independent of tokens
//! * [`json_schema`] a schema document, in a normal form per JSON type
//! * [`grammar`] grammars as front ends write them: rules, lexemes, schemas, sets of tokens
//! * [`gbnf`] and [`ebnf`] the grammars of llama.cpp and of XGrammar
//! * [`lark`] a front end: Lark grammars in the variant of llguidance
//! * [`automaton`] configurations and stacks over lexemes; independent of tokens
//! * [`mask`] the only module that combines automaton and vocabulary
//! * [`engine`] a vocabulary with the shared objects of its grammars, and compilation
//! * [`events`] the spans of a text: their starts, ends and contents
//! * [`matcher`] one sequence, and [`fast_forward`] its forced tokens
//! * [`explain`] the allowed continuations of a text, and the reasons of refusals, in words
//! * [`saved`] grammars and sequences as bytes, and back
//! * `python` the boundary, behind the feature of that name

pub mod automaton;
pub mod bpe;
pub mod canonical;
pub mod ebnf;
pub mod engine;
pub mod error;
pub mod events;
pub mod explain;
pub mod expr;
pub mod fast_forward;
pub mod gbnf;
pub mod grammar;
pub mod json_schema;
pub mod lark;
pub mod limits;
pub mod logits;
pub mod mask;
pub mod matcher;
pub mod meter;
pub mod pretokenizer;
#[cfg(feature = "python")]
mod python;
pub mod regex;
pub mod saved;
pub mod section;
pub mod streaming;
pub mod tokenizer;
pub mod vocabulary;

//! The native core of ffwd: from a grammar and a vocabulary to token bitmasks and forced tokens.
//!
//! The layers; a module uses only modules that stand above it:
//!
//! * [`error`] a budget that ran out, which any layer may meet
//! * [`section`] work that a fork of the process must not cut in two
//! * [`limits`] how much a grammar may use, and [`meter`] what one call has used
//! * [`regex`] text languages: the syntax tree and the front ends that read patterns into it
//! * [`expr`] byte expressions, and lexemes: automata that are built from them on demand
//! * [`vocabulary`] the bytes of tokens, and the trie over them; knows no grammar
//! * [`streaming`] token ids back to text, at once and while they come
//! * [`bpe`] byte-pair encoding of one piece of text; knows no pre-tokenizer and no grammar
//! * [`pretokenizer`] where a tokenizer cuts a text into pieces; knows no token
//! * [`tokenizer`] whole texts to tokens, and texts whose tokens are counted while they change
//! * [`canonical`] which tokens a text can have
//! * [`logits`] bitmasks onto logits; knows bits and numbers, no token
//! * [`json_schema`] a schema document, brought to a normal form per JSON type
//! * [`grammar`] grammars as front ends write them: rules, lexemes, schemas, sets of tokens
//! * [`gbnf`] and [`ebnf`] the grammars of llama.cpp and of XGrammar
//! * [`lark`] a front end: Lark grammars in the variant of llguidance
//! * [`automaton`] configurations and stacks over lexemes; knows no token
//! * [`mask`] the only place where automaton and vocabulary meet
//! * [`engine`] a vocabulary with what its grammars share, and compilation
//! * [`events`] where spans of a text begin and end, and what comes in them
//! * [`matcher`] one text in progress, and [`fast_forward`] what it must go on with
//! * [`explain`] what may come next in a text, and why something may not, in words
//! * [`saved`] grammars and texts in progress as bytes, and back
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

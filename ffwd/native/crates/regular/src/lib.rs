//! Regular languages, from patterns over Unicode text to automata over the bytes that spell it.
//!
//! The idea: a language is a tree ([`regex::Ast`]) with intersection and complement, and it is
//! never compiled as a whole. A [`expr::Lexeme`] takes the derivative of the tree by the byte that
//! was read, so it builds just the states that some text has reached. Numbers within bounds, long
//! lists of texts and substrings of a text have states of their own, so their size does not matter.
//!
//! Start with these:
//!
//! * [`regex::parse`]: a pattern of the `regex` crate, of ECMA-262 or of Python's `re`, as an `Ast`
//! * [`regex::Ast`]: languages put together; equal ones compare and hash as equal
//! * [`expr::LexemeSpec`]: up to 128 languages that are run side by side, and their spelling: plain
//!   UTF-8, or the inside of a JSON string
//! * [`expr::LexemeStore`]: the lexemes in use, shared between grammars, under a byte budget
//!
//! This crate does not know grammars, schemas or tokens. Back-references are refused, since their
//! languages are not regular. A format that is not regular either is an
//! [`regex::Ast::Approximate`]: all of its texts are valid, but some valid texts are left out.
//!
//! ```
//! use ffwd_bounds::error::LimitExceeded;
//! use ffwd_regular::expr::{LexemeSpec, LexemeStore, Spelling};
//! use ffwd_regular::regex::{parse, Ast, Dialect, PatternOptions};
//!
//! // Words but for `if`, as strings of JSON.
//! let word = parse("[a-z]+", &PatternOptions::new(Dialect::Ecma))?;
//! let name = Ast::intersection([word, Ast::complement(Ast::literal("if"))]);
//! let store = LexemeStore::new(1 << 20);
//! let lexeme = store.get(&LexemeSpec::new(Spelling::JsonString, [name]))?;
//!
//! let accepts = |text: &str| -> Result<bool, LimitExceeded> {
//!     let mut state = lexeme.start();
//!     for byte in text.bytes() {
//!         let Some(next) = lexeme.next(state, byte)? else { return Ok(false) };
//!         state = next;
//!     }
//!     Ok(state.accepts())
//! };
//! assert_eq!([r#""iff""#, r#""if""#, "iff"].map(accepts), [Ok(true), Ok(false), Ok(false)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

pub mod expr;
pub mod regex;

//! Token bitmasks, matchers and forced tokens: an automaton over bytes met with a vocabulary.
//!
//! A grammar allows bytes, and a model writes tokens. This crate walks the automaton of a grammar
//! over the trie of the vocabulary to find the tokens that keep a valid text possible. A bit of a
//! mask is set exactly for those. Masks, states and transitions are computed on demand and shared
//! by all texts of one compiled grammar. Results that depend on a lexeme alone are shared by all
//! grammars of an engine.
//!
//! Start with these types:
//!
//! * [`engine::Engine`] has a vocabulary, its tokenizer, and what all grammars share. It compiles JSON
//!   Schemas, grammars of rules, regular expressions and lists of texts.
//! * [`engine::Compiled`] is one compiled grammar. It is shared by threads and grows as texts are read.
//! * [`matcher::Matcher`] follows one sequence of tokens: it fills masks, accepts tokens, and takes
//!   them back.
//! * [`fast_forward`] returns the forced bytes or tokens, [`events`] reports where spans of the
//!   text begin and end, and [`explain`] says why a token is refused.
//! * [`saved`] turns compiled grammars and matchers into bytes and back, and [`logits`] applies masks
//!   to logits in place.
//!
//! The limits of a grammar bound calls that go through [`matcher::Matcher::bounded`] or a meter of
//! `ffwd-bounds`, and no others.
//!
//! The crate knows no model, no sampling and no Python. The crates below parse schemas and
//! grammars, and pass it a normal form.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use ffwd_engine::engine::{Engine, EngineConfig};
//! use ffwd_engine::{mask::bits, matcher::Matcher};
//! use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};
//!
//! // One token for each byte, and one that ends the output.
//! let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
//! let mut texts: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
//! texts.push(None);
//! let vocabulary = Vocabulary::new(&texts, &[TokenId(256)], None)?;
//!
//! let engine = Arc::new(Engine::new(vocabulary, None, EngineConfig::default()));
//! let mut matcher = Matcher::new(Arc::new(engine.compile_regex("ab+")?))?;
//! assert!(matcher.accept_all(&[TokenId(97), TokenId(98)])?);
//!
//! let mut mask = vec![0; engine.vocabulary().mask_words()];
//! matcher.fill_bitmask(&mut mask)?;
//! // Another `b`, or the end.
//! assert_eq!(bits(&mask).collect::<Vec<_>>(), [TokenId(98), TokenId(256)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

pub mod engine;
pub mod events;
pub mod explain;
pub mod fast_forward;
pub mod logits;
pub mod mask;
pub mod matcher;
pub mod request;
pub mod saved;

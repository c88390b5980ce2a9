//! Tokens: a vocabulary, byte-pair encoding, whole tokenizers, and text from tokens as they come.
//!
//! The idea: a grammar accepts bytes, and a model writes tokens. This crate knows both sides of a
//! token: its bytes, and when a tokenizer would choose it. It encodes in linear time, and counts
//! tokens while a text grows at either end. It says which tokens may follow *canonically*: as the
//! tokenizer itself would continue some text.
//!
//! Start with these:
//!
//! * [`vocabulary::Vocabulary`]: the bytes of each token, which ones end a sequence, and a trie
//! * [`bpe::BpeTable`]: the encoding of one piece of text, compiled from a [`bpe::BpeSpec`]
//! * [`pretokenizer::PreTokenizer`]: the split of a text into pieces before that
//! * [`tokenizer::Tokenizer`]: a whole tokenizer, with its normalizer and special tokens
//! * [`streaming::DecodeStream`] and [`streaming::StopDecoder`]: text from tokens one by one, the
//!   latter up to a stop token or string
//! * [`huggingface::read`]: vocabulary and tokenizer from the text of a tokenizer.json
//! * [`canonical::Canonicality`]: which sequences of tokens the tokenizer would produce
//!
//! This crate does not know grammars or masks of grammars. It asks a language only which bytes may
//! follow ([`canonical::Language`]). It reads the text of a tokenizer.json, but no file.
//! [`tokenizer::Tokenizer::limits`] names what is not exact.
//!
//! ```
//! use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
//! use ffwd_tokenizer::vocabulary::TokenId;
//!
//! // All bytes, and two tokens that are made by merges.
//! let byte = |byte: u8| (TokenId(byte.into()), Box::from([byte]));
//! let mut pieces: Vec<(TokenId, Box<[u8]>)> = (0..=255).map(byte).collect();
//! pieces.extend([(TokenId(256), Box::from(*b"lo")), (TokenId(257), Box::from(*b"low"))]);
//! let table = BpeTable::new(BpeSpec {
//!     base: Base::Bytes,
//!     byte_tokens: std::array::from_fn(|byte| Some(pieces[byte].0)),
//!     pieces,
//!     merges: Merges::Ranked(vec![TokenId(256), TokenId(257)]),
//!     whole_pieces: false,
//!     missing_from: None,
//! })?;
//!
//! let mut tokens = Vec::new();
//! table.encode_piece(b"lowlot", &mut tokens);
//! assert_eq!(tokens, [257, 256, b't'.into()].map(TokenId));
//! assert_eq!(table.count_piece(b"lowlow"), 2);
//! # Ok::<(), ffwd_tokenizer::bpe::BpeError>(())
//! ```

#![deny(missing_docs)]

pub mod bpe;
pub mod canonical;
pub mod huggingface;
pub mod pretokenizer;
pub mod streaming;
pub mod tokenizer;
pub mod vocabulary;

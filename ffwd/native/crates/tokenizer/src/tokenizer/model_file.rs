//! A whole tokenizer.json in one pass: pieces and merges as numbers, everything else as JSON.
//!
//! The library that such files belong to takes half a second to read one, most of it for the tables
//! with which it encodes. What is read here is small: one string with all pieces, and three ids for
//! each merge. Whatever is out of the ordinary is refused, so that the caller asks the library.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::Deserializer;
use serde_json::{Map, Value};

use super::error::TokenizerError;
use super::model_json::{byte_alphabet, fallback_byte, merge_text, MergeText, Text, Writing};
use crate::bpe::{Base, BpeSpec, Merges};
use crate::vocabulary::TokenId;

/// A tokenizer.json whose model is byte-pair encoding.
#[derive(Debug, Default)]
pub struct ModelFile {
    pieces: Pieces,
    merges: Vec<(TokenId, TokenId, TokenId)>,
    /// The rest of the model: its flags.
    model: Map<String, Value>,
    /// The other parts of the file.
    rest: Map<String, Value>,
}

/// The pieces of a model as they are written, in the order of the file.
#[derive(Debug, Default)]
struct Pieces {
    text: String,
    /// Where each piece ends in `text`.
    ends: Vec<u32>,
    ids: Vec<TokenId>,
}

impl Pieces {
    fn push(&mut self, piece: &str, token: TokenId) -> Result<(), &'static str> {
        self.text.push_str(piece);
        self.ends.push(u32::try_from(self.text.len()).map_err(|_| "the pieces are too long")?);
        self.ids.push(token);
        Ok(())
    }

    fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[index] as usize]
    }

    fn iter(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.ids.iter().enumerate().map(|(index, &token)| (self.get(index), token))
    }
}

impl ModelFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not JSON, or not of the form that this reader knows; the message is for developers.
    pub fn read(json: &[u8]) -> Result<Self, TokenizerError> {
        let mut file = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let read = FileSeed(&mut file)
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
            .map_err(|error| TokenizerError::Model(error.to_string()));
        read?;
        Ok(file)
    }

    /// The other parts of the file as JSON: an object without the pieces and merges of its model.
    pub fn shell(&self) -> String {
        let mut shell = self.rest.clone();
        let mut model = self.model.clone();
        model.insert("vocab".into(), Value::Object(Map::new()));
        model.insert("merges".into(), Value::Array(Vec::new()));
        shell.insert("model".into(), Value::Object(model));
        Value::Object(shell).to_string()
    }

    /// The parts of the file beside its model, by their keys.
    pub fn rest(&self) -> &Map<String, Value> {
        &self.rest
    }

    /// The model without its pieces and merges: its flags.
    pub fn model(&self) -> &Map<String, Value> {
        &self.model
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.ids.len()
    }

    /// Whether there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.pieces.ids.is_empty()
    }

    /// The pieces as they are written, with their ids, in the order of the file.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.pieces.iter()
    }

    /// Calls back with the bytes of each piece.
    ///
    /// `byte_fallback`: pieces such as `<0x0A>` are bytes; they are so without regard to case.
    pub fn texts(
        &self,
        writing: &Writing,
        byte_fallback: bool,
        mut found: impl FnMut(TokenId, &[u8]),
    ) {
        let reader = PieceReader::new(writing, byte_fallback);
        let mut bytes = Vec::new();
        for (piece, token) in self.pieces() {
            reader.read(piece, &mut bytes);
            found(token, &bytes);
        }
    }

    /// The pieces and merges for a table, without those of `exclude`; see `read_model`.
    pub fn spec(
        &self,
        writing: &Writing,
        exclude: &[TokenId],
        missing_from: Option<TokenId>,
    ) -> BpeSpec {
        let flag = |name: &str| self.model.get(name).and_then(Value::as_bool).unwrap_or(false);
        let width = self.pieces.ids.iter().map(|token| token.index() + 1).max().unwrap_or(0);
        let mut is_piece = vec![true; width];
        for token in exclude {
            if let Some(is_piece) = is_piece.get_mut(token.index()) {
                *is_piece = false;
            }
        }
        let mut spec = BpeSpec {
            base: match writing {
                Writing::ByteLevel => Base::Bytes,
                Writing::Characters(_) => Base::Characters,
            },
            pieces: Vec::with_capacity(self.len()),
            byte_tokens: [None; 256],
            merges: Merges::Listed(Vec::new()),
            whole_pieces: flag("ignore_merges"),
            missing_from,
        };
        let byte_fallback = flag("byte_fallback");
        let alphabet = byte_alphabet();
        for (piece, token) in self.pieces() {
            if !is_piece[token.index()] {
                continue;
            }
            is_piece[token.index()] = match writing {
                Writing::ByteLevel => {
                    super::model_json::byte_level(&mut spec, token, piece, &alphabet)
                }
                Writing::Characters(replacements) => super::model_json::characters(
                    &mut spec,
                    token,
                    piece,
                    replacements,
                    byte_fallback,
                ),
            };
        }
        let all = |merge: &&(TokenId, TokenId, TokenId)| {
            [merge.0, merge.1, merge.2].iter().all(|token| is_piece[token.index()])
        };
        spec.merges = Merges::Listed(self.merges.iter().filter(all).copied().collect());
        spec
    }
}

/// Reads the bytes of pieces, as the decoder of a tokenizer does.
pub struct PieceReader<'w> {
    writing: &'w Writing,
    byte_fallback: bool,
    alphabet: FxHashMap<char, u8>,
}

impl<'w> PieceReader<'w> {
    /// For a notation; `byte_fallback` as in [`ModelFile::texts`].
    pub fn new(writing: &'w Writing, byte_fallback: bool) -> Self {
        Self { writing, byte_fallback, alphabet: byte_alphabet() }
    }

    /// Replaces `bytes` by those of a piece.
    pub fn read(&self, piece: &str, bytes: &mut Vec<u8>) {
        bytes.clear();
        match self.writing {
            Writing::ByteLevel => {
                let in_alphabet = piece.chars().all(|character| {
                    let byte = self.alphabet.get(&character);
                    bytes.extend(byte);
                    byte.is_some()
                });
                if !in_alphabet {
                    bytes.clear();
                    bytes.extend_from_slice(piece.as_bytes());
                }
            }
            Writing::Characters(replacements) => {
                let text = replaced(piece, replacements);
                match self.byte_fallback.then(|| any_fallback_byte(&text)).flatten() {
                    Some(byte) => bytes.push(byte),
                    None => bytes.extend_from_slice(text.as_bytes()),
                }
            }
        }
    }
}

fn replaced(piece: &str, replacements: &[(String, String)]) -> String {
    let mut text = piece.to_owned();
    for (written, meant) in replacements {
        if text.contains(written) {
            text = text.replace(written, meant);
        }
    }
    text
}

/// As the decoders read it: with digits of either case.
fn any_fallback_byte(piece: &str) -> Option<u8> {
    fallback_byte(&piece.get(..3).map(|start| [start, &piece[3..].to_ascii_uppercase()].concat())?)
}

struct FileSeed<'f>(&'f mut ModelFile);

impl<'de> DeserializeSeed<'de> for FileSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the object of a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_model = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "model" {
                if std::mem::replace(&mut has_model, true) {
                    return Err(A::Error::custom("there are two models"));
                }
                map.next_value_seed(ModelSeed(self.0))?;
            } else {
                let value = map.next_value()?;
                if self.0.rest.insert(key, value).is_some() {
                    return Err(A::Error::custom("a key occurs twice"));
                }
            }
        }
        match self.0.model.get("type").and_then(Value::as_str) {
            Some("BPE") if has_model => Ok(()),
            _ => Err(A::Error::custom("the model is not named BPE")),
        }
    }
}

struct ModelSeed<'f>(&'f mut ModelFile);

impl<'de> DeserializeSeed<'de> for ModelSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ModelSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the model of a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let file = self.0;
        let (mut has_pieces, mut has_merges) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "vocab" if !has_pieces => {
                    has_pieces = true;
                    map.next_value_seed(PiecesSeed(&mut file.pieces))?;
                }
                "merges" if has_pieces && !has_merges => {
                    has_merges = true;
                    let seed = MergesSeed { pieces: &file.pieces, merges: &mut file.merges };
                    map.next_value_seed(seed)?;
                }
                "vocab" | "merges" => {
                    return Err(A::Error::custom("pieces do not come once, before the merges"));
                }
                _ => {
                    let value = map.next_value()?;
                    if file.model.insert(key, value).is_some() {
                        return Err(A::Error::custom("a key of the model occurs twice"));
                    }
                }
            }
        }
        match has_merges {
            true => Ok(()),
            false => Err(A::Error::custom("the model has no vocabulary or no merges")),
        }
    }
}

struct PiecesSeed<'f>(&'f mut Pieces);

impl<'de> DeserializeSeed<'de> for PiecesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PiecesSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object from pieces to ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((Text(piece), id)) = map.next_entry::<Text<'de>, u32>()? {
            self.0.push(&piece, TokenId(id)).map_err(A::Error::custom)?;
        }
        let largest = self.0.ids.iter().map(|token| token.index()).max().unwrap_or(0);
        if largest >= 1 << 22 {
            return Err(A::Error::custom("an id is too large"));
        }
        let mut taken = vec![false; largest + 1];
        let taken_twice = |token: &TokenId| std::mem::replace(&mut taken[token.index()], true);
        if self.0.ids.iter().any(taken_twice) {
            return Err(A::Error::custom("an id occurs twice"));
        }
        Ok(())
    }
}

struct MergesSeed<'f> {
    pieces: &'f Pieces,
    merges: &'f mut Vec<(TokenId, TokenId, TokenId)>,
}

impl<'de> DeserializeSeed<'de> for MergesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MergesSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the merges of a tokenizer.json")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let pieces = self.pieces;
        let mut places: FxHashMap<&str, u32> = FxHashMap::default();
        places.reserve(pieces.ids.len());
        for index in 0..pieces.ids.len() {
            if places.insert(pieces.get(index), index as u32).is_some() {
                return Err(A::Error::custom("a piece occurs twice"));
            }
        }
        let find = |piece: &str| {
            places.get(piece).copied().ok_or_else(|| A::Error::custom("a merge names no piece"))
        };
        let mut joined = String::new();
        // Merges mostly come in the order of what they make, often several with the same result.
        let mut last = 0;
        while let Some(merge) = list.next_element::<MergeText<'de>>()? {
            let Some((left, right)) = merge_text(&merge) else {
                return Err(A::Error::custom("a merge does not name two pieces"));
            };
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let near = (last..last + 2)
                .find(|&index| index < pieces.ids.len() && pieces.get(index) == joined);
            last = near.map_or_else(|| find(&joined).map(|place| place as usize), Ok)?;
            let id = |place: u32| pieces.ids[place as usize];
            self.merges.push((id(find(left)?), id(find(right)?), pieces.ids[last]));
        }
        Ok(())
    }
}

//! The ids of a tokenizer, with their texts and kinds.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::Value;

use super::decoder::Notation;
use super::kinds::{is_placeholder, AddedToken, Kind};
use super::HuggingFaceError;
use crate::tokenizer::{ModelFile, PieceReader, Writing};
use crate::vocabulary::TokenId;

/// The most ids of a tokenizer.
const MAX_IDS: usize = 1 << 22;

/// The ids of a tokenizer, before its end tokens are decided.
pub(super) struct TokenList {
    /// By id; `None` for what is no text.
    pub texts: Vec<Option<Box<[u8]>>>,
    pub kinds: Vec<Kind>,
    /// With their kinds; `None` for one that only repeats a piece.
    pub added: Vec<(TokenId, AddedToken, Option<Kind>)>,
}

impl TokenList {
    /// Reads pieces and added tokens.
    pub fn read(
        file: &ModelFile,
        listed: &Value,
        notation: &Notation,
    ) -> Result<Self, HuggingFaceError> {
        let added = added_tokens(file, listed)?;
        let largest = |ids: &mut dyn Iterator<Item = TokenId>| ids.map(|id| id.index() + 1).max();
        let pieces = largest(&mut file.pieces().map(|(_, token)| token)).unwrap_or(0);
        let size = largest(&mut added.iter().map(|(id, ..)| *id)).unwrap_or(0).max(pieces);
        if size == 0 || size > MAX_IDS {
            return Err(HuggingFaceError::Corrupt(format!(
                "it has {size} ids: 1 to {MAX_IDS} can be"
            )));
        }
        let mut list =
            Self { texts: vec![None; size], kinds: vec![Kind::Unused; size], added: Vec::new() };
        file.texts(&notation.writing, notation.byte_fallback, |token, text| {
            if !text.is_empty() {
                list.texts[token.index()] = Some(text.into());
                list.kinds[token.index()] = Kind::Text;
            }
        });
        for (piece, token) in file.pieces() {
            if piece.starts_with(['<', '[']) && is_placeholder(piece) {
                list.kinds[token.index()] = Kind::Unused;
            }
        }
        let reader = PieceReader::new(&notation.writing, notation.byte_fallback);
        let mut bytes = Vec::new();
        for (id, token, in_model) in added {
            reader.read(&token.content, &mut bytes);
            let kind = token.kind(&bytes, in_model);
            if let Some(kind) = kind {
                list.kinds[id.index()] = kind;
                list.texts[id.index()] = Some(bytes.as_slice().into());
            }
            list.added.push((id, token, kind));
        }
        if let Some(unknown) = list.unknown(file) {
            list.kinds[unknown.index()] = Kind::Unknown;
        }
        for (text, kind) in list.texts.iter_mut().zip(&list.kinds) {
            if *kind != Kind::Text {
                *text = None;
            }
        }
        Ok(list)
    }

    /// The token for text without one.
    fn unknown(&self, file: &ModelFile) -> Option<TokenId> {
        let name = file.model().get("unk_token")?.as_str()?;
        let added = self.added.iter().find(|(_, token, _)| token.content == name);
        let piece = || file.pieces().find(|(piece, _)| *piece == name).map(|(_, token)| token);
        added.map(|(id, ..)| *id).or_else(piece)
    }

    /// The added tokens of these names.
    pub fn known_ends(&self, names: &[&str]) -> Vec<TokenId> {
        let named = self.added.iter().filter(|(_, token, _)| names.contains(&&*token.content));
        named.map(|(id, ..)| *id).collect()
    }

    /// Whether the only bytes without a token are those that no text has.
    ///
    /// Many vocabularies lack them. For others the library has an unknown token, or drops the byte.
    pub fn spell_all_text(&self, writing: &Writing) -> bool {
        let mut single = [false; 256];
        for text in self.texts.iter().flatten() {
            if let [byte] = **text {
                single[usize::from(byte)] = true;
            }
        }
        let never = |byte: u8| matches!(byte, 0xC0 | 0xC1 | 0xF5..=0xFF);
        *writing == Writing::ByteLevel
            && (0..=255u8).all(|byte| single[usize::from(byte)] || never(byte))
    }
}

/// The added tokens in the order of their ids, and whether each is a piece of the model.
///
/// The library keeps the ids of those that are pieces, and numbers the others from the number of
/// pieces on, whatever ids the file has. A file with other ids is rejected.
fn added_tokens(
    file: &ModelFile,
    listed: &Value,
) -> Result<Vec<(TokenId, AddedToken, bool)>, HuggingFaceError> {
    let corrupt = |message: String| HuggingFaceError::Corrupt(message);
    let listed = match listed {
        Value::Null => Vec::new(),
        _ => Vec::<AddedToken>::deserialize(listed)
            .map_err(|error| corrupt(format!("`added_tokens`: {error}")))?,
    };
    let mut names: FxHashSet<&str> = FxHashSet::default();
    for token in &listed {
        if token.content.is_empty() || !names.insert(&token.content) {
            return Err(corrupt(format!(
                "the added token {:?} ({}) is empty or occurs twice",
                token.content, token.id
            )));
        }
    }
    let mut ids: FxHashMap<&str, TokenId> = FxHashMap::default();
    let mut taken: FxHashSet<TokenId> = FxHashSet::default();
    for (piece, token) in file.pieces() {
        if let Some(&name) = names.get(piece) {
            ids.insert(name, token);
        }
        if token.index() >= file.len() {
            taken.insert(token);
        }
    }
    let mut free = file.len() as u32;
    let mut added = Vec::with_capacity(listed.len());
    for token in &listed {
        let piece = ids.get(&*token.content).copied();
        let expected = piece.unwrap_or(TokenId(free));
        if token.id != expected.0 || (piece.is_none() && taken.contains(&expected)) {
            return Err(corrupt(format!(
                "the added token {:?} has the id {}, and the tokenizers library gives it {expected}",
                token.content, token.id
            )));
        }
        free += u32::from(piece.is_none());
        added.push((expected, token.clone(), piece.is_some()));
    }
    added.sort_by_key(|(id, ..)| *id);
    Ok(added)
}

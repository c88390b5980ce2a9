//! The `model` section of a tokenizer.json: pieces and merges as text, read into a [`BpeSpec`].

use std::borrow::Cow;
use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::TokenizerError;
use crate::bpe::{Base, BpeSpec, Merges};
use crate::vocabulary::TokenId;

/// How the pieces of a model write text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writing {
    /// One character of GPT-2's alphabet for each byte.
    ByteLevel,
    /// Verbatim, except that these strings stand for others: `▁` for a space.
    Characters(Vec<(String, String)>),
}

/// The hundreds of thousands of pieces and merges borrow from the JSON text if possible.
#[derive(Deserialize)]
struct Section<'a> {
    #[serde(borrow)]
    model: Option<Box<Section<'a>>>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: Option<VocabularyJson<'a>>,
    #[serde(borrow)]
    merges: Option<Vec<MergeText<'a>>>,
    dropout: Option<f64>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

/// A string of the JSON text.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Both ways in which the file writes a merge.
pub(super) enum MergeText<'a> {
    Pair(Text<'a>, Text<'a>),
    Line(Cow<'a, str>),
}

/// The two pieces of a merge.
pub(super) fn merge_text<'m>(merge: &'m MergeText<'_>) -> Option<(&'m str, &'m str)> {
    merge.parts()
}

impl MergeText<'_> {
    fn parts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(left, right) => Some((&left.0, &right.0)),
            Self::Line(line) => line.split_once(' '),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MergeText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MergeVisitor;
        impl<'de> Visitor<'de> for MergeVisitor {
            type Value = MergeText<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("two pieces, as a list or with a space between them")
            }

            fn visit_borrowed_str<E>(self, line: &'de str) -> Result<MergeText<'de>, E> {
                Ok(MergeText::Line(Cow::Borrowed(line)))
            }

            fn visit_str<E>(self, line: &str) -> Result<MergeText<'de>, E> {
                Ok(MergeText::Line(Cow::Owned(line.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> Result<MergeText<'de>, A::Error> {
                let (Some(left), Some(right), None) = (
                    sequence.next_element()?,
                    sequence.next_element()?,
                    sequence.next_element::<IgnoredAny>()?,
                ) else {
                    return Err(A::Error::custom("a merge does not name two pieces"));
                };
                Ok(MergeText::Pair(left, right))
            }
        }
        deserializer.deserialize_any(MergeVisitor)
    }
}

enum VocabularyJson<'a> {
    Ids(Vec<(Text<'a>, u32)>),
    /// A list with scores, which no BPE model has.
    Scores,
}

impl<'de: 'a, 'a> Deserialize<'de> for VocabularyJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PiecesVisitor;
        impl<'de> Visitor<'de> for PiecesVisitor {
            type Value = VocabularyJson<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object from pieces to ids")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<VocabularyJson<'de>, A::Error> {
                let mut pieces = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some(entry) = map.next_entry()? {
                    pieces.push(entry);
                }
                Ok(VocabularyJson::Ids(pieces))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> Result<VocabularyJson<'de>, A::Error> {
                while sequence.next_element::<IgnoredAny>()?.is_some() {}
                Ok(VocabularyJson::Scores)
            }
        }
        deserializer.deserialize_any(PiecesVisitor)
    }
}

fn refused(message: impl Into<String>) -> TokenizerError {
    TokenizerError::Model(message.into())
}

/// Reads the model of a tokenizer.json, or that section alone.
///
/// `exclude`: ids that are no pieces, such as special tokens of the vocabulary; merges that need
/// them are dropped. So are pieces that a byte-level model writes outside of its alphabet, because
/// no text becomes them. `missing_from`: see [`BpeSpec`].
pub fn read_model(
    json: &[u8],
    writing: &Writing,
    exclude: &[TokenId],
    missing_from: Option<TokenId>,
) -> Result<BpeSpec, TokenizerError> {
    let read: Section = serde_json::from_slice(json)
        .map_err(|error| refused(format!("the model cannot be read: {error}")))?;
    let model = match read.model {
        Some(model) => *model,
        None => read,
    };
    check(&model)?;
    let (Some(VocabularyJson::Ids(vocabulary)), Some(merges)) = (&model.vocab, &model.merges)
    else {
        return Err(refused("the model has no vocabulary or no merges"));
    };
    let excluded: FxHashSet<u32> = exclude.iter().map(|token| token.0).collect();
    let mut spec = BpeSpec {
        base: match writing {
            Writing::ByteLevel => Base::Bytes,
            Writing::Characters(_) => Base::Characters,
        },
        pieces: Vec::with_capacity(vocabulary.len()),
        byte_tokens: [None; 256],
        merges: Merges::Listed(Vec::new()),
        whole_pieces: model.ignore_merges,
        missing_from,
    };
    // The id of each piece, or `None` for one that the table lacks.
    let mut ids: FxHashMap<&str, Option<TokenId>> = FxHashMap::default();
    ids.reserve(vocabulary.len());
    let alphabet = byte_alphabet();
    for (Text(piece), id) in vocabulary {
        let token = TokenId(*id);
        let known = !excluded.contains(id) && {
            match writing {
                Writing::ByteLevel => byte_level(&mut spec, token, piece, &alphabet),
                Writing::Characters(replacements) => {
                    characters(&mut spec, token, piece, replacements, model.byte_fallback)
                }
            }
        };
        ids.insert(piece, known.then_some(token));
    }
    spec.merges = Merges::Listed(listed(merges, &ids)?);
    Ok(spec)
}

fn check(model: &Section<'_>) -> Result<(), TokenizerError> {
    if matches!(model.vocab, Some(VocabularyJson::Scores))
        || model.kind.as_deref() == Some("Unigram")
    {
        return Err(refused("a Unigram model is not BPE"));
    }
    if let Some(kind) = model.kind.as_deref().filter(|&kind| kind != "BPE") {
        return Err(refused(format!("a {kind} model is not BPE")));
    }
    let named = |affix: &Option<String>| affix.as_deref().is_some_and(|affix| !affix.is_empty());
    if model.dropout.is_some_and(|rate| rate > 0.0) {
        return Err(refused("the model drops merges at random (dropout)"));
    }
    if named(&model.continuing_subword_prefix) {
        return Err(refused("the model marks pieces within words (continuing_subword_prefix)"));
    }
    if named(&model.end_of_word_suffix) {
        return Err(refused("the model marks pieces at the end of words (end_of_word_suffix)"));
    }
    Ok(())
}

pub(super) fn byte_level(
    spec: &mut BpeSpec,
    token: TokenId,
    piece: &str,
    alphabet: &FxHashMap<char, u8>,
) -> bool {
    let bytes: Option<Vec<u8>> = piece.chars().map(|c| alphabet.get(&c).copied()).collect();
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return false };
    if let [byte] = *bytes {
        spec.byte_tokens[usize::from(byte)] = Some(token);
    }
    spec.pieces.push((token, bytes.into()));
    true
}

pub(super) fn characters(
    spec: &mut BpeSpec,
    token: TokenId,
    piece: &str,
    replacements: &[(String, String)],
    byte_fallback: bool,
) -> bool {
    if piece.is_empty() {
        return false;
    }
    if let Some(byte) = byte_fallback.then(|| fallback_byte(piece)).flatten() {
        spec.byte_tokens[usize::from(byte)] = Some(token);
        return true;
    }
    let mut text = piece.to_owned();
    for (written, meant) in replacements {
        if text.contains(written) {
            text = text.replace(written, meant);
        }
    }
    spec.pieces.push((token, text.into_bytes().into()));
    true
}

/// The byte of a piece such as `<0x0A>`.
pub(super) fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let upper = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    (digits.len() == 2 && digits.bytes().all(upper))
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

fn listed(
    merges: &[MergeText<'_>],
    ids: &FxHashMap<&str, Option<TokenId>>,
) -> Result<Vec<(TokenId, TokenId, TokenId)>, TokenizerError> {
    let mut out = Vec::with_capacity(merges.len());
    let mut joined = String::new();
    for (rank, merge) in merges.iter().enumerate() {
        let (left, right) = merge
            .parts()
            .ok_or_else(|| refused(format!("merge {rank} does not name two pieces")))?;
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        let id = |piece: &str| {
            ids.get(piece).copied().ok_or_else(|| {
                refused(format!("merge {rank} needs {piece:?}, which is no piece of the model"))
            })
        };
        if let (Some(left), Some(right), Some(merged)) = (id(left)?, id(right)?, id(&joined)?) {
            out.push((left, right, merged));
        }
    }
    Ok(out)
}

/// GPT-2's alphabet: printable bytes stand for themselves, the others for characters from U+0100.
pub(super) fn byte_alphabet() -> FxHashMap<char, u8> {
    let mut next = 0x100u32;
    (0..=255u8)
        .map(|byte| {
            let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
            let written = if printable {
                char::from(byte)
            } else {
                next += 1;
                char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
            };
            (written, byte)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, writing: &Writing, exclude: &[u32]) -> Result<BpeSpec, String> {
        let exclude: Vec<TokenId> = exclude.iter().copied().map(TokenId).collect();
        read_model(json.as_bytes(), writing, &exclude, None).map_err(|error| error.to_string())
    }

    fn merges(spec: &BpeSpec) -> Vec<(u32, u32, u32)> {
        match &spec.merges {
            Merges::Listed(listed) => listed.iter().map(|&(a, b, c)| (a.0, b.0, c.0)).collect(),
            Merges::Ranked(_) => panic!("a tokenizer.json lists its merges"),
        }
    }

    #[test]
    fn a_byte_level_model_in_both_forms_of_merges() {
        for written in [r#"["Ġ a"]"#, r#"[["Ġ", "a"]]"#] {
            let json = format!(
                r#"{{"version": "1.0", "added_tokens": [{{"id": 3}}], "model": {{"type": "BPE",
                "vocab": {{"a": 0, "Ġ": 1, "Ġa": 2, "日": 3}}, "merges": {written},
                "ignore_merges": true, "dropout": null}}}}"#
            );
            let spec = read(&json, &Writing::ByteLevel, &[]).unwrap();
            assert_eq!(spec.pieces[2], (TokenId(2), b" a".to_vec().into()));
            assert_eq!(spec.pieces.len(), 3);
            assert_eq!(spec.byte_tokens[usize::from(b' ')], Some(TokenId(1)));
            assert_eq!(merges(&spec), [(1, 0, 2)]);
            assert!(spec.whole_pieces);
        }
    }

    #[test]
    fn characters_with_byte_fallback() {
        let json = r#"{"vocab": {"▁": 0, "a": 1, "▁a": 2, "<0x0A>": 3, "</s>": 4, "<0x0a>": 5},
            "merges": ["▁ a"], "byte_fallback": true}"#;
        let writing = Writing::Characters(vec![("▁".into(), " ".into())]);
        let spec = read(json, &writing, &[4]).unwrap();
        let pieces: Vec<(u32, &[u8])> = spec.pieces.iter().map(|(t, b)| (t.0, &**b)).collect();
        assert_eq!(pieces, [(0, b" ".as_slice()), (1, b"a"), (2, b" a"), (5, b"<0x0a>")]);
        assert_eq!(spec.byte_tokens[10], Some(TokenId(3)));
        assert_eq!(merges(&spec), [(0, 1, 2)]);
    }

    #[test]
    fn what_is_not_bpe_is_refused_by_name() {
        let refusals = [
            (r#"{"type": "Unigram", "vocab": [["a", -1.5]]}"#, "Unigram"),
            (r#"{"vocab": [["a", -1.5]]}"#, "Unigram"),
            (r#"{"type": "WordPiece", "vocab": {"a": 0}}"#, "WordPiece"),
            (r#"{"vocab": {"a": 0}, "merges": [], "dropout": 0.1}"#, "dropout"),
            (r#"{"vocab": {}, "merges": [], "end_of_word_suffix": "</w>"}"#, "end_of_word_suffix"),
            (r#"{"vocab": {"a": 0}, "merges": ["a b"]}"#, "\"b\""),
            (r#"{"vocab": {"a": 0}, "merges": ["ab"]}"#, "two pieces"),
            (r#"{"vocab": {"a": 0}}"#, "no merges"),
            (r#"{"vocab": {"a": -1}, "merges": []}"#, "cannot be read"),
            ("[", "cannot be read"),
        ];
        for (json, named) in refusals {
            let error = read(json, &Writing::ByteLevel, &[]).err().unwrap_or_default();
            assert!(error.contains(named), "{json}: {error}");
        }
    }

    #[test]
    fn merges_of_what_is_excluded_are_left_out() {
        let json = r#"{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}"#;
        let spec = read(json, &Writing::ByteLevel, &[2]).unwrap();
        assert_eq!(spec.pieces.len(), 2);
        assert!(merges(&spec).is_empty());
    }

    #[test]
    fn bytes_without_a_token_have_ids_of_their_own() {
        let json = r#"{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}"#;
        assert!(crate::bpe::BpeTable::new(read(json, &Writing::ByteLevel, &[]).unwrap()).is_err());

        let spec = read_model(json.as_bytes(), &Writing::ByteLevel, &[], Some(TokenId(7)));
        let table = crate::bpe::BpeTable::new(spec.unwrap()).unwrap();
        assert_eq!(table.width(), 7);
        assert_eq!(table.missing_byte(b"abba"), None);
        assert_eq!(table.missing_byte(b"ab ba"), Some((2, b' ')));

        let spec = read_model(json.as_bytes(), &Writing::ByteLevel, &[], Some(TokenId(1)));
        assert!(crate::bpe::BpeTable::new(spec.unwrap()).is_err(), "the ids are taken");
        let characters = Writing::Characters(vec![]);
        let spec = read_model(json.as_bytes(), &characters, &[], Some(TokenId(7)));
        assert!(crate::bpe::BpeTable::new(spec.unwrap()).is_err(), "characters have no bytes");
    }
}

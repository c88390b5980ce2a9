//! A whole tokenizer.json: its vocabulary for grammars, and its tokenizer.
//!
//! [`read`] takes the text of a file whose model is byte-pair encoding, byte-level (GPT-2, Llama 3,
//! Qwen) or with `▁` for spaces and byte fallback (Llama 2, Mistral). It decides as
//! `ffwd.tokenizer.from_huggingface` of the Python package does: which tokens are text, which bytes
//! they have, and which end an output.

mod decoder;
mod file;
mod kinds;
mod stages;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::bpe::BpeTable;
use crate::pretokenizer::PreTokenizerError;
use crate::tokenizer::{
    EncodeOptions, PartOptions, SpecialToken, Tokenizer, TokenizerError, TokenizerParts, Writing,
};
use crate::vocabulary::{TokenId, Vocabulary, VocabularyError};

use kinds::Kind;
use stages::Chain;
use tokens::TokenList;

const SUPPORTED: &str = "supported is BPE (byte-level, or with ▁ for spaces and byte fallback)";

/// The names of tokens that end the output of published models.
const END_NAMES: [&str; 14] = [
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
];

/// Why a tokenizer.json gives no vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HuggingFaceError {
    /// The text is not JSON, or its parts contradict each other.
    #[error("this is not a tokenizer.json that can be read: {0}")]
    Corrupt(String),
    /// A part of the tokenizer is not supported; the text names it.
    #[error("{0}")]
    Unsupported(String),
    /// The end tokens or the width do not fit the tokenizer.
    #[error("{0}")]
    Tokens(String),
    /// The tokens form no usable vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
}

impl From<TokenizerError> for HuggingFaceError {
    fn from(error: TokenizerError) -> Self {
        match error {
            TokenizerError::PreTokenizer(error) => error.into(),
            other => Self::Corrupt(other.to_string()),
        }
    }
}

impl From<PreTokenizerError> for HuggingFaceError {
    fn from(error: PreTokenizerError) -> Self {
        Self::Unsupported(format!("the tokenizer's pre-tokenizer is not supported: {error}"))
    }
}

/// What a tokenizer.json says.
pub struct HuggingFace {
    /// The bytes of the tokens, and the tokens that end an output.
    pub vocabulary: Vocabulary,
    /// Texts to tokens and back.
    pub tokenizer: Arc<Tokenizer>,
}

/// Reads the text of a tokenizer.json.
///
/// `ends`: the tokens that end an output; `None` for the added tokens with a well-known name, such
/// as `</s>` and `<|im_end|>`. `width`: the number of the model's logits; `None` for the tokenizer's
/// own number of ids.
///
/// # Errors
/// The text is not a tokenizer.json, a part of it is not supported, or ends and width do not fit it.
pub fn read(
    json: &[u8],
    ends: Option<&[TokenId]>,
    width: Option<usize>,
) -> Result<HuggingFace, HuggingFaceError> {
    let file = file::read(json)?;
    let part = |name: &str| file.rest().get(name).unwrap_or(&Value::Null);
    let notation = decoder::read(part("decoder"))?;
    let tokens = TokenList::read(&file, part("added_tokens"), &notation)?;
    let width = width.unwrap_or(tokens.texts.len());
    let ends = ends.map_or_else(|| tokens.known_ends(&END_NAMES), <[TokenId]>::to_vec);
    if ends.is_empty() {
        return Err(HuggingFaceError::Tokens(
            "nothing says which tokens end the output: pass `end_tokens`, for instance those of the \
             model's generation_config.json"
                .into(),
        ));
    }
    let vocabulary = vocabulary(&tokens, &ends, width)?;

    let mut chain = Chain::new(&notation);
    decoder::steps(part("normalizer"), "normalizers", &mut |step| chain.normalize(step))?;
    decoder::steps(part("pre_tokenizer"), "pretokenizers", &mut |step| chain.cut(step))?;
    let stages = chain.finish()?;
    let specials = tokens.added.iter().filter_map(|(id, added, kind)| {
        kind.map(|kind| SpecialToken {
            id: *id,
            content: added.content.clone(),
            text: kind == Kind::Text,
            single_word: added.single_word,
            lstrip: added.lstrip,
            rstrip: added.rstrip,
            normalized: added.normalized,
        })
    });
    let spec = file.spec(
        &notation.writing,
        &excluded(&file, &tokens, &notation.writing)?,
        tokens.spell_all_text(&notation.writing).then_some(TokenId(tokens.texts.len() as u32)),
    );
    let tokenizer = Tokenizer::new(TokenizerParts {
        table: Arc::new(BpeTable::new(spec).map_err(TokenizerError::from)?),
        stages: stages.stages,
        specials: specials.collect(),
        normalizer: stages.normalizer,
        dummy_space: stages.dummy_space,
        limits: Vec::new(),
        vocab_size: Some(tokens.texts.len()),
    })?;
    if tokenizer.limits().is_empty() {
        check_same(&vocabulary, &tokenizer)?;
    }
    check_ends(&tokens, &ends, &tokenizer)?;
    Ok(HuggingFace { vocabulary, tokenizer: Arc::new(tokenizer) })
}

fn vocabulary(
    tokens: &TokenList,
    ends: &[TokenId],
    width: usize,
) -> Result<Vocabulary, HuggingFaceError> {
    let texts: Vec<Option<&[u8]>> = tokens.texts.iter().map(Option::as_deref).collect();
    if let Some(lost) = texts.iter().skip(width).position(Option::is_some) {
        return Err(HuggingFaceError::Tokens(format!(
            "the tokenizer has text tokens past the model's logits: `width` is {width}, and token \
             {} is text; pass the width of the logits",
            width + lost
        )));
    }
    let read = Vocabulary::new(&texts[..width.min(texts.len())], ends, Some(width))?;
    let named = tokens.added.iter().filter(|(id, _, kind)| {
        let other = !matches!(kind, None | Some(Kind::Text));
        let unknown = tokens.kinds[id.index()] == Kind::Unknown;
        other && id.index() < width && (!unknown || ends.contains(id))
    });
    Ok(read.with_names(named.map(|(id, added, _)| (added.content.clone(), *id))))
}

/// The ids that are no pieces: what is no text, and what no text is encoded as, such as ` the`
/// beside `▁the`.
fn excluded(
    file: &crate::tokenizer::ModelFile,
    tokens: &TokenList,
    writing: &Writing,
) -> Result<Vec<TokenId>, HuggingFaceError> {
    let mut ids: Vec<TokenId> = (0u32..)
        .zip(&tokens.kinds)
        .filter(|(_, &kind)| kind != Kind::Text)
        .map(|(id, _)| TokenId(id))
        .collect();
    // The alphabet of bytes needs none of this: pieces outside of it are left out anyway.
    if let Writing::Characters(replacements) = writing {
        for (written, meant) in replacements {
            if written.chars().count() != 1 || meant.chars().count() != 1 {
                return Err(HuggingFaceError::Unsupported(format!(
                    "the tokenizer writes {meant:?} as {written:?}: supported is one character for \
                     one"
                )));
            }
            let never = file.pieces().filter(|(piece, _)| piece.contains(meant.as_str()));
            ids.extend(never.map(|(_, token)| token));
        }
    }
    Ok(ids)
}

/// Rejects a tokenizer that encodes a token for other bytes than its decoder writes.
fn check_same(vocabulary: &Vocabulary, tokenizer: &Tokenizer) -> Result<(), HuggingFaceError> {
    for token in (0..vocabulary.width() as u32).map(TokenId) {
        let (text, encoded) = (vocabulary.text(token), tokenizer.table().text(token));
        if !text.is_empty() && !encoded.is_empty() && text != encoded {
            return Err(HuggingFaceError::Corrupt(format!(
                "token {token} is decoded as {:?} and encoded for {:?}",
                String::from_utf8_lossy(text),
                String::from_utf8_lossy(encoded)
            )));
        }
    }
    Ok(())
}

/// Rejects an end token that is how the tokenizer encodes a text.
fn check_ends(
    tokens: &TokenList,
    ends: &[TokenId],
    tokenizer: &Tokenizer,
) -> Result<(), HuggingFaceError> {
    let part = PartOptions { normalize: false, dummy_space: false, ..PartOptions::default() };
    let options = EncodeOptions { part, ..EncodeOptions::default() };
    for &end in ends {
        let Some(Some(text)) = tokens.texts.get(end.index()) else { continue };
        let encoded = std::str::from_utf8(text).ok();
        let encoded = encoded.and_then(|text| tokenizer.encode(text.as_bytes(), &options).ok());
        if encoded.is_some_and(|encoded| encoded == [end]) {
            return Err(HuggingFaceError::Tokens(format!(
                "token {end} cannot end the output, for it is how the tokenizer encodes the text \
                 {:?}",
                String::from_utf8_lossy(text)
            )));
        }
    }
    Ok(())
}

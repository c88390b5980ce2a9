//! Sequences as bytes.

use std::sync::Arc;

use super::bytes::{Reader, Writer};
use super::{recipe, seal, unseal, Fingerprint, SavedError, SavedKind};
use crate::engine::Compiled;
use crate::matcher::{Beginning, Close, Matcher, Opening};
use ffwd_tokenizer::vocabulary::TokenId;

/// Returns a sequence as bytes: its grammar, its start, and its tokens.
///
/// # Errors
/// The grammar cannot be saved.
pub fn save(matcher: &Matcher) -> Result<Vec<u8>, SavedError> {
    let compiled = matcher.compiled();
    let mut writer = Writer::default();
    writer.0.extend_from_slice(&recipe::fingerprint(compiled.recipe())?.0.to_le_bytes());
    let Beginning { recent, prefix, prefill, opening, canonical, max_tokens } = matcher.began();
    writer.flag(canonical);
    writer.optional(max_tokens.map(|max| u32::try_from(max).unwrap_or(u32::MAX)));
    write_tokens(&mut writer, &recent);
    writer.bytes(&prefix);
    writer.bytes(&prefill);
    match &opening {
        None => writer.byte(0),
        Some(Opening { close, controls }) => {
            match close {
                Close::Tokens(tokens) => {
                    writer.byte(1);
                    write_tokens(&mut writer, tokens);
                }
                Close::Text(text) => {
                    writer.byte(2);
                    writer.bytes(text);
                }
            }
            write_tokens(&mut writer, controls);
        }
    }
    write_tokens(&mut writer, matcher.tokens());
    let vocabulary = Fingerprint::of_vocabulary(compiled.engine.vocabulary());
    Ok(seal(SavedKind::Text, vocabulary, &writer.0))
}

/// Restores the sequence of the bytes that [`save`] returned, at the same position.
///
/// # Errors
/// As [`recipe::load`]; the text was in another grammar, or this one refuses it; or its masks were
/// canonical, and the vocabulary has no exact tokenizer.
pub fn load(bytes: &[u8], compiled: Arc<Compiled>) -> Result<Matcher, SavedError> {
    let vocabulary = Fingerprint::of_vocabulary(compiled.engine.vocabulary());
    let mut reader = unseal(bytes, SavedKind::Text, vocabulary)?;
    for byte in recipe::fingerprint(compiled.recipe())?.0.to_le_bytes() {
        if reader.byte()? != byte {
            return Err(SavedError::Grammar);
        }
    }
    let canonical = reader.flag()?;
    if canonical && compiled.engine.canonicality().is_none() {
        return Err(SavedError::Vocabulary);
    }
    let max_tokens = reader.optional()?.map(|max| max as usize);
    let recent = read_tokens(&mut reader)?;
    let (prefix, prefill) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
    let close = match reader.byte()? {
        0 => None,
        1 => Some(Close::Tokens(read_tokens(&mut reader)?.into())),
        2 => Some(Close::Text(reader.bytes()?.into())),
        _ => return Err(SavedError::Malformed("what closes free text")),
    };
    let opening = match close {
        Some(close) => Some(Opening { close, controls: read_tokens(&mut reader)? }),
        None => None,
    };
    let tokens = read_tokens(&mut reader)?;
    reader.end()?;
    let beginning = Beginning { recent, prefix, prefill, opening, canonical, max_tokens };
    let mut matcher = Matcher::beginning(compiled, &beginning)?;
    if !matcher.accept_all(&tokens)? {
        return Err(SavedError::Malformed("the tokens, which the grammar refuses"));
    }
    Ok(matcher)
}

fn write_tokens(writer: &mut Writer, tokens: &[TokenId]) {
    writer.length(tokens.len());
    tokens.iter().for_each(|token| writer.number(token.0));
}

fn read_tokens(reader: &mut Reader<'_>) -> Result<Vec<TokenId>, SavedError> {
    reader.list(|reader| Ok(TokenId(reader.small()?)))
}

//! The merges as they are given, and by them the one split of each token that ever happens.

use rustc_hash::FxHashMap;

use super::merging::{merge_symbols, Merge, Symbol};
use super::spec::{Base, BpeError, BpeSpec, Merges, MAX_MERGES};
use super::splits::Splits;
use super::texts::Texts;
use crate::vocabulary::TokenId;

/// Finds the merge of two adjacent symbols.
enum MergeRules<'a> {
    Ranked(FxHashMap<&'a [u8], Merge>),
    Listed(FxHashMap<(TokenId, TokenId), Merge>),
}

impl<'a> MergeRules<'a> {
    fn new(texts: &'a Texts, merges: &Merges) -> Result<Self, BpeError> {
        let known = |token: TokenId| match texts.get(token) {
            [] => Err(BpeError::UnknownToken(token)),
            _ if texts.is_byte_fallback(token) => Err(BpeError::UnknownToken(token)),
            text => Ok(text),
        };
        match merges {
            Merges::Ranked(tokens) => {
                if tokens.len() > MAX_MERGES {
                    return Err(BpeError::TooManyMerges);
                }
                let mut rules = FxHashMap::default();
                rules.reserve(tokens.len());
                for (rank, &token) in (1..).zip(tokens) {
                    rules.entry(known(token)?).or_insert(Merge { rank, token });
                }
                Ok(Self::Ranked(rules))
            }
            Merges::Listed(list) => {
                if list.len() > MAX_MERGES {
                    return Err(BpeError::TooManyMerges);
                }
                let mut rules = FxHashMap::default();
                rules.reserve(list.len());
                for (rank, &(left, right, merged)) in (1..).zip(list) {
                    let (first, second, whole) = (known(left)?, known(right)?, known(merged)?);
                    if whole.strip_prefix(first) != Some(second) {
                        return Err(BpeError::WrongMerge { left, right, merged });
                    }
                    rules.insert((left, right), Merge { rank, token: merged });
                }
                Ok(Self::Listed(rules))
            }
        }
    }

    fn find(&self, text: &[u8], left: Symbol, right: Symbol) -> Option<Merge> {
        match self {
            Self::Ranked(rules) => {
                rules.get(&text[left.start as usize..right.end as usize]).copied()
            }
            Self::Listed(rules) => rules.get(&(left.token, right.token)).copied(),
        }
    }
}

/// The base tokens of a token's text; `None` if a character has none, because merges then never
/// reach the token.
fn base_symbols(
    text: &[u8],
    base: Base,
    texts: &Texts,
    characters: &FxHashMap<&[u8], TokenId>,
    symbols: &mut Vec<Symbol>,
) -> Option<()> {
    symbols.clear();
    match base {
        Base::Bytes => {
            symbols.extend((0..).zip(text).map(|(start, &byte)| Symbol {
                token: texts.byte_token(byte),
                start,
                end: start + 1,
            }));
        }
        Base::Characters => {
            let text = std::str::from_utf8(text).ok()?;
            for (start, character) in text.char_indices() {
                let end = start + character.len_utf8();
                let token = *characters.get(&text.as_bytes()[start..end])?;
                symbols.push(Symbol { token, start: start as u32, end: end as u32 });
            }
        }
    }
    Some(())
}

/// For each token the last merge of encoding its own text, if that ends with this token alone.
pub(super) fn find_splits(texts: &Texts, spec: &BpeSpec) -> Result<Splits, BpeError> {
    let rules = MergeRules::new(texts, &spec.merges)?;
    let mut characters: FxHashMap<&[u8], TokenId> = FxHashMap::default();
    if spec.base == Base::Characters {
        // The token of a character is the one that merges would give, else the first given.
        if let MergeRules::Ranked(rules) = &rules {
            characters.extend(rules.iter().map(|(text, merge)| (*text, merge.token)));
        }
        for (token, text) in &spec.pieces {
            let is_character =
                std::str::from_utf8(text).is_ok_and(|text| text.chars().nth(1).is_none());
            if is_character {
                characters.entry(text).or_insert(*token);
            }
        }
    }
    let mut splits = Splits::unreachable(texts);
    let mut symbols = Vec::new();
    for (token, text) in texts.tokens() {
        if texts.is_byte_fallback(token) {
            // Within well-formed text an ASCII byte is a character of its own.
            if !characters.contains_key(text) {
                splits.set_base(token);
            }
            continue;
        }
        if base_symbols(text, spec.base, texts, &characters, &mut symbols).is_none() {
            continue;
        }
        let last = merge_symbols(&mut symbols, |left, right| rules.find(text, left, right));
        match (&symbols[..], last) {
            (&[only], Some((left, right, merge))) if only.token == token => {
                splits.set(token, left, right, merge.rank);
            }
            (&[only], None) if only.token == token => splits.set_base(token),
            _ => {}
        }
    }
    Ok(splits)
}

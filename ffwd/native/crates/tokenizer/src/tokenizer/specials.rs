//! Tokens that are found in a text before it is split or merged: special tokens such as
//! `<|eot_id|>`, and the added tokens that are text.

use std::ops::ControlFlow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use parking_lot::Mutex;

use super::error::{TextError, TokenizerError};
use crate::vocabulary::TokenId;

/// One added token and how it is found, in the terms of tokenizer.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialToken {
    /// The id of the token.
    pub id: TokenId,
    /// The text for which it stands.
    pub content: String,
    /// Found in every text under every policy: an added token that is text.
    pub text: bool,
    /// Only where no word character stands before or after it.
    pub single_word: bool,
    /// Takes the white space before it with it.
    pub lstrip: bool,
    /// Takes the white space after it with it.
    pub rstrip: bool,
    /// Searched in the normalized text, between the tokens that are found in the unchanged text.
    pub normalized: bool,
}

impl SpecialToken {
    /// A token without any flag.
    pub fn plain(id: TokenId, content: impl Into<String>) -> Self {
        Self {
            id,
            content: content.into(),
            text: false,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }
    }
}

/// The treatment of special tokens in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecialPolicy {
    /// They are text like any other.
    Text,
    /// They are an error.
    Forbidden,
    /// All of them are found.
    Allowed,
    /// Those of these names are found, all others are text.
    Only(Vec<String>),
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    Text {
        start: usize,
        end: usize,
    },
    /// With the white space that it takes along.
    Token {
        token: TokenId,
        start: usize,
        end: usize,
    },
}

/// An automaton over the names of some special tokens.
struct Finder {
    automaton: AhoCorasick,
    /// The special token of each pattern.
    tokens: Vec<u32>,
}

/// The finders of one policy: over the text as it is, and over the normalized text.
#[derive(Clone, Default)]
pub(super) struct Finders {
    raw: Option<Arc<Finder>>,
    normalized: Option<Arc<Finder>>,
}

impl Finders {
    pub(super) fn is_empty(&self) -> bool {
        self.raw.is_none() && self.normalized.is_none()
    }
}

/// The names of the last [`SpecialPolicy::Only`], sorted, and its finders.
type LastOnly = Option<(Vec<String>, Finders)>;

/// All special tokens of a tokenizer.
pub struct SpecialTokens {
    tokens: Vec<SpecialToken>,
    text: Finders,
    all: Finders,
    last_only: Mutex<LastOnly>,
    /// The place of each token in `tokens`.
    by_id: Vec<(TokenId, u32)>,
}

impl SpecialTokens {
    pub(crate) fn new(tokens: Vec<SpecialToken>) -> Result<Self, TokenizerError> {
        if let Some(empty) = tokens.iter().find(|token| token.content.is_empty()) {
            return Err(TokenizerError::EmptySpecial(empty.id));
        }
        let text = finders(&tokens, |token| token.text)?;
        let all = finders(&tokens, |_| true)?;
        let mut by_id: Vec<(TokenId, u32)> =
            tokens.iter().zip(0u32..).map(|(token, place)| (token.id, place)).collect();
        by_id.sort_unstable();
        Ok(Self { tokens, text, all, last_only: Mutex::new(None), by_id })
    }

    /// The tokens as they were given.
    pub fn tokens(&self) -> &[SpecialToken] {
        &self.tokens
    }

    /// Whether some token is searched in every text.
    pub fn any_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// Returns the finders of the tokens that the policy finds (or refuses, see [`Self::forbid`]).
    pub(super) fn finders(&self, policy: &SpecialPolicy) -> Result<Finders, TextError> {
        match policy {
            SpecialPolicy::Text | SpecialPolicy::Forbidden => Ok(self.text.clone()),
            SpecialPolicy::Allowed => Ok(self.all.clone()),
            SpecialPolicy::Only(names) => self.only(names),
        }
    }

    fn only(&self, names: &[String]) -> Result<Finders, TextError> {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        let known = |name: &String| self.tokens.iter().any(|token| token.content == *name);
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            return Err(TextError::UnknownSpecial(unknown.clone()));
        }
        let mut last = self.last_only.lock();
        if let Some((of, finders)) = last.as_ref() {
            if *of == names {
                return Ok(finders.clone());
            }
        }
        let wanted =
            |token: &SpecialToken| token.text || names.binary_search(&token.content).is_ok();
        let made = finders(&self.tokens, wanted).map_err(|_| TextError::TooManySpecials)?;
        *last = Some((names, made.clone()));
        Ok(made)
    }

    /// The first special token in a text that the policy does not allow.
    pub(super) fn forbid(&self, text: &[u8], policy: &SpecialPolicy) -> Result<(), TextError> {
        if *policy != SpecialPolicy::Forbidden {
            return Ok(());
        }
        for finder in [&self.all.raw, &self.all.normalized].into_iter().flatten() {
            for found in finder.automaton.find_iter(text) {
                let token = &self.tokens[finder.tokens[found.pattern()] as usize];
                if !token.text {
                    let (name, at) = (token.content.clone(), found.start());
                    return Err(TextError::ForbiddenSpecial { name, at });
                }
            }
        }
        Ok(())
    }

    /// A special token.
    pub(crate) fn get(&self, token: TokenId) -> Option<&SpecialToken> {
        let at = self.by_id.binary_search_by_key(&token, |&(id, _)| id).ok()?;
        Some(&self.tokens[self.by_id[at].1 as usize])
    }

    /// The name of a special token.
    pub(crate) fn content(&self, token: TokenId) -> Option<&str> {
        Some(&self.get(token)?.content)
    }

    /// Splits a text that is not normalized yet. Calls back with each part in order; parts of text
    /// are never empty.
    pub(super) fn cut_raw<E>(
        &self,
        finders: &Finders,
        text: &[u8],
        f: impl FnMut(Stretch) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        self.cut(finders.raw.as_deref(), text, (0, text.len()), f)
    }

    /// The same for a range whose surroundings belong to adjacent tokens. Tokens are searched in
    /// the whole text.
    pub(super) fn cut_between<E>(
        &self,
        finders: &Finders,
        text: &[u8],
        left: (usize, usize),
        f: impl FnMut(Stretch) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        self.cut(finders.raw.as_deref(), text, left, f)
    }

    /// Splits a normalized text.
    pub(super) fn cut_normalized<E>(
        &self,
        finders: &Finders,
        text: &[u8],
        f: impl FnMut(Stretch) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        self.cut(finders.normalized.as_deref(), text, (0, text.len()), f)
    }

    fn cut<E>(
        &self,
        finder: Option<&Finder>,
        text: &[u8],
        (first, last): (usize, usize),
        mut f: impl FnMut(Stretch) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let mut done = first;
        for (finder, found) in finder
            .into_iter()
            .flat_map(|finder| finder.automaton.find_iter(text).map(move |found| (finder, found)))
        {
            let token = &self.tokens[finder.tokens[found.pattern()] as usize];
            let (mut start, mut end) = (found.start(), found.end());
            if token.single_word && !stands_alone(text, start, end) {
                continue;
            }
            // White space that an earlier token has absorbed is not absorbed again.
            if token.lstrip {
                start -= white_space_at_end(&text[..start]);
                start = start.max(done);
            }
            if token.rstrip {
                end += white_space_at_start(&text[end..]);
            }
            if done < start && f(Stretch::Text { start: done, end: start })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if f(Stretch::Token { token: token.id, start, end })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            done = end;
        }
        if done < last {
            return f(Stretch::Text { start: done, end: last });
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn finders(
    tokens: &[SpecialToken],
    wanted: impl Fn(&SpecialToken) -> bool,
) -> Result<Finders, TokenizerError> {
    let of = |normalized: bool| -> Result<Option<Arc<Finder>>, TokenizerError> {
        let places: Vec<u32> = (0u32..)
            .zip(tokens)
            .filter(|(_, token)| token.normalized == normalized && wanted(token))
            .map(|(place, _)| place)
            .collect();
        if places.is_empty() {
            return Ok(None);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(places.iter().map(|&place| &tokens[place as usize].content))
            .map_err(|error| TokenizerError::Specials(error.to_string()))?;
        Ok(Some(Arc::new(Finder { automaton, tokens: places })))
    };
    Ok(Finders { raw: of(false)?, normalized: of(true)? })
}

fn is_word(character: char) -> bool {
    regex_syntax::try_is_word_character(character).unwrap_or(false)
}

fn stands_alone(text: &[u8], start: usize, end: usize) -> bool {
    let before = last_character(&text[..start]).is_some_and(is_word);
    let after = first_character(&text[end..]).is_some_and(is_word);
    !before && !after
}

pub(super) fn white_space_at_start(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(space) = first_character(&text[at..]).filter(|found| found.is_whitespace()) {
        at += space.len_utf8();
    }
    at
}

pub(super) fn white_space_at_end(text: &[u8]) -> usize {
    let mut left = text;
    while let Some(space) = last_character(left).filter(|found| found.is_whitespace()) {
        left = &left[..left.len() - space.len_utf8()];
    }
    text.len() - left.len()
}

fn first_character(text: &[u8]) -> Option<char> {
    text[..text.len().min(4)].utf8_chunks().next()?.valid().chars().next()
}

fn last_character(text: &[u8]) -> Option<char> {
    let start =
        (text.len().saturating_sub(4)..text.len()).rev().find(|&at| text[at] & 0xC0 != 0x80)?;
    let mut characters = std::str::from_utf8(&text[start..]).ok()?.chars();
    characters.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(specials: &SpecialTokens, text: &str) -> Vec<String> {
        let finders = specials.finders(&SpecialPolicy::Allowed).unwrap();
        let mut out = Vec::new();
        let cut = specials.cut_raw(&finders, text.as_bytes(), |stretch| {
            out.push(match stretch {
                Stretch::Text { start, end } => text[start..end].to_owned(),
                Stretch::Token { token, .. } => format!("#{token}"),
            });
            Ok::<_, TextError>(ControlFlow::Continue(()))
        });
        assert_eq!(cut, Ok(ControlFlow::Continue(())));
        out
    }

    fn specials(tokens: &[(&str, &str)]) -> SpecialTokens {
        let tokens = tokens.iter().enumerate().map(|(id, (content, flags))| SpecialToken {
            lstrip: flags.contains('l'),
            rstrip: flags.contains('r'),
            single_word: flags.contains('w'),
            text: flags.contains('t'),
            ..SpecialToken::plain(TokenId(id as u32), *content)
        });
        SpecialTokens::new(tokens.collect()).unwrap()
    }

    #[test]
    fn the_longest_of_the_leftmost_is_found() {
        let specials = specials(&[("<a>", ""), ("<a><b>", ""), ("><", "")]);
        assert_eq!(cut(&specials, "x<a><b>y<a>"), ["x", "#1", "y", "#0"]);
    }

    #[test]
    fn white_space_is_taken_along_where_the_flags_say_so() {
        let specials = specials(&[("<l>", "l"), ("<r>", "r")]);
        assert_eq!(cut(&specials, "a \u{2003}<l> b <r>\n\u{A0}c"), ["a", "#0", " b ", "#1", "c"]);
        assert_eq!(cut(&specials, "<r> <l>"), ["#1", "#0"]);
    }

    #[test]
    fn a_single_word_stands_alone() {
        let specials = specials(&[("word", "w")]);
        assert_eq!(cut(&specials, "word sword (word) wordé"), ["#0", " sword (", "#0", ") wordé"]);
    }

    #[test]
    fn policies() {
        let specials = specials(&[("<a>", ""), ("<b>", ""), ("  ", "t")]);
        let count = |policy: &SpecialPolicy| {
            let finders = specials.finders(policy).unwrap();
            let mut tokens = 0;
            let cut = specials.cut_raw(&finders, b"<a>  <b>", |stretch| {
                tokens += usize::from(matches!(stretch, Stretch::Token { .. }));
                Ok::<_, TextError>(ControlFlow::Continue(()))
            });
            assert!(cut.is_ok());
            tokens
        };
        assert_eq!(count(&SpecialPolicy::Text), 1);
        assert_eq!(count(&SpecialPolicy::Allowed), 3);
        assert_eq!(count(&SpecialPolicy::Only(vec!["<b>".into()])), 2);
        let unknown = SpecialPolicy::Only(vec!["<c>".into()]);
        assert_eq!(specials.finders(&unknown).err(), Some(TextError::UnknownSpecial("<c>".into())));
        assert_eq!(
            specials.forbid(b"  x<b><a>", &SpecialPolicy::Forbidden),
            Err(TextError::ForbiddenSpecial { name: "<b>".into(), at: 3 })
        );
        assert_eq!(specials.forbid(b"  x<c>", &SpecialPolicy::Forbidden), Ok(()));
    }
}

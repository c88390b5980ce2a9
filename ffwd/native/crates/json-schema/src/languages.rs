//! Questions about the languages of keys.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::LimitExceeded;
use super::options::{Limits, Oracle, SchemaOptions};
use ffwd_regular::regex::Ast;

/// How many keys a pattern may have to be listed as properties.
pub(super) const MAX_KEYS: usize = 64;
/// How many texts a language may have to be listed as values.
pub(super) const MAX_TEXTS: usize = 4096;

/// A text that hardly any pattern mentions.
const UNLIKELY: &str = "\u{1}\u{fffd}unlikely\u{2}";

/// How many texts were asked for, and all texts if there are no more.
type Listed = (usize, Option<Vec<Arc<str>>>);

/// A cache of answers about languages.
pub struct Languages {
    oracle: Oracle,
    limits: Limits,
    empty: FxHashMap<Ast, bool>,
    members: FxHashMap<Ast, FxHashMap<Arc<str>, bool>>,
    listed: FxHashMap<Ast, Listed>,
    /// How many bytes of memory the answers hold.
    held: usize,
}

impl std::fmt::Debug for Languages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Languages").field("known", &self.empty.len()).finish_non_exhaustive()
    }
}

impl Languages {
    pub fn new(options: &SchemaOptions) -> Self {
        let (oracle, limits) = (options.languages.clone(), options.limits);
        let (empty, members) = (FxHashMap::default(), FxHashMap::default());
        Self { oracle, limits, empty, members, listed: FxHashMap::default(), held: 0 }
    }

    /// About how many bytes of memory the answers hold.
    pub fn memory_bytes(&self) -> usize {
        self.held
    }

    pub fn is_empty(&mut self, language: &Ast) -> Result<bool, LimitExceeded> {
        if *language == Ast::Empty {
            return Ok(true);
        }
        // Few patterns mention such a text, so a language that excludes some keys contains it.
        if matches!(language.matches(UNLIKELY), Ok(true)) {
            return Ok(false);
        }
        if let Some(&known) = self.empty.get(language) {
            return Ok(known);
        }
        let empty = self.oracle.is_empty(language, self.limits)?;
        self.held += 64 + language.memory_bytes();
        self.empty.insert(language.clone(), empty);
        Ok(empty)
    }

    pub fn contains(&mut self, language: &Ast, text: &Arc<str>) -> Result<bool, LimitExceeded> {
        let known = self.members.get(language).and_then(|texts| texts.get(text));
        if let Some(&known) = known {
            return Ok(known);
        }
        let contains = is_member(language, text)?;
        let held = &mut self.held;
        let texts = self.members.entry(language.clone()).or_insert_with(|| {
            *held += 96 + language.memory_bytes();
            FxHashMap::default()
        });
        *held += 48 + text.len();
        texts.insert(text.clone(), contains);
        Ok(contains)
    }

    /// All texts of a language that clearly has at most `most`.
    pub fn list(
        &mut self,
        language: &Ast,
        most: usize,
    ) -> Result<Option<Vec<Arc<str>>>, LimitExceeded> {
        let Some((words, checks)) = words_and_checks(language, most) else { return Ok(None) };
        let mut listed: Vec<Arc<str>> = Vec::with_capacity(words.len());
        'words: for word in words {
            for check in &checks {
                if !is_member(check, &word)? {
                    continue 'words;
                }
            }
            listed.push(word.into());
        }
        listed.sort_unstable();
        listed.dedup();
        Ok(Some(listed))
    }

    /// All texts of a language that has at most `most`, also where only a search shows that.
    pub fn list_exactly(
        &mut self,
        language: &Ast,
        most: usize,
    ) -> Result<Option<Vec<Arc<str>>>, LimitExceeded> {
        let plainly = self.list(language, most)?;
        if plainly.is_some() || at_least(language) > most as u64 {
            return Ok(plainly);
        }
        match self.listed.get(language) {
            Some((_, Some(texts))) => return Ok((texts.len() <= most).then(|| texts.clone())),
            Some(&(asked, None)) if most <= asked => return Ok(None),
            _ => {}
        }
        let listed = self.oracle.list(language, most as u64)?;
        let listed: Option<Vec<Arc<str>>> =
            listed.map(|texts| texts.into_iter().map(Into::into).collect());
        let texts = listed.iter().flatten().map(|text| 16 + text.len());
        self.held += 96 + language.memory_bytes() + texts.sum::<usize>();
        self.listed.insert(language.clone(), (most, listed.clone()));
        Ok(listed)
    }
}

/// A lower bound on the number of texts that the syntax of a language shows.
fn at_least(language: &Ast) -> u64 {
    match language {
        Ast::Epsilon | Ast::Literal(_) => 1,
        Ast::Class(class) => class.ranges().iter().map(|&(a, b)| u64::from(b - a) + 1).sum(),
        Ast::Approximate { known, .. } => at_least(known),
        // Beside a fixed text of each other part, different texts of one remain different.
        Ast::Concat(parts) => {
            let (mut least, mut most) = (1, 1);
            for part in parts.iter() {
                let count = at_least(part);
                (least, most) = (count.min(least), count.max(most));
            }
            if least == 0 {
                0
            } else {
                most
            }
        }
        Ast::Alternation(parts) => parts.iter().map(at_least).max().unwrap_or(0),
        Ast::Repeat { max: Some(0), .. } => 1,
        Ast::Repeat { inner, max: None, .. } if has_characters(inner) => u64::MAX,
        Ast::Repeat { inner, min: 0, .. } => at_least(inner).max(1),
        Ast::Repeat { inner, .. } => at_least(inner),
        _ => 0,
    }
}

/// Whether the syntax of a language shows a text that is not empty.
fn has_characters(language: &Ast) -> bool {
    match language {
        Ast::Literal(text) => !text.is_empty(),
        Ast::Class(_) => at_least(language) > 0,
        Ast::Approximate { known, .. } => has_characters(known),
        Ast::Concat(parts) => at_least(language) > 0 && parts.iter().any(has_characters),
        Ast::Alternation(parts) => parts.iter().any(has_characters),
        Ast::Repeat { inner, max, .. } => *max != Some(0) && has_characters(inner),
        _ => false,
    }
}

fn is_member(language: &Ast, text: &str) -> Result<bool, LimitExceeded> {
    language.matches(text)
}

/// Returns [`words`], and the languages that must also contain them: for an intersection, all other
/// operands.
fn words_and_checks(language: &Ast, most: usize) -> Option<(Vec<String>, Vec<&Ast>)> {
    let Ast::Intersection(parts) = language else {
        let checks = if needs_check(language) { vec![language] } else { Vec::new() };
        return Some((words(language, most)?, checks));
    };
    let listed = parts.iter().enumerate().filter_map(|(at, part)| Some((at, words(part, most)?)));
    let (from, words) = listed.min_by_key(|(_, words)| words.len())?;
    let is_check = |&(at, part): &(usize, &Ast)| at != from || needs_check(part);
    let checks = parts.iter().enumerate().filter(is_check).map(|(_, part)| part).collect();
    Some((words, checks))
}

/// Whether [`words`] may return more than the language has.
fn needs_check(language: &Ast) -> bool {
    match language {
        Ast::Intersection(_) | Ast::Complement(_) => true,
        Ast::Concat(parts) | Ast::Alternation(parts) => parts.iter().any(needs_check),
        Ast::Repeat { inner, .. } => needs_check(inner),
        _ => false,
    }
}

/// A finite list with all strings of a language, and where it has an intersection perhaps others;
/// `None` if it is not plainly finite and small.
fn words(language: &Ast, most: usize) -> Option<Vec<String>> {
    let within = |words: Vec<String>| (words.len() <= most).then_some(words);
    let append = |heads: Vec<String>, tails: &[String]| {
        if heads.len().saturating_mul(tails.len()) > most {
            return None;
        }
        Some(
            heads
                .iter()
                .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")))
                .collect::<Vec<_>>(),
        )
    };
    match language {
        Ast::Empty => Some(Vec::new()),
        Ast::Epsilon => Some(vec![String::new()]),
        Ast::Literal(text) => Some(vec![text.to_string()]),
        Ast::Class(class) => {
            let size: usize = class.ranges().iter().map(|&(a, b)| (b - a) as usize + 1).sum();
            (size <= 64).then(|| {
                class
                    .ranges()
                    .iter()
                    .flat_map(|&(a, b)| a..=b)
                    .filter_map(char::from_u32)
                    .map(String::from)
                    .collect()
            })
        }
        Ast::Concat(parts) => parts
            .iter()
            .try_fold(vec![String::new()], |heads, part| append(heads, &words(part, most)?)),
        Ast::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts.iter() {
                all.extend(words(part, most)?);
                if all.len() > most {
                    return None;
                }
            }
            within(all)
        }
        Ast::Repeat { inner, min, max } => {
            let max = (*max)?;
            let one = words(inner, most)?;
            if max > 64 || one.iter().any(String::is_empty) {
                return None;
            }
            let mut all = Vec::new();
            let mut current = vec![String::new()];
            for count in 0..=max {
                if count >= *min {
                    all.extend(current.iter().cloned());
                }
                if all.len() > most {
                    return None;
                }
                if count < max {
                    current = append(current, &one)?;
                }
            }
            within(all)
        }
        Ast::Intersection(parts) => {
            parts.iter().filter_map(|part| words(part, most)).min_by_key(Vec::len)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_emptiness::options;
    use ffwd_regular::regex::ecma::search;

    #[test]
    fn a_lower_bound_is_no_more_than_the_texts() {
        let mut languages = Languages::new(&options());
        for pattern in ["", "a", "a?b?", "[ab]{2}", "(a|bc|)[xy]", "(ab){1,3}", "(a|a)"] {
            let language = search(&format!("^({pattern})$")).unwrap();
            let texts = languages.list(&language, 64).unwrap().unwrap();
            let least = at_least(&language);
            assert!((1..=texts.len() as u64).contains(&least), "{pattern}: {least}");
        }
        assert_eq!(at_least(&search("").unwrap()), u64::MAX);
        assert_eq!(at_least(&search("^a+$").unwrap()), u64::MAX);
        assert_eq!(at_least(&search("^(a?)*$").unwrap()), u64::MAX);
        assert!(at_least(&search("^..$").unwrap()) > 1_000_000);
        let none = Ast::intersection([search("^a+$").unwrap(), search("^b+$").unwrap()]);
        assert_eq!(at_least(&none), 0);
        assert!(at_least(&Ast::repeat(Ast::Epsilon, 0, None)) <= 1);
    }

    #[test]
    fn a_search_lists_what_syntax_does_not_show() {
        let options = options()
            .listing(|_, most| Ok((most >= 2).then(|| vec!["bc".to_owned(), "cb".to_owned()])));
        let mut languages = Languages::new(&options);
        let both = Ast::intersection([search("b").unwrap(), search("c").unwrap()]);
        let all: Vec<Arc<str>> = vec!["bc".into(), "cb".into()];
        for (most, expected) in [(1, None), (2, Some(&all)), (1, None), (9, Some(&all))] {
            assert_eq!(languages.list_exactly(&both, most).unwrap().as_ref(), expected, "{most}");
        }
        assert_eq!(languages.list_exactly(&search("b").unwrap(), 9).unwrap(), None);
    }

    #[test]
    fn finite_languages_are_listed() {
        let mut languages = Languages::new(&options());
        let mut list = |pattern: &str| {
            let words = languages.list(&search(pattern).unwrap(), 64).unwrap()?;
            Some(words.iter().map(|word| word.to_string()).collect::<Vec<_>>().join(","))
        };
        assert_eq!(list("^(a|bc)$").as_deref(), Some("a,bc"));
        assert_eq!(list("^x[12]?$").as_deref(), Some("x,x1,x2"));
        assert_eq!(list("^(ab){1,2}$").as_deref(), Some("ab,abab"));
        assert_eq!(list("^a+$"), None);
        assert_eq!(list("a"), None);
        let both =
            Ast::intersection([search("^(a|bc)$").unwrap(), Ast::complement(Ast::literal("a"))]);
        assert_eq!(languages.list(&both, 64).unwrap(), Some(vec!["bc".into()]));
        assert!(languages.contains(&search("b").unwrap(), &"abc".into()).unwrap());
        assert!(!languages.contains(&search("^b").unwrap(), &"abc".into()).unwrap());
    }
}

//! Answers to "which continuations are allowed?" and "why is this one not?".
//!
//! All answers come from the automaton that makes the masks. A byte is refused if no thread is left
//! after it. A token is refused if the matcher's own mask lacks it.

mod describe;
mod names;
mod pattern;

pub use describe::{Item, ItemKind, Reason};
pub use names::RulePlace;

use crate::engine::Compiled;
use crate::matcher::{Matcher, MatcherError};
use describe::Describer;
use ffwd_automaton::expected::TAIL;
use ffwd_automaton::{Automaton, Result, Threads};
use ffwd_tokenizer::vocabulary::TokenId;

/// The subject of a question.
#[derive(Clone, Debug)]
pub enum Question {
    /// Whether this token is allowed. Its id must be in the vocabulary.
    Token(TokenId),
    /// Whether these bytes are allowed in any tokens.
    Text(Vec<u8>),
}

/// The position of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStage {
    /// In free text before that of the grammar.
    FreeText,
    /// In bytes before the text of the grammar, which are all known.
    Prefix,
    /// In the text of the grammar.
    Grammar,
    /// After a token that ends the output.
    Ended,
}

/// The state of a text, for people.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// How many tokens have been accepted.
    pub num_tokens: usize,
    /// Which part of the output the next token belongs to.
    pub stage: TextStage,
    /// Whether the text may end here.
    pub accepting: bool,
    /// The allowed continuations, without those that `more` counts.
    pub expected: Vec<Item>,
    /// How many more continuations are allowed.
    pub more: usize,
    /// The allowed next bytes; empty in free text, where all are.
    pub next_bytes: Vec<u8>,
    /// Tokens that complete the text; `None` if the search takes too long.
    pub completion: Option<Vec<TokenId>>,
    /// The text of those tokens.
    pub completion_text: Option<Vec<u8>>,
    /// Other restrictions of the mask.
    pub notes: Vec<String>,
    /// The answer to the question; `None` if none was asked.
    pub answer: Option<Answer>,
}

/// Whether a token or a text is allowed.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The token of the question; `None` if it was about bytes.
    pub token: Option<TokenId>,
    /// The bytes of the question or of its token.
    pub text: Vec<u8>,
    /// Whether the mask has the token, or the grammar takes the bytes.
    pub allowed: bool,
    /// How many of the bytes are allowed.
    pub good_bytes: usize,
    /// The first byte that is not.
    pub refused_byte: Option<u8>,
    /// Empty if it is allowed.
    pub reasons: Vec<Reason>,
    /// The alternatives after the good bytes.
    pub instead: Vec<Item>,
    /// How many more alternatives there are.
    pub more: usize,
    /// The allowed bytes after the good ones.
    pub instead_bytes: Vec<u8>,
}

/// How many allowed continuations are listed.
const MAX_ITEMS: usize = 24;

/// Explains the state of a text, and answers the question about it. Changes nothing.
///
/// # Errors
/// The token is outside the vocabulary, or a limit of what is built on the way is passed.
pub fn explain(
    matcher: &Matcher,
    question: Option<&Question>,
) -> Result<Explanation, MatcherError> {
    let compiled = matcher.compiled().clone();
    let (generation, state) = matcher.here()?;
    let automaton = &generation.automaton;
    let threads = Threads::from_slice(automaton.threads(state));
    let known = Explainer { matcher, describer: Describer::of(&compiled, automaton) };
    let stage = if matcher.is_terminated() {
        TextStage::Ended
    } else if matcher.is_in_free_text() {
        TextStage::FreeText
    } else if !matcher.prefix_left().is_empty() {
        TextStage::Prefix
    } else {
        TextStage::Grammar
    };
    let place = TextPosition {
        stage,
        threads,
        prefix: matcher.prefix_left().to_vec(),
        tail: matcher.text_tail(TAIL),
    };
    let (expected, more) = known.expected(automaton, &place)?;
    let next_bytes = known.next_bytes(automaton, &place)?;
    let answer = match question {
        Some(question) => Some(known.answer(&compiled, automaton, place, question)?),
        None => None,
    };
    let completion = match matcher.shortest_completion() {
        Ok(completion) => Some(completion),
        Err(error) if error.exceeded().is_some() => None,
        Err(error) => return Err(error.into()),
    };
    let mut notes = Vec::new();
    if let (Some(left), Some(max)) = (matcher.tokens_left(), matcher.max_tokens()) {
        notes.push(format!("{left} of {max} tokens are left: tokens after which the text cannot end in time are masked"));
    }
    if matcher.is_canonical() {
        notes.push("tokens that no tokenizer would write here are masked".to_owned());
    }
    let accepting = matcher.is_accepting();
    compiled.settle(&generation);
    let num_tokens = matcher.tokens().len();
    let vocabulary = compiled.engine.vocabulary();
    let spelled = |tokens: &Vec<TokenId>| {
        tokens.iter().flat_map(|&token| vocabulary.text(token)).copied().collect()
    };
    let completion_text = completion.as_ref().map(spelled);
    Ok(Explanation {
        num_tokens,
        stage,
        accepting,
        expected,
        more,
        next_bytes,
        completion,
        notes,
        answer,
        completion_text,
    })
}

/// A position of a text, which may be after bytes without tokens.
struct TextPosition {
    stage: TextStage,
    threads: Threads,
    prefix: Vec<u8>,
    tail: Vec<u8>,
}

struct Explainer<'a> {
    matcher: &'a Matcher,
    describer: Describer<'a>,
}

fn before(what: String, example: Option<Vec<u8>>) -> Item {
    let (rules, pointers) = (Vec::new(), Vec::new());
    Item { kind: ItemKind::Before, what, begun: false, rules, pointers, example }
}

fn because(message: impl Into<String>) -> Reason {
    Reason { message: message.into(), rules: Vec::new(), pointers: Vec::new() }
}

impl Explainer<'_> {
    fn expected(&self, automaton: &Automaton, place: &TextPosition) -> Result<(Vec<Item>, usize)> {
        match place.stage {
            TextStage::Ended => return Ok((Vec::new(), 0)),
            TextStage::FreeText => {
                let close = self.matcher.free_text_close();
                let what = match &close {
                    Some(close) => format!("free text up to {}", written(close)),
                    None => "free text up to the tokens that close it".to_owned(),
                };
                return Ok((vec![before(what, close)], 0));
            }
            TextStage::Prefix => {
                let what = format!("{}, which the prompt has left over", written(&place.prefix));
                return Ok((vec![before(what, Some(place.prefix.clone()))], 0));
            }
            TextStage::Grammar => {}
        }
        let (expected, more) =
            automaton.explaining().expected(&place.threads, &place.tail, MAX_ITEMS)?;
        let mut items = self.describer.items(expected)?;
        let cut = items.len().saturating_sub(2 * MAX_ITEMS);
        items.truncate(2 * MAX_ITEMS);
        // A terminal that can continue does not end, so what follows it in the grammar is not
        // allowed.
        for item in &mut items {
            if let Some(example) = &item.example {
                if automaton.walk(&place.threads, example)?.is_none() {
                    item.example = None;
                }
            }
        }
        Ok((items, more + cut))
    }

    fn next_bytes(&self, automaton: &Automaton, place: &TextPosition) -> Result<Vec<u8>> {
        match place.stage {
            TextStage::Ended | TextStage::FreeText => return Ok(Vec::new()),
            TextStage::Prefix => return Ok(place.prefix.first().copied().into_iter().collect()),
            TextStage::Grammar => {}
        }
        let mut bytes = Vec::new();
        for byte in 0..=u8::MAX {
            if !automaton.step(&place.threads, byte)?.is_empty() {
                bytes.push(byte);
            }
        }
        Ok(bytes)
    }

    fn answer(
        &self,
        compiled: &Compiled,
        automaton: &Automaton,
        mut place: TextPosition,
        question: &Question,
    ) -> Result<Answer, MatcherError> {
        let matcher = self.matcher;
        let vocabulary = compiled.engine.vocabulary();
        let (token, text) = match question {
            Question::Text(text) => (None, text.clone()),
            &Question::Token(token) => {
                let (position, width) = (matcher.tokens().len(), vocabulary.width());
                if token.index() >= width {
                    return Err(MatcherError::OutOfRange { token, position, width });
                }
                (Some(token), vocabulary.text(token).to_vec())
            }
        };
        let good_bytes = match place.stage {
            TextStage::Ended => 0,
            _ => self.read(automaton, &mut place, &text)?,
        };
        let all_good = good_bytes == text.len();
        let allowed = match token {
            None => all_good && place.stage != TextStage::Ended,
            Some(token) => self.is_allowed(token)?,
        };
        let refused_byte = text.get(good_bytes).copied().filter(|_| !allowed);
        let mut answer = Answer {
            token,
            good_bytes: if allowed { text.len() } else { good_bytes },
            text,
            allowed,
            refused_byte,
            reasons: Vec::new(),
            instead: Vec::new(),
            more: 0,
            instead_bytes: Vec::new(),
        };
        if allowed {
            return Ok(answer);
        }
        (answer.instead, answer.more) = self.expected(automaton, &place)?;
        answer.instead_bytes = self.next_bytes(automaton, &place)?;
        let in_grammar = place.stage == TextStage::Grammar;
        let ends = token.is_some_and(|token| vocabulary.is_eos(token));
        if place.stage == TextStage::Ended {
            answer.reasons.push(because("the text has ended"));
        } else if refused_byte.is_some() {
            if in_grammar {
                let rest = &answer.text[good_bytes..];
                let obstacles = automaton.explaining().obstacles(&place.threads, rest)?;
                answer.reasons = self.describer.reasons(obstacles);
            }
            if answer.reasons.is_empty() {
                answer.reasons.push(unexpected(&answer.instead, answer.more));
            }
        } else if let Some(token) = token.filter(|_| answer.text.is_empty()) {
            answer.reasons.push(match (place.stage, ends) {
                (TextStage::Grammar, true) if !matcher.is_accepting() => {
                    let mut reason = unexpected(&answer.instead, answer.more);
                    reason.message = format!("the text is not complete: {}", reason.message);
                    reason
                }
                (TextStage::FreeText, true) => because("the free text has not been closed"),
                (TextStage::FreeText, false) => because("it is no control token of the free text"),
                _ => self.narrowed(token).map(because).unwrap_or_else(|| {
                    let mut reason = unexpected(&answer.instead, answer.more);
                    let what = "it is no text, and may not come as a token here";
                    reason.message = format!("{what}: {}", reason.message);
                    reason
                }),
            });
        } else if let Some(token) = token {
            let narrowed = self.narrowed(token);
            answer.reasons.push(because(narrowed.unwrap_or_else(|| {
                "the grammar takes its text, but not as one token here".to_owned()
            })));
        }
        Ok(answer)
    }

    /// The mask's own answer.
    fn is_allowed(&self, token: TokenId) -> Result<bool> {
        if self.matcher.is_terminated() {
            return Ok(false);
        }
        // The counters of masks exclude this one.
        let matcher = self.matcher.clone();
        let mut row = vec![0; matcher.compiled().engine.vocabulary().mask_words()];
        matcher.fill_bitmask(&mut row)?;
        Ok(row[token.index() / 32] >> (token.0 % 32) & 1 == 1)
    }

    /// Returns the restriction besides the grammar that excludes a token.
    fn narrowed(&self, token: TokenId) -> Option<String> {
        let mut row = vec![0; self.matcher.compiled().engine.vocabulary().mask_words()];
        let is_in = |row: &[u32]| row[token.index() / 32] >> (token.0 % 32) & 1 == 1;
        self.matcher.fill_by_grammar(&mut row).ok()?;
        if !is_in(&row) {
            return None;
        }
        let left = self.matcher.tokens_left();
        self.matcher.fill_in_time(&mut row).ok()?;
        match (is_in(&row), left) {
            (false, Some(left)) => Some(format!(
                "the grammar allows it, but the text could not end in time after it: {left} tokens \
                 are left"
            )),
            _ => Some("the grammar allows it, but no tokenizer would write it here".to_owned()),
        }
    }

    /// Reads bytes as long as they are allowed. Returns how many are.
    fn read(&self, automaton: &Automaton, place: &mut TextPosition, text: &[u8]) -> Result<usize> {
        let mut read = 0;
        if place.stage == TextStage::FreeText {
            match self.matcher.free_text_length(text) {
                Some(length) => read = length,
                None => return Ok(text.len()),
            }
            place.stage =
                if place.prefix.is_empty() { TextStage::Grammar } else { TextStage::Prefix };
        }
        while read < text.len() && !place.prefix.is_empty() {
            if text[read] != place.prefix[0] {
                return Ok(read);
            }
            place.prefix.remove(0);
            read += 1;
        }
        if place.prefix.is_empty() {
            place.stage = TextStage::Grammar;
        }
        for &byte in &text[read..] {
            let next = automaton.step(&place.threads, byte)?;
            if next.is_empty() {
                return Ok(read);
            }
            place.threads = next;
            place.tail.push(byte);
            if place.tail.len() > 4 * TAIL {
                place.tail.drain(..3 * TAIL);
            }
            read += 1;
        }
        Ok(read)
    }
}

/// Bytes in quotes.
fn written(bytes: &[u8]) -> String {
    pattern::quoted(&String::from_utf8_lossy(bytes))
}

/// Returns the reason that no allowed item continues in this way.
fn unexpected(items: &[Item], more: usize) -> Reason {
    const MAX_NAMED: usize = 6;
    let mut reason = because("");
    let mut named: Vec<String> = Vec::new();
    for item in items {
        let what = if item.begun { format!("more of {}", item.what) } else { item.what.clone() };
        if !named.contains(&what) {
            named.push(what);
        }
        let rules = item.rules.iter().filter(|rule| !reason.rules.contains(rule));
        let rules: Vec<RulePlace> = rules.cloned().collect();
        reason.rules.extend(rules);
        let pointers = item.pointers.iter().filter(|place| !reason.pointers.contains(place));
        let pointers: Vec<String> = pointers.cloned().collect();
        reason.pointers.extend(pointers);
    }
    let left = named.len().saturating_sub(MAX_NAMED) + more;
    named.truncate(MAX_NAMED);
    reason.rules.truncate(MAX_NAMED);
    reason.pointers.truncate(MAX_NAMED);
    let rest = if left > 0 { format!(", or {left} more") } else { String::new() };
    reason.message = match named.is_empty() {
        true => "nothing may come".to_owned(),
        false => format!("only this may come: {}{rest}", named.join("; ")),
    };
    reason
}

//! A text in progress, held against slow twins after every step.

use std::collections::BTreeSet;
use std::sync::Arc;

use ffwd_bounds::meter::{faults, heap};
use ffwd_engine::engine::Compiled;
use ffwd_engine::explain::{explain, Question};
use ffwd_engine::fast_forward::forced_bytes;
use ffwd_engine::mask::bits;
use ffwd_engine::matcher::{fill_bitmasks, Beginning, Matcher, MatcherError};
use ffwd_engine::saved;
use ffwd_tokenizer::vocabulary::TokenId;

use crate::driver::Driver;
use crate::engine::{BYTES, ENDS};

/// A limit was passed, so there is nothing more to be said of this text.
pub struct Stopped;

impl From<MatcherError> for Stopped {
    fn from(error: MatcherError) -> Self {
        // Only what is found while a text goes on may stop it: the calls here are all correct.
        assert!(
            matches!(error, MatcherError::Engine(_) | MatcherError::Unreported { .. }),
            "a correct call was refused: {error}"
        );
        Self
    }
}

impl From<ffwd_automaton::EngineError> for Stopped {
    fn from(error: ffwd_automaton::EngineError) -> Self {
        let _ = error.to_string();
        Self
    }
}

/// What a text says about itself.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    tokens: Vec<TokenId>,
    row: Vec<u32>,
    accepting: bool,
    terminated: bool,
}

/// A matcher, and what it said after each of its tokens.
pub struct Session<'d> {
    matcher: Matcher,
    driver: Driver<'d>,
    beginning: Beginning,
    seen: Vec<Seen>,
}

fn row_of(matcher: &Matcher) -> Result<Vec<u32>, Stopped> {
    let mut row = vec![u32::MAX; matcher.compiled().engine.vocabulary().mask_words()];
    matcher.meter().run(|| matcher.fill_bitmask(&mut row))?;
    Ok(row)
}

fn seen(matcher: &Matcher) -> Result<Seen, Stopped> {
    Ok(Seen {
        tokens: matcher.tokens().to_vec(),
        row: row_of(matcher)?,
        accepting: matcher.is_accepting(),
        terminated: matcher.is_terminated(),
    })
}

impl<'d> Session<'d> {
    pub fn new(compiled: Arc<Compiled>, driver: Driver<'d>) -> Result<Self, Stopped> {
        Self::beginning(compiled, Beginning::default(), driver)
    }

    /// Stops where the grammar refuses the beginning, or cannot end in time.
    pub fn beginning(
        compiled: Arc<Compiled>,
        beginning: Beginning,
        driver: Driver<'d>,
    ) -> Result<Self, Stopped> {
        match Matcher::beginning(compiled, &beginning) {
            Ok(matcher) => {
                let first = seen(&matcher)?;
                Ok(Self { matcher, driver, beginning, seen: vec![first] })
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                Err(Stopped)
            }
        }
    }

    fn text(&self, token: TokenId) -> &[u8] {
        self.matcher.compiled().engine.vocabulary().text(token)
    }

    /// What the tokens so far spell, without an end token.
    pub fn spelled(&self) -> Vec<u8> {
        let vocabulary = self.matcher.compiled().engine.vocabulary();
        let is_text = |token: &&TokenId| !vocabulary.is_eos(**token);
        let tokens = self.matcher.tokens().iter().filter(is_text);
        tokens.flat_map(|&token| vocabulary.text(token)).copied().collect()
    }

    fn last(&self) -> &Seen {
        &self.seen[self.seen.len() - 1]
    }

    /// Steps as the driver says; at most so many.
    pub fn steps(&mut self, count: usize) -> Result<(), Stopped> {
        for _ in 0..count {
            self.step()?;
        }
        Ok(())
    }

    /// One step, and all that must hold after it.
    pub fn step(&mut self) -> Result<(), Stopped> {
        match self.driver.below(16) {
            0 => self.roll_back()?,
            1 => self.save_and_load()?,
            2 => self.fork()?,
            3 => self.ask_for_forced_bytes()?,
            4 => self.ask_why()?,
            5 => self.refuse()?,
            6 => self.events()?,
            7 => self.batch()?,
            8..=10 => self.check_by_brute_force()?,
            11 => self.interrupt()?,
            _ => {}
        }
        self.advance()
    }

    /// Takes a token that the mask offers.
    pub fn advance(&mut self) -> Result<(), Stopped> {
        if self.matcher.is_terminated() {
            return self.roll_back();
        }
        let allowed: Vec<TokenId> = bits(&self.last().row).collect();
        assert!(!allowed.is_empty(), "dead end after {:?}", self.shown());
        assert_eq!(self.matcher.allowed()?, allowed, "after {:?}", self.shown());
        // Half of the time something that is not inside of free text, so that texts end.
        let ending = |token: &TokenId| {
            let text = self.text(*token);
            text.is_empty() || text.iter().any(|byte| b"\"}],:)>\n".contains(byte))
        };
        let mut ending: Vec<TokenId> = allowed.iter().copied().filter(ending).collect();
        if self.driver.flag() {
            ending.clear();
        }
        let token = *self.driver.pick(if ending.is_empty() { &allowed } else { &ending });
        assert!(self.matcher.accept(token)?, "{token:?} was offered after {:?}", self.shown());
        let now = seen(&self.matcher)?;
        self.seen.push(now);
        self.check_end()
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.spelled()).into_owned()
    }

    /// The end tokens are offered exactly where the text may end.
    fn check_end(&self) -> Result<(), Stopped> {
        let Seen { row, accepting, terminated, .. } = self.last();
        let offered: BTreeSet<TokenId> = bits(row).filter(|token| ENDS.contains(token)).collect();
        let expected = if *accepting { BTreeSet::from(ENDS) } else { BTreeSet::new() };
        // Where the tokens are counted, the end may have to come later than it could.
        if !self.matcher.is_bounded() {
            assert_eq!(offered, expected, "after {:?}", self.shown());
        }
        assert!(!terminated || *accepting);
        Ok(())
    }

    /// Every token is offered exactly if it would be accepted; and one of several bytes exactly if its
    /// bytes would be, one by one.
    pub fn check_by_brute_force(&self) -> Result<(), Stopped> {
        if self.matcher.is_terminated() {
            return Ok(());
        }
        let vocabulary = self.matcher.compiled().engine.vocabulary();
        let allowed: BTreeSet<TokenId> = bits(&self.last().row).collect();
        let has_tokens = self.matcher.compiled().has_tokens();
        let by_bytes = !has_tokens && !self.matcher.is_bounded() && !self.matcher.is_in_free_text();
        for token in (0..vocabulary.width() as u32).map(TokenId) {
            let offered = allowed.contains(&token);
            let taken = self.matcher.validate(&[token])?;
            assert_eq!(taken == 1, offered, "{token:?} after {:?}", self.shown());
            let text = vocabulary.text(token);
            if by_bytes && text.len() > 1 && !vocabulary.is_eos(token) {
                let bytes: Vec<TokenId> =
                    text.iter().map(|&byte| TokenId(u32::from(byte))).collect();
                let whole = self.matcher.validate(&bytes)? == bytes.len();
                assert_eq!(whole, offered, "bytes of {token:?} after {:?}", self.shown());
            }
        }
        Ok(())
    }

    /// Back by some tokens: all is as it was there.
    pub fn roll_back(&mut self) -> Result<(), Stopped> {
        let taken = self.seen.len() - 1;
        if taken == 0 {
            return Ok(());
        }
        let far = self.driver.once_in(4);
        let count = 1 + self.driver.below(if far { taken } else { taken.min(4) });
        self.matcher.rollback(count)?;
        self.seen.truncate(self.seen.len() - count);
        assert_eq!(&seen(&self.matcher)?, self.last(), "after a rollback of {count}");
        assert!(matches!(
            self.matcher.rollback(self.seen.len()),
            Err(MatcherError::RollbackTooFar { .. })
        ));
        Ok(())
    }

    /// As bytes and back: all is as it was. The grammar, too.
    fn save_and_load(&self) -> Result<(), Stopped> {
        let compiled = self.matcher.compiled();
        let bytes = saved::save_text(&self.matcher).expect("what was compiled can be saved");
        let again = saved::load_text(&bytes, compiled.clone()).map_err(|error| match error {
            saved::SavedError::Matcher(error) => Stopped::from(*error),
            other => panic!("what was saved is refused: {other}"),
        })?;
        assert_eq!(&seen(&again)?, self.last(), "after saving");
        assert_eq!(saved::save_text(&again).expect("it was saved before"), bytes);
        Ok(())
    }

    /// A copy goes its own way, and the first one stays.
    fn fork(&mut self) -> Result<(), Stopped> {
        let mut other = self.matcher.clone();
        assert_eq!(&seen(&other)?, self.last(), "after a copy");
        if !other.is_terminated() {
            let allowed = other.allowed()?;
            assert!(other.accept(*self.driver.pick(&allowed))?);
        }
        assert_eq!(&seen(&self.matcher)?, self.last(), "the first one after a copy");
        if self.driver.flag() && other.tokens().len() == self.seen.len() {
            let now = seen(&other)?;
            self.seen.push(now);
            self.matcher = other;
        }
        Ok(())
    }

    /// Of a forced text, only the next byte may come, byte by byte.
    fn ask_for_forced_bytes(&self) -> Result<(), Stopped> {
        let most = 12;
        let forced = forced_bytes(&self.matcher, most)?;
        if self.matcher.is_in_free_text() || self.matcher.is_terminated() {
            assert!(forced.is_empty());
            return Ok(());
        }
        let mut ahead = self.matcher.clone();
        if ahead.is_bounded() || ahead.compiled().has_tokens() {
            return Ok(());
        }
        for (at, &byte) in forced.iter().enumerate() {
            let row = row_of(&ahead)?;
            let bytes: Vec<TokenId> = bits(&row).filter(|token| token.0 < BYTES).collect();
            let expected = [TokenId(u32::from(byte))];
            assert_eq!(bytes, expected, "at {at} of {forced:?} after {:?}", self.shown());
            assert!(!ahead.is_accepting(), "at {at} of {forced:?} after {:?}", self.shown());
            assert!(ahead.accept(TokenId(u32::from(byte)))?);
        }
        if forced.is_empty() && self.matcher.prefix_left().is_empty() && !ahead.is_accepting() {
            let row = row_of(&ahead)?;
            let bytes: Vec<TokenId> = bits(&row).filter(|token| token.0 < BYTES).collect();
            let is_forced = matches!(bytes[..], [only] if only.0 < 128);
            assert!(!is_forced, "{bytes:?} is the only byte after {:?}", self.shown());
        }
        Ok(())
    }

    /// An explanation agrees with what it explains, and changes nothing.
    fn ask_why(&mut self) -> Result<(), Stopped> {
        let width = self.matcher.compiled().engine.vocabulary().width();
        let token = TokenId(self.driver.below(width) as u32);
        let said = explain(&self.matcher, Some(&Question::Token(token)))?;
        let allowed = self.matcher.validate(&[token])? == 1;
        if let Some(answer) = said.answer.filter(|_| !self.matcher.is_terminated()) {
            assert_eq!(answer.allowed, allowed, "{token:?} after {:?}", self.shown());
        }
        if let Some(completion) = said.completion {
            let taken = self.matcher.validate(&completion)?;
            assert_eq!(taken, completion.len(), "{completion:?} after {:?}", self.shown());
        }
        assert_eq!(&seen(&self.matcher)?, self.last(), "after an explanation");
        Ok(())
    }

    /// What is not offered is refused, and changes nothing.
    fn refuse(&mut self) -> Result<(), Stopped> {
        let width = self.matcher.compiled().engine.vocabulary().width();
        let outside = TokenId(width as u32 + u32::from(self.driver.byte()));
        let error = self.matcher.accept(outside);
        assert!(
            matches!(error, Err(MatcherError::OutOfRange { .. } | MatcherError::AfterEnd { .. })),
            "{outside:?} is no token"
        );
        let token = TokenId(self.driver.below(width) as u32);
        let offered = bits(&self.last().row).any(|other| other == token);
        if !self.matcher.is_terminated() && !offered {
            assert!(!self.matcher.accept(token)?, "{token:?} after {:?}", self.shown());
        }
        assert_eq!(&seen(&self.matcher)?, self.last(), "after a refusal");
        Ok(())
    }

    /// Calls whose deadline passes, or that the system refuses memory, at some place: one that fails has
    /// changed nothing, and what was built by then is right.
    fn interrupt(&mut self) -> Result<(), Stopped> {
        if self.driver.flag() {
            self.matcher.compiled().engine.clear_memos();
        }
        let inject = if self.driver.flag() { faults::inject } else { heap::faults::inject };
        let place = 1 + self.driver.below(1000) as u64;
        let allowed: Vec<TokenId> = bits(&self.last().row).collect();
        let token = (!self.matcher.is_terminated()).then(|| *self.driver.pick(&allowed));
        let mut fork = self.matcher.clone();
        let mut row = vec![u32::MAX; self.last().row.len()];
        inject(Some(place));
        let accepted = token.map(|token| fork.bounded_mut(|fork| fork.accept(token))).transpose();
        let filled = fork.bounded(|fork| fork.fill_bitmask(&mut row));
        inject(None);
        let at = || format!("an end at place {place} after {:?}", self.shown());
        let taken = match accepted.map_err(Stopped::from) {
            Ok(accepted) => {
                assert_ne!(accepted, Some(false), "{token:?} was offered: {}", at());
                usize::from(accepted.is_some())
            }
            Err(Stopped) => 0,
        };
        assert_eq!(fork.tokens().len(), self.matcher.tokens().len() + taken, "{}", at());
        if filled.map_err(Stopped::from).is_ok() {
            assert_eq!(row, row_of(&fork)?, "{}", at());
        }
        fork.rollback(taken)?;
        assert_eq!(&seen(&fork)?, self.last(), "{}", at());
        assert_eq!(&seen(&self.matcher)?, self.last(), "{}", at());
        Ok(())
    }

    fn events(&mut self) -> Result<(), Stopped> {
        let finish = self.matcher.is_terminated();
        for event in self.matcher.events(finish)? {
            assert!(event.start <= event.end, "{event:?}");
        }
        for (capture, _) in self.matcher.captures(finish)? {
            assert!(capture.start <= capture.end, "{capture:?}");
        }
        Ok(())
    }

    /// The rows of a batch are those that are filled one by one.
    fn batch(&mut self) -> Result<(), Stopped> {
        let mut back = self.matcher.clone();
        let count = self.driver.below(self.seen.len().min(3));
        back.rollback(count)?;
        let words = self.last().row.len();
        let mut rows = vec![vec![u32::MAX; words]; 3];
        let matchers = [&self.matcher, &back, &self.matcher];
        let work = matchers.into_iter().zip(rows.iter_mut().map(|row| &mut row[..])).collect();
        fill_bitmasks(work, Some(1)).map_err(|unfilled| unfilled.error)?;
        assert_eq!(rows[0], self.last().row);
        assert_eq!(rows[1], self.seen[self.seen.len() - 1 - count].row);
        assert_eq!(rows[2], self.last().row);
        Ok(())
    }

    /// The shortest completion ends the text. Returns the text.
    pub fn complete(&mut self) -> Result<Vec<u8>, Stopped> {
        if !self.matcher.is_terminated() {
            let completion = self.matcher.shortest_completion()?;
            assert!(self.matcher.accept_all(&completion)?, "{completion:?} {:?}", self.shown());
            assert!(self.matcher.is_terminated(), "{completion:?} {:?}", self.shown());
        }
        Ok(self.spelled())
    }

    /// The same tokens in a new matcher lead to the same place.
    pub fn replay(&self) -> Result<(), Stopped> {
        let compiled = self.matcher.compiled().clone();
        let mut again = Matcher::beginning(compiled, &self.beginning)?;
        assert!(again.accept_all(self.matcher.tokens())?);
        assert_eq!(seen(&again)?, seen(&self.matcher)?, "read again");
        Ok(())
    }
}

/// Walks through texts of a grammar: steps, an end, and from the start again. Returns the texts.
pub fn walk(compiled: &Arc<Compiled>, driver: Driver<'_>, steps: usize) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let _ = walk_into(compiled, driver, steps, &mut texts);
    texts
}

fn walk_into(
    compiled: &Arc<Compiled>,
    driver: Driver<'_>,
    steps: usize,
    texts: &mut Vec<Vec<u8>>,
) -> Result<(), Stopped> {
    let mut session = Session::new(compiled.clone(), driver)?;
    session.check_end()?;
    session.check_by_brute_force()?;
    session.steps(steps)?;
    session.check_by_brute_force()?;
    session.replay()?;
    texts.push(session.complete()?);
    Ok(())
}

/// A compiled grammar as bytes and back is the same grammar.
pub fn save_and_load(compiled: &Arc<Compiled>) {
    let Ok(bytes) = saved::save_grammar(compiled) else { return };
    let again = saved::load_grammar(&bytes, &compiled.engine).expect("it was compiled before");
    let again = again.within(*compiled.limits());
    assert_eq!(saved::save_grammar(&again).expect("it was saved before"), bytes);
    let first = |one| Matcher::new(one).ok().and_then(|matcher| row_of(&matcher).ok());
    let rows = [compiled.clone(), Arc::new(again)].map(first);
    assert_eq!(rows[0], rows[1], "the first masks");
}

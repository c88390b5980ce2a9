//! The budget of tokens of a sequence.
//!
//! The matcher holds a *plan*: tokens that complete its text in time. A token is allowed if the
//! text after it can still be completed in time, or if it is the next one of the plan. At least one
//! is therefore always allowed, and its successors are in time again. A rollback prepends the
//! removed tokens to the plan, which is then one of the earlier position. Because of the plan,
//! completions need not be the shortest: longer ones only narrow the masks sooner.

use std::sync::Arc;

use super::preamble::{Rest, Stage, Step};
use super::sections::{Course, Sections};
use super::{Matcher, MatcherError, Place};
use crate::engine::Generation;
use crate::mask::token_set::{bits, set_bits};
use crate::mask::Completion;
use ffwd_automaton::{Ages, EndingText, EngineError, Result};
use ffwd_bounds::error::LimitExceeded;
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// The tokens that complete a text.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Before the completion, the next one last.
    ahead: Vec<TokenId>,
    completion: Arc<Completion>,
    /// How many tokens of the completion were accepted.
    came: usize,
}

impl Plan {
    pub(super) fn of(completion: Arc<Completion>) -> Self {
        Self { ahead: Vec::new(), completion, came: 0 }
    }

    fn tokens(&self, vocabulary: &Vocabulary) -> Vec<TokenId> {
        let rest = self.completion.tokens(vocabulary).iter().skip(self.came);
        self.ahead.iter().rev().chain(rest).copied().collect()
    }

    pub(super) fn first(&self, vocabulary: &Vocabulary) -> Option<TokenId> {
        let rest = || self.completion.tokens(vocabulary).get(self.came);
        self.ahead.last().or_else(rest).copied()
    }

    /// Returns the whole text it writes.
    pub(super) fn ending(&self) -> EndingText {
        self.completion.ending()
    }

    /// The plan after its first token.
    pub(super) fn rest(&self) -> Self {
        let mut rest = self.clone();
        if rest.ahead.pop().is_none() {
            rest.came += 1;
        }
        rest
    }
}

/// The most tokens of the text, the end token included, or of its parts; and the plan that ends it
/// in time.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    max_tokens: Option<usize>,
    sections: Sections,
}

impl Budget {
    /// Tokens have been taken back.
    pub fn took_back(&mut self, tokens: &[TokenId]) {
        if let Some(plan) = &mut self.sections.now.plan {
            plan.ahead.extend(tokens.iter().rev());
        }
    }

    /// Truncates a text with limits to its first tokens.
    pub fn shorten(&mut self, length: usize) {
        self.sections.shorten(length);
    }

    /// Follows the sequence after this many tokens.
    pub fn follow(&mut self, length: usize, course: Course, has_limits: bool) {
        if has_limits {
            self.sections.follow(length, course);
        } else {
            self.sections.now = course;
        }
    }

    pub fn course(&self) -> &Course {
        &self.sections.now
    }

    pub fn ages_after(&self, length: usize) -> Ages {
        self.sections.ages_after(length)
    }
}

impl Matcher {
    /// How many tokens the text may have, the one that ends it included.
    pub fn max_tokens(&self) -> Option<usize> {
        self.budget.as_ref().and_then(|budget| budget.max_tokens)
    }

    /// Whether a number of tokens is limited: of the text, or of parts of it.
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }

    pub(super) fn course(&self) -> Option<&Course> {
        self.budget.as_ref().map(Budget::course)
    }

    pub(super) fn sections_from(&mut self, sections: Sections) {
        self.budget = Some(Budget { max_tokens: None, sections });
    }

    /// Returns how many tokens are left.
    pub fn tokens_left(&self) -> Option<usize> {
        self.max_tokens().map(|max| max - self.tokens.len().min(max))
    }

    /// Tokens that complete the text, the end token included: few, and usually the fewest. With a
    /// budget, at most as many as are left.
    ///
    /// # Errors
    /// It takes too long to find, or another limit is passed.
    pub fn shortest_completion(&self) -> Result<Vec<TokenId>> {
        let vocabulary = self.compiled.engine.vocabulary();
        if self.terminated {
            return Ok(Vec::new());
        }
        let (generation, state) = self.here()?;
        let place = self.place_in(state);
        if let Some(course) = self.course().filter(|_| generation.automaton.has_limits()) {
            let found = self.in_time(&generation, &place, &course.ages, self.tokens.len())?;
            self.compiled.settle(&generation);
            let plan = found.as_ref().or(course.plan.as_ref());
            return plan.map(|plan| plan.tokens(vocabulary)).ok_or_else(|| not_found().into());
        }
        let found = self.completion_at(&generation, &place)?;
        self.compiled.settle(&generation);
        let left = self.tokens_left().unwrap_or(usize::MAX);
        let plan = self.course().and_then(|course| course.plan.as_ref());
        match (found, plan) {
            (Some(found), _) if found.is_within(vocabulary, left) => {
                Ok(found.tokens(vocabulary).to_vec())
            }
            (_, Some(plan)) => Ok(plan.tokens(vocabulary)),
            (_, None) => Err(not_found().into()),
        }
    }

    /// Sets the budget of a text that begins.
    pub(super) fn limit(&mut self, max_tokens: usize) -> Result<(), MatcherError> {
        if let Some(budget) = &mut self.budget {
            budget.max_tokens = Some(max_tokens);
            return self.check_sections();
        }
        let vocabulary = self.compiled.engine.vocabulary().clone();
        let completion = {
            let (generation, state) = self.here()?;
            let found = self.completion_at(&generation, &self.place_in(state))?;
            self.compiled.settle(&generation);
            found.ok_or_else(|| EngineError::from(not_found()))?
        };
        if !completion.is_within(&vocabulary, max_tokens) {
            let needed = completion.tokens(&vocabulary).len();
            return Err(MatcherError::Budget { needed, max_tokens });
        }
        let sections = Sections::planned(Plan::of(completion));
        self.budget = Some(Budget { max_tokens: Some(max_tokens), sections });
        Ok(())
    }

    /// The completion of a text at a position.
    pub(super) fn completion_at(
        &self,
        generation: &Generation,
        place: &Place,
    ) -> Result<Option<Arc<Completion>>> {
        let Generation { automaton, masker, .. } = generation;
        let Some(known) = masker.completion(automaton, place.state)? else { return Ok(None) };
        Ok(Some(self.beginning_with(place, known)))
    }

    /// A completion of the grammar's text, after what must come before it at a position.
    pub(super) fn beginning_with(&self, place: &Place, known: Arc<Completion>) -> Arc<Completion> {
        if self.is_in_text(place) {
            return known;
        }
        let mut first: Box<[TokenId]> = [].into();
        let mut text = Vec::new();
        if let (Stage::Free(matched), Some(preamble)) = (place.stage, &self.preamble) {
            match preamble.rest(matched) {
                Rest::Tokens(tokens) => first = tokens.into(),
                Rest::Text(close) => text.extend_from_slice(close),
            }
        }
        text.extend_from_slice(&self.prefix[place.read..]);
        let vocabulary = self.compiled.engine.vocabulary();
        Arc::new(known.after(vocabulary, first, text))
    }

    /// The plan after a token that leads to a position; `None` if the text could not end in time.
    pub(super) fn plan_after(
        &self,
        generation: &Generation,
        plan: &Plan,
        from: &Place,
        position: usize,
        token: TokenId,
        next: &Place,
    ) -> Result<Option<Plan>> {
        let vocabulary = self.compiled.engine.vocabulary();
        let max = self.max_tokens().unwrap_or(usize::MAX);
        let Some(left) = max.checked_sub(position + 1) else { return Ok(None) };
        if vocabulary.is_eos(token) {
            return Ok(Some(Plan::of(Arc::new(Completion::ended()))));
        }
        // The rest of the plan is one.
        if plan.first(vocabulary) == Some(token) {
            return Ok(Some(plan.rest()));
        }
        if let Some(completion) = self.completion_at(generation, next)? {
            if completion.is_within(vocabulary, left) {
                return Ok(Some(Plan::of(completion)));
            }
        }
        // The text's own completion may differ after the token.
        let own = self.own_plan(generation, from, left + 1)?;
        Ok(own.filter(|own| own.first(vocabulary) == Some(token)).map(|own| own.rest()))
    }

    /// The completion of the text at a position, if it is in time.
    fn own_plan(
        &self,
        generation: &Generation,
        place: &Place,
        left: usize,
    ) -> Result<Option<Plan>> {
        let vocabulary = self.compiled.engine.vocabulary();
        let own = self.completion_at(generation, place)?;
        Ok(own.filter(|own| own.is_within(vocabulary, left)).map(Plan::of))
    }

    /// Whether the budget is known to leave room for all tokens of the grammar.
    pub(super) fn is_known_ample(&self, generation: &Generation, place: &Place) -> bool {
        if generation.automaton.has_limits() {
            let Some(course) = self.course() else { return true };
            let position = self.tokens.len();
            let ample = self.is_ample_in_sections(generation, place, &course.ages, position, false);
            return matches!(ample, Ok(true));
        }
        let Some(left) = self.tokens_left() else { return true };
        let masker = &generation.masker;
        let enough = |most: usize| left > most;
        self.is_in_text(place) && masker.known_most_after(place.state).is_some_and(enough)
    }

    /// Overwrites a row with the allowed tokens, canonical or not.
    pub(crate) fn fill_in_time(&self, row: &mut [u32]) -> Result<()> {
        let Some(course) = self.course() else {
            return self.fill_by_grammar(row);
        };
        let left = self.tokens_left().unwrap_or(usize::MAX);
        let Some(after) = left.checked_sub(1) else {
            row.fill(0);
            return Ok(());
        };
        let (generation, state) = self.here()?;
        let place = self.place_in(state);
        let Generation { automaton, masker, .. } = &**generation;
        if self.is_in_text(&place) && automaton.has_limits() {
            self.fill_in_sections(&generation, &place, course, row)?;
            self.compiled.settle(&generation);
            return Ok(());
        }
        let mut own = None;
        if self.is_in_text(&place) {
            if masker.most_after(automaton, state)? <= after {
                self.fill_by_grammar(row)?;
            } else {
                masker.fill_within(automaton, state, after, row)?;
                own = self.own_plan(&generation, &place, left)?;
            }
            self.compiled.settle(&generation);
        } else {
            self.fill_by_grammar(row)?;
            self.narrow_beginning(&generation, &place, course, after, row)?;
            if !automaton.has_limits() {
                own = self.own_plan(&generation, &place, left)?;
            }
        }
        let vocabulary = self.compiled.engine.vocabulary();
        let plan = match (&course.plan, automaton.has_limits()) {
            (None, true) => self.in_time(&generation, &place, &course.ages, self.tokens.len())?,
            (plan, _) => plan.clone(),
        };
        for plan in plan.iter().chain(&own) {
            if let Some(first) = plan.first(vocabulary) {
                set_bits(row, &[first]);
            }
        }
        Ok(())
    }

    /// Returns whether the text clearly ends in time after any token within the free text.
    fn is_ample_in_free_text(
        &self,
        generation: &Generation,
        place: &Place,
        course: &Course,
        after: usize,
    ) -> Result<bool> {
        let (Some(preamble), Stage::Free(_)) = (&self.preamble, place.stage) else {
            return Ok(false);
        };
        if generation.automaton.has_limits() {
            for matched in 0..preamble.places() {
                let next = Place { stage: Stage::Free(matched), ..*place };
                if !self.ends_in_time(generation, &next, course, after)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let start = Place { stage: Stage::Free(0), ..*place };
        let completion = self.completion_at(generation, &start)?;
        Ok(completion.is_some_and(|completion| completion.most() <= after))
    }

    /// Whether the text can end in time from the next position, one within the free text.
    fn ends_in_time(
        &self,
        generation: &Generation,
        next: &Place,
        course: &Course,
        after: usize,
    ) -> Result<bool> {
        if generation.automaton.has_limits() {
            let position = self.tokens.len() + 1;
            return Ok(self.in_time(generation, next, &course.ages, position)?.is_some());
        }
        let vocabulary = self.compiled.engine.vocabulary();
        let completion = self.completion_at(generation, next)?;
        Ok(completion.is_some_and(|completion| completion.is_within(vocabulary, after)))
    }

    /// Removes from a mask before the grammar's text the tokens that would leave too few.
    fn narrow_beginning(
        &self,
        generation: &Generation,
        place: &Place,
        course: &Course,
        after: usize,
        row: &mut [u32],
    ) -> Result<()> {
        let vocabulary = self.compiled.engine.vocabulary();
        // By the matched length of the free text's end.
        let mut in_time: Vec<Option<bool>> = Vec::new();
        let mut tokens: Vec<TokenId> = Vec::new();
        match &self.preamble {
            // The most bytes that remain to be written from any position in the free text.
            Some(preamble) if self.is_ample_in_free_text(generation, place, course, after)? => {
                let is_in = |token: &TokenId| row[token.index() / 32] >> (token.0 % 32) & 1 == 1;
                tokens.extend(preamble.closing_tokens(place.stage).filter(is_in));
            }
            _ => tokens.extend(bits(row)),
        }
        for token in tokens {
            let step = self.preamble.as_ref().map(|preamble| preamble.step(place.stage, token));
            let keeps = match step {
                Some(Step::Stays(Stage::Free(matched))) => {
                    let at = matched as usize;
                    if in_time.len() <= at {
                        in_time.resize(at + 1, None);
                    }
                    match in_time[at] {
                        Some(known) => known,
                        None => {
                            let next = Place { stage: Stage::Free(matched), ..*place };
                            let keeps = self.ends_in_time(generation, &next, course, after)?;
                            in_time[at] = Some(keeps);
                            keeps
                        }
                    }
                }
                _ => {
                    let next = match self.step(generation, *place, token, self.tokens.len()) {
                        Ok(next) => next,
                        Err(MatcherError::Engine(error)) => return Err(error),
                        Err(_) => None,
                    };
                    match next {
                        None => false,
                        Some(next) if generation.automaton.has_limits() => {
                            let position = self.tokens.len();
                            match self.settle_place(generation, &next, &course.ages, position)? {
                                Some((next, ages)) => {
                                    self.in_time(generation, &next, &ages, position + 1)?.is_some()
                                }
                                None => false,
                            }
                        }
                        Some(next) => {
                            let completion = self.completion_at(generation, &next)?;
                            completion.is_some_and(|c| c.is_within(vocabulary, after))
                        }
                    }
                }
            };
            if !keeps {
                row[token.index() / 32] &= !(1 << (token.0 % 32));
            }
        }
        Ok(())
    }
}

fn not_found() -> LimitExceeded {
    LimitExceeded::new("completion_steps", ffwd_automaton::MAX_COMPLETION_STEPS)
}

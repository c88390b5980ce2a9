//! Parts of the text with a limited number of tokens.
//!
//! The automaton provides the open parts, and distinguishes those that started with different
//! tokens by their *ages* (`automaton::rules::limits`). This module stores which tokens these are.
//! When a part has used all of its tokens, everything in it that can end has ended, and parses in
//! which it would continue are dropped. As with a budget of the whole text, a token is allowed in
//! two cases. Either a completion within all limits is known after it, or it is the next token of
//! the plan. Far from the limit of a part this is known in advance, without a search.

use super::budget::Plan;
use super::{Matcher, MatcherError, Place};
use crate::engine::{Generation, Recipe};
use crate::mask::token_set::set_bits;
use crate::mask::Completion;
use ffwd_automaton::{Ages, Automaton, OpenPart, Result, StateId, Thread, Threads};
use ffwd_tokenizer::vocabulary::TokenId;

/// The state of a sequence with limits, besides its position.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    pub ages: Ages,
    /// The plan that completes the text in time, once computed.
    pub plan: Option<Plan>,
}

/// The course of a text, and its earlier states.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    pub now: Course,
    /// The number of tokens after which it got that value.
    log: Vec<(usize, Course)>,
}

impl Sections {
    fn new(ages: Ages) -> Self {
        let now = Course { ages, plan: None };
        Self { log: vec![(0, now.clone())], now }
    }

    /// Makes the state of a sequence with a budget and without limits.
    pub fn planned(plan: Plan) -> Self {
        let now = Course { ages: Ages::new(), plan: Some(plan) };
        Self { now, log: Vec::new() }
    }

    /// After one token more.
    pub fn follow(&mut self, length: usize, course: Course) {
        let is_same = course.ages == self.now.ages;
        if !is_same || course.plan.is_some() || self.now.plan.is_some() {
            self.log.push((length, course.clone()));
        }
        self.now = course;
    }

    /// Truncates the text to its first tokens.
    pub fn shorten(&mut self, length: usize) {
        while self.log.len() > 1 && self.log.last().is_some_and(|(after, _)| *after > length) {
            self.log.pop();
        }
        if let Some((_, course)) = self.log.last() {
            self.now = course.clone();
        }
    }

    /// Returns the ages after this many tokens.
    pub fn ages_after(&self, length: usize) -> Ages {
        let after = self.log.partition_point(|(after, _)| *after <= length);
        after.checked_sub(1).map(|place| self.log[place].1.ages.clone()).unwrap_or_default()
    }
}

/// A configuration after a token, with its ages.
pub(super) struct Settled {
    pub threads: Threads,
    pub ages: Ages,
    /// Whether some part has used all of its tokens.
    pub closed: bool,
}

/// Returns the effect of a token at a position: the parts that started with it, and those that have
/// used all of their tokens. `None` if no parse remains.
pub(super) fn settled(
    automaton: &Automaton,
    threads: &[Thread],
    ages: &Ages,
    position: usize,
) -> Result<Option<Settled>> {
    let aged = automaton.limited().aged(threads)?;
    let mut now: Ages = aged.remaining(ages);
    if aged.fresh {
        now.push(position as u32);
    }
    let parts = automaton.limited().open_parts(&aged.threads);
    if parts.iter().all(|part| part.left(&now, position + 1) > 0) {
        return Ok(Some(Settled { threads: aged.threads, ages: now, closed: false }));
    }
    let is_over = |part: &OpenPart| part.left(&now, position + 1) == 0;
    let closed = automaton.limited().closed(&aged.threads, &is_over)?;
    if closed.is_empty() {
        return Ok(None);
    }
    let aged = automaton.limited().aged(&closed)?;
    let ages = aged.remaining(&now);
    Ok(Some(Settled { threads: aged.threads, ages, closed: true }))
}

impl Matcher {
    /// Starts counting if parts of the text have limits. The prompt's share of a part does not
    /// count.
    pub(super) fn begin_sections(&mut self, generation: &Generation, start: StateId) {
        let automaton = &generation.automaton;
        let parts = automaton.limited().open_parts(automaton.threads(start));
        let count = parts.iter().map(|part| part.age + 1).max().unwrap_or(0);
        self.sections_from(Sections::new((0..count).map(|_| 0).collect()));
    }

    /// Fails if no completion keeps all parts of the text within their limits.
    pub(super) fn check_sections(&self) -> Result<(), MatcherError> {
        let Some(course) = self.course() else { return Ok(()) };
        let (generation, state) = self.here()?;
        let place = self.place_in(state);
        if self.in_time(&generation, &place, &course.ages, 0)?.is_some() {
            return Ok(());
        }
        let vocabulary = self.compiled.engine.vocabulary();
        let short = self.completion_at(&generation, &place)?;
        let needed = short.as_ref().map_or(0, |completion| completion.tokens(vocabulary).len());
        if let Some(max_tokens) = self.max_tokens().filter(|&max| needed > max) {
            return Err(MatcherError::Budget { needed, max_tokens });
        }
        let Recipe::Rules { grammar, .. } = self.compiled.recipe() else { return Ok(()) };
        for (part, max_tokens) in generation.automaton.limited().all() {
            let Some(ending) = generation.automaton.completing().of_part(part)? else { continue };
            let alone = Completion::new(vocabulary, [].into(), ending);
            let needed = alone.tokens(vocabulary).len() - alone.num_end_tokens();
            if needed > max_tokens as usize {
                let part = grammar.described(part);
                return Err(MatcherError::Part { part, needed, max_tokens: max_tokens as usize });
            }
        }
        match self.max_tokens() {
            Some(max_tokens) => Err(MatcherError::Budget { needed, max_tokens }),
            None if short.is_none() => {
                let part = generation.automaton.limited().all().first().copied();
                let (part, max_tokens) = match part {
                    Some((part, max_tokens)) => (grammar.described(part), max_tokens),
                    None => (grammar.described_limits(), 0),
                };
                Err(MatcherError::Ends { part, max_tokens: max_tokens as usize })
            }
            None => {
                let max_tokens = generation.automaton.limited().least() as usize;
                let part = grammar.described_limits();
                Err(MatcherError::Part { part, needed, max_tokens })
            }
        }
    }

    /// The position after a token, once parts have begun and ended with it.
    pub(super) fn settle_place(
        &self,
        generation: &Generation,
        next: &Place,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<(Place, Ages)>> {
        if !self.is_in_text(next) {
            return Ok(Some((*next, ages.clone())));
        }
        let automaton = &generation.automaton;
        let threads = automaton.threads(next.state);
        let Some(settled) = settled(automaton, threads, ages, position)? else {
            return Ok(None);
        };
        let state = match settled.threads.as_slice() == threads {
            true => next.state,
            false => automaton.intern(settled.threads)?,
        };
        Ok(Some((Place { state, ..*next }, settled.ages)))
    }

    /// The position after a token, and the course from there; `None` if the token is not allowed.
    pub(super) fn course_after(
        &self,
        generation: &Generation,
        from: &Place,
        before: &Course,
        position: usize,
        token: TokenId,
        next: Place,
    ) -> Result<Option<(Place, Course)>> {
        let vocabulary = self.compiled.engine.vocabulary();
        if !generation.automaton.has_limits() {
            let Some(plan) = &before.plan else { return Ok(None) };
            let plan = self.plan_after(generation, plan, from, position, token, &next)?;
            return Ok(plan.map(|plan| (next, Course { ages: Ages::new(), plan: Some(plan) })));
        }
        if self.max_tokens().is_some_and(|max| position >= max) {
            return Ok(None);
        }
        if vocabulary.is_eos(token) {
            return Ok(Some((next, Course { ages: before.ages.clone(), plan: None })));
        }
        let Some((next, ages)) = self.settle_place(generation, &next, &before.ages, position)?
        else {
            return Ok(None);
        };
        if self.is_ample_in_sections(generation, from, &before.ages, position, true)? {
            return Ok(Some((next, Course { ages, plan: None })));
        }
        if let Some(plan) = self.in_time(generation, &next, &ages, position + 1)? {
            return Ok(Some((next, Course { ages, plan: Some(plan) })));
        }
        let plan = match &before.plan {
            Some(plan) => Some(plan.clone()),
            None => self.in_time(generation, from, &before.ages, position)?,
        };
        let plan = plan.filter(|plan| plan.first(vocabulary) == Some(token));
        Ok(plan.map(|plan| (next, Course { ages, plan: Some(plan.rest()) })))
    }

    /// Returns whether all limits clearly leave enough tokens after any allowed token of a
    /// position, or `find` requests a search.
    pub(super) fn is_ample_in_sections(
        &self,
        generation: &Generation,
        place: &Place,
        ages: &Ages,
        position: usize,
        find: bool,
    ) -> Result<bool> {
        let Generation { automaton, masker, .. } = generation;
        if !self.is_in_text(place) {
            return Ok(false);
        }
        let parts = automaton.limited().open_parts(automaton.threads(place.state));
        // If a limit must end a lexeme, bytes do not show whether it can.
        let ends_lexemes = automaton.limited().end_lexemes();
        if self.max_tokens().is_none() && !ends_lexemes && automaton.limited().are_roomy()? {
            let mut ample = true;
            for part in &parts {
                let bytes =
                    automaton.limited().bytes_to_end(part.node)?.map(|bytes| bytes as usize);
                ample &= bytes.is_some_and(|bytes| bytes < part.left(ages, position));
            }
            if ample {
                return Ok(true);
            }
        }
        let whole = self.max_tokens().map_or(usize::MAX, |max| max.saturating_sub(position));
        let left = parts.iter().map(|part| part.left(ages, position));
        let least =
            left.chain([whole, automaton.limited().least() as usize]).min().unwrap_or(whole);
        let most = match find && least > 1 {
            true => Some(masker.most_after(automaton, place.state)?),
            false => masker.known_most_after(place.state),
        };
        if most.is_some_and(|most| most < least) {
            return Ok(true);
        }
        if !ends_lexemes || self.max_tokens().is_some() {
            return Ok(false);
        }
        let steady = match find && least > 1 {
            true => self.steady_after(generation, place.state)?,
            false => automaton.limited().steady(place.state).flatten(),
        };
        Ok(steady.is_some_and(|tokens| (tokens as usize) < least))
    }

    /// A plan for a text before the token at a position; `None` if it is not known to end in time.
    pub(super) fn in_time(
        &self,
        generation: &Generation,
        place: &Place,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<Plan>> {
        if let Some(plan) = self.in_time_at_once(generation, place, ages, position)? {
            return Ok(Some(plan));
        }
        match generation.automaton.limited().may_end_lexemes() {
            true => self.through_limits(generation, place, ages, position),
            false => Ok(None),
        }
    }

    /// As [`Self::in_time`], without completions in which a limit ends a lexeme.
    pub(super) fn in_time_at_once(
        &self,
        generation: &Generation,
        place: &Place,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<Plan>> {
        let Generation { automaton, .. } = generation;
        let ends_lexemes = automaton.limited().may_end_lexemes();
        let left = self.max_tokens().map_or(usize::MAX, |max| max.saturating_sub(position));
        let mut state = place.state;
        loop {
            let completion = self.completion_at(generation, &Place { state, ..*place })?;
            let parts = automaton.limited().open_parts(automaton.threads(state));
            let mut least = left.min(automaton.limited().least() as usize);
            for part in &parts {
                least = least.min(part.left(ages, position));
            }
            if let Some(completion) = completion {
                // Bytes are no fewer than tokens. A lexeme that was ended early could continue.
                let is_whole = state == place.state || !ends_lexemes;
                let plainly = completion.most() <= least && is_whole;
                if plainly
                    || self.keeps_to_limits(generation, place, ages, position, &completion)?
                {
                    return Ok(Some(Plan::of(completion)));
                }
            }
            // The part that must end first may be missing.
            let first = parts.into_iter().min_by_key(|part| part.left(ages, position));
            let Some(first) = first else { return Ok(None) };
            let rest =
                automaton.limited().closed(automaton.threads(state), &|part| *part == first)?;
            if rest.is_empty() {
                return Ok(None);
            }
            state = automaton.intern(rest)?;
        }
    }

    /// Returns whether a text can continue with a completion and then end.
    pub(super) fn keeps_to_limits(
        &self,
        generation: &Generation,
        place: &Place,
        ages: &Ages,
        position: usize,
        completion: &Completion,
    ) -> Result<bool> {
        let vocabulary = self.compiled.engine.vocabulary();
        let tokens = completion.tokens(vocabulary);
        if self.max_tokens().is_some_and(|max| tokens.len() > max.saturating_sub(position)) {
            return Ok(false);
        }
        let (mut place, mut ages) = (*place, ages.clone());
        for (count, &token) in tokens.iter().enumerate() {
            if vocabulary.is_eos(token) {
                break;
            }
            let position = position + count;
            let next = match self.step(generation, place, token, position) {
                Ok(next) => next,
                Err(MatcherError::Engine(error)) => return Err(error),
                Err(_) => None,
            };
            let Some(next) = next else { return Ok(false) };
            match self.settle_place(generation, &next, &ages, position)? {
                Some(settled) => (place, ages) = settled,
                None => return Ok(false),
            }
        }
        Ok(self.is_in_text(&place) && generation.automaton.is_accepting(place.state))
    }

    /// Overwrites a row with the allowed tokens of a position within the grammar's text.
    pub(super) fn fill_in_sections(
        &self,
        generation: &Generation,
        place: &Place,
        course: &Course,
        row: &mut [u32],
    ) -> Result<()> {
        let Generation { automaton, masker, .. } = generation;
        let vocabulary = self.compiled.engine.vocabulary();
        let position = self.tokens.len();
        if self.is_ample_in_sections(generation, place, &course.ages, position, true)? {
            return self.fill_by_grammar(row);
        }
        row.fill(0);
        if automaton.is_accepting(place.state) {
            set_bits(row, vocabulary.eos());
        }
        for group in masker.groups(automaton, place.state)?.iter() {
            let next = Place { state: group.next, ..*place };
            let settled = self.settle_place(generation, &next, &course.ages, position)?;
            let Some((next, ages)) = settled else { continue };
            if self.in_time(generation, &next, &ages, position + 1)?.is_some() {
                group.add_to(row);
            }
        }
        let plan = match &course.plan {
            Some(plan) => Some(plan.clone()),
            None => self.in_time(generation, place, &course.ages, position)?,
        };
        if let Some(first) = plan.and_then(|plan| plan.first(vocabulary)) {
            set_bits(row, &[first]);
        }
        Ok(())
    }
}

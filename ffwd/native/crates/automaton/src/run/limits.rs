//! Reading with limits of parts (see [`crate::rules::limits`]): which parts are open, and which begin.

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::rules::limit_tables::{Bounds, OpenPart, FRESH};
use crate::rules::limits::PartLimits;
use crate::run::automaton::{Automaton, StateId};
use crate::stacks::ids::StackId;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::lexeme::Ends;

/// The limits, on the stacks of the automaton.
pub(crate) type Parts<'a> = PartLimits<'a, Automaton>;

/// Follows threads with limits of parts.
#[derive(Clone, Copy)]
pub struct Limited<'a> {
    pub(crate) automaton: &'a Automaton,
    pub(crate) parts: Option<Parts<'a>>,
}

impl Automaton {
    /// Whether parts of texts have limits.
    #[inline]
    pub fn has_limits(&self) -> bool {
        self.rules().is_some_and(|rules| rules.limits.is_some())
    }

    /// The same threads, with limits of parts.
    pub fn limited(&self) -> Limited<'_> {
        let parts = self.rules().and_then(|rules| rules.part_limits(self));
        Limited { automaton: self, parts }
    }
}

impl Limited<'_> {
    /// Whether a limit may have to end a lexeme that nothing else can follow.
    pub fn end_lexemes(&self) -> bool {
        self.parts.is_some_and(|parts| parts.rules.program.swallowing.is_possible())
    }

    /// Whether parts have limits and lexemes end at their longest match: what follows a lexeme then
    /// depends on whether a limit has ended it.
    pub fn may_end_lexemes(&self) -> bool {
        self.parts.is_some_and(|parts| !parts.rules.families.is_empty())
    }

    /// How many tokens suffice in a state, if cached: see [`Self::keep_steady`].
    #[allow(clippy::option_option)]
    pub fn steady(&self, state: StateId) -> Option<Option<u32>> {
        self.parts?.limits.steady.lock().get(&state.0).copied()
    }

    /// Caches how many tokens each open part must have left in a state, so that every allowed token
    /// has a completion; `None` if no such number is known.
    pub fn keep_steady(&self, state: StateId, tokens: Option<u32>) {
        if let Some(PartLimits { limits, .. }) = self.parts {
            limits.held.add(map_entry::<u32, Option<u32>>());
            limits.steady.lock().insert(state.0, tokens);
        }
    }

    /// The parts that are open in some thread.
    pub fn open_parts(&self, threads: &[Thread]) -> Vec<OpenPart> {
        let Some(parts) = &self.parts else { return Vec::new() };
        let mut found = Vec::new();
        for thread in threads {
            let on_stack = parts.on_stack(thread.stack);
            found.extend(on_stack.limits.iter().map(|&limit| parts.part(limit)));
        }
        found.retain(|part| part.age < FRESH);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The stack after its top has begun, together with all parts that contain the top.
    pub fn begun(&self, stack: StackId) -> Result<StackId> {
        match &self.parts {
            Some(parts) => parts.opened(stack),
            None => Ok(stack),
        }
    }

    /// As [`Automaton::step`]; the parts that contain the byte begin.
    pub fn step(&self, threads: &[Thread], byte: u8) -> Result<Threads> {
        let Some(parts) = &self.parts else { return self.automaton.step(threads, byte) };
        let mut next = Threads::new();
        for thread in threads {
            self.step_thread(parts, thread, byte, &mut next)?;
        }
        self.automaton.settle(&mut next)?;
        Ok(next)
    }

    fn step_thread(
        &self,
        parts: &Parts<'_>,
        thread: &Thread,
        byte: u8,
        next: &mut Threads,
    ) -> Result<()> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else {
            let opened = Thread { stack: parts.opened(thread.stack)?, ..*thread };
            // After a key comes its colon, so no part begins there.
            next.extend(self.automaton.step(&[opened], byte)?);
            return Ok(());
        };
        if let Some(escaping) = self.automaton.escaping().filter(|it| it.reads(thread, byte)) {
            return escaping.step(thread, byte, true, next);
        }
        let lexeme = self.automaton.lexeme(index);
        let state = thread.lex_state();
        let after = lexeme.next(state, byte)?;
        let goes_on = after.is_some();
        if let Some(after) = after {
            let opened = Thread { stack: parts.opened(thread.stack)?, ..*thread };
            let transcript = self.automaton.append(thread.transcript, byte)?;
            if after.is_final() {
                let ended = Thread { transcript, ..opened };
                let stack = self.automaton.exit_thread(&ended, lexeme.accept(after))?;
                next.extend(self.automaton.following_alive(stack, transcript, true)?);
            } else {
                let text = self.automaton.append(thread.text, byte)?;
                let thread = Thread { state: after.0, text, transcript, ..opened };
                if self.automaton.is_unrivalled(&thread)? {
                    next.push(thread);
                }
            }
        }
        if state.accepts() && !(goes_on && lexeme.spec().ends != Ends::Anywhere) {
            let stack = self.automaton.exit_thread(thread, lexeme.accept(state))?;
            for start in &self.automaton.following(stack, thread.transcript)? {
                self.step_thread(parts, start, byte, next)?;
            }
        }
        Ok(())
    }

    /// As [`Automaton::read`], or as [`Automaton::walk`] if a token can only be its text; the parts
    /// that contain the token begin.
    pub fn read(
        &self,
        threads: &[Thread],
        token: Option<u32>,
        text: &[u8],
    ) -> Result<Option<Threads>> {
        let Some(parts) = &self.parts else {
            return match token {
                Some(token) => self.automaton.read(threads, token, text),
                None => self.automaton.walk(threads, text),
            };
        };
        let mut next = Threads::new();
        if let Some(token) = token {
            for (set, stack) in self.automaton.token_exits(threads)? {
                if parts.rules.program.is_in_set(set, token) {
                    let opened = parts.opened(stack)?;
                    next.extend_from_slice(self.automaton.starts(opened)?);
                }
            }
        }
        if token.is_none() || !text.is_empty() {
            let mut current = Threads::from_slice(threads);
            for &byte in text {
                current = self.step(&current, byte)?;
            }
            next.extend(current);
        }
        self.automaton.settle(&mut next)?;
        Ok((!next.is_empty()).then_some(next))
    }

    /// The most bytes that end a part that has begun; `None` if that is unknown.
    ///
    /// # Errors
    /// A limit of a lexeme is exceeded.
    pub fn bytes_to_end(&self, part: NodeId) -> Result<Option<u32>> {
        Ok(self.part_bounds()?.and_then(|bounds| bounds.bytes_to_end(part)))
    }

    /// Returns whether every part with a limit can be completed in time after any first token.
    ///
    /// # Errors
    /// A limit of a lexeme is exceeded.
    pub fn are_roomy(&self) -> Result<bool> {
        Ok(self.part_bounds()?.is_some_and(|bounds| bounds.all_are_roomy))
    }

    fn part_bounds(&self) -> Result<Option<&Bounds>> {
        match self.automaton.rules() {
            Some(rules) => rules.bounds(self.automaton),
            None => Ok(None),
        }
    }

    /// The parts with a limit, and how many tokens they may have; sorted.
    pub fn all(&self) -> Vec<(NodeId, u32)> {
        let limits = self.automaton.program().map(|program| &program.limits);
        let mut parts: Vec<(NodeId, u32)> =
            limits.into_iter().flatten().map(|(&node, &max)| (node, max)).collect();
        parts.sort_unstable();
        parts
    }

    /// The least limit of a part.
    pub fn least(&self) -> u32 {
        let limits = self.automaton.program().map(|program| program.limits.values());
        limits.and_then(|limits| limits.copied().filter(|&max| max > 0).min()).unwrap_or(u32::MAX)
    }
}

//! Parts of a text with a limited number of tokens.
//!
//! A part with a limit pushes a frame below its content. The frame is transparent: after the
//! content, the stack below continues. The stack does not hold the number of tokens of a part, so
//! that all texts share stacks and masks. The frame has an *age* instead. Open parts started at
//! different tokens, and the age is the rank of a part's first token among these, the oldest first.
//! The caller that follows a text has these tokens (`matcher::sections`).
//!
//! A part starts with its first byte, or with a token that is taken as a whole. Until then its
//! frame is *unopened*; with that byte it is *fresh*, and after the token it gets an age
//! ([`Automaton::aged`]). Masks ignore ages, because they concern only the next token.
//!
//! A part within one that may have no more tokens than it needs no frame of its own. The number of
//! ages is therefore at most the number of different limits, except in ambiguous texts.

mod ages;

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::completion::EndingText;
use super::config::{Automaton, StateId};
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::intern::Interner;
use super::limit_bounds::Bounds;
use super::memory::{map_entry, Bytes, Held};
use super::rules::Rules;
use super::thread::{Thread, ThreadLexeme, Threads};
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::lexeme::Ends;

/// Nothing of the part has come.
const UNOPENED: u32 = u32::MAX;
/// The part has begun with the token that is being read.
const FRESH: u32 = u32::MAX - 1;

/// A part with a limit, as a frame has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Limit {
    node: NodeId,
    age: u32,
}

impl Held for Limit {}

/// The limits of a stack.
#[derive(Clone, Debug)]
struct OnStack {
    /// The limits that are on it, or on one of the stacks that it stands for; sorted.
    limits: Arc<[u32]>,
    /// The tightest limit of the parts that contain every continuation.
    tightest: u32,
}

/// The parts of the automaton that only grammars with limits have.
#[derive(Debug)]
pub(super) struct Limits {
    frames: Interner<Limit>,
    on_stacks: Mutex<FxHashMap<StackId, OnStack>>,
    /// Stacks, with what is unopened on them begun.
    opened: Mutex<FxHashMap<StackId, StackId>>,
    nothing: Arc<[u32]>,
    pub(super) bounds: OnceLock<Bounds>,
    /// By state: see [`Automaton::keep_steady`].
    steady: Mutex<FxHashMap<u32, Option<u32>>>,
    held: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frames: Interner::new("open_part_limits", 1 << 20),
            on_stacks: Mutex::default(),
            opened: Mutex::default(),
            nothing: Arc::from([]),
            bounds: OnceLock::new(),
            steady: Mutex::default(),
            held: Bytes::default(),
        }
    }
}

impl Limits {
    pub(super) fn memory_bytes(&self) -> usize {
        self.frames.memory_bytes() + self.held.get()
    }
}

/// A part that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenPart {
    /// The limit, a node of the grammar.
    pub node: NodeId,
    /// How many tokens the part may have.
    pub max_tokens: u32,
    /// The rank of its first token among those of the open parts.
    pub age: u32,
}

/// A configuration after a token.
#[derive(Clone, Debug)]
pub struct Aged {
    /// The threads, with the ages of the parts that they are in.
    pub threads: Threads,
    /// The ages that are left, in the order of the new ones.
    pub kept: SmallVec<[u32; 2]>,
    /// Whether parts that are open began with the token; theirs is the last age.
    pub fresh: bool,
}

/// A change of a limit on a stack.
enum Change {
    Keep,
    Age(u32),
    /// No text goes on through it.
    Drop,
}

/// How stacks become others.
type Rewritten = FxHashMap<StackId, Option<StackId>>;

impl Automaton {
    /// Whether parts of texts have limits.
    #[inline]
    pub fn has_limits(&self) -> bool {
        self.limits().is_some()
    }

    fn limits(&self) -> Option<(&Rules, &Limits)> {
        let rules = self.rules()?;
        Some((rules, rules.limits.as_ref()?))
    }

    /// The stack on which a part begins that the matcher reports or limits; `None` where nothing may
    /// come in it.
    pub(super) fn push_limit(
        &self,
        rules: &Rules,
        node: NodeId,
        parent: StackId,
    ) -> Result<Option<StackId>, EngineError> {
        let (Some(limits), Some(&max)) = (&rules.limits, rules.program.limits.get(&node)) else {
            return Ok(Some(parent));
        };
        if max == 0 {
            return Ok(None);
        }
        if self.on_stack(rules, limits, parent).tightest <= max {
            return Ok(Some(parent));
        }
        let limit = limits.frames.intern(Limit { node, age: UNOPENED })?;
        Ok(Some(self.push(Frame::Limit(limit), parent)?))
    }

    /// The stacks on which a stack stands.
    fn below(&self, rules: &Rules, stack: StackId) -> SmallVec<[StackId; 4]> {
        let cell = self.cell(stack);
        match cell.frame {
            Frame::End => SmallVec::new(),
            Frame::Union(union) => rules.unions.get(union).members.clone(),
            Frame::Row(row) => rules.rows.get(row).0.clone(),
            _ => SmallVec::from_slice(&[cell.parent]),
        }
    }

    fn on_stack(&self, rules: &Rules, limits: &Limits, stack: StackId) -> OnStack {
        let known = |stack: StackId| limits.on_stacks.lock().get(&stack).cloned();
        let nothing = || OnStack { limits: limits.nothing.clone(), tightest: u32::MAX };
        let mut pending = vec![stack];
        while let Some(&top) = pending.last() {
            if known(top).is_some() {
                pending.pop();
                continue;
            }
            let below = self.below(rules, top);
            let before = pending.len();
            pending.extend(below.iter().copied().filter(|&stack| known(stack).is_none()));
            if pending.len() > before {
                continue;
            }
            let own = match self.cell(top).frame {
                Frame::Limit(limit) => Some(limit),
                _ => None,
            };
            let below: SmallVec<[OnStack; 4]> = below.iter().filter_map(|&s| known(s)).collect();
            let mut tightest = match below.iter().map(|below| below.tightest).max() {
                Some(tightest) => tightest,
                // The end; a union of nothing leads nowhere.
                None if top == StackId::END => u32::MAX,
                None => 0,
            };
            let all = match (own, &below[..]) {
                (None, [one]) => one.limits.clone(),
                _ => {
                    let mut all: Vec<u32> = own.into_iter().collect();
                    below.iter().for_each(|below| all.extend_from_slice(&below.limits));
                    all.sort_unstable();
                    all.dedup();
                    if all.is_empty() {
                        limits.nothing.clone()
                    } else {
                        limits.held.add(all.len() * 4 + 16);
                        all.into()
                    }
                }
            };
            if let Some(limit) = own {
                tightest = tightest.min(self.part(rules, limits, limit).max_tokens);
            }
            limits.held.add(map_entry::<StackId, OnStack>());
            limits.on_stacks.lock().insert(top, OnStack { limits: all, tightest });
            pending.pop();
        }
        known(stack).unwrap_or_else(nothing)
    }

    fn part(&self, rules: &Rules, limits: &Limits, limit: u32) -> OpenPart {
        let &Limit { node, age } = limits.frames.get(limit);
        let max_tokens = rules.program.limits.get(&node).copied().unwrap_or(u32::MAX);
        OpenPart { node, max_tokens, age }
    }

    /// The stacks below limits that stand on a stack with nothing above that must still come.
    pub(super) fn below_limits(&self, rules: &Rules, stack: StackId) -> SmallVec<[StackId; 2]> {
        let mut found = SmallVec::new();
        if rules.limits.is_none() {
            return found;
        }
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        let mut pending: SmallVec<[StackId; 4]> = SmallVec::from_slice(&[stack]);
        while let Some(stack) = pending.pop() {
            if !seen.insert(stack) {
                continue;
            }
            let cell = self.cell(stack);
            match cell.frame {
                Frame::Union(_) => pending.extend(self.below(rules, stack)),
                Frame::Limit(_) => found.push(cell.parent),
                _ if self.may_be_empty(rules, stack) => pending.push(cell.parent),
                _ => {}
            }
        }
        found
    }

    /// Whether lexemes within parts that have limits may have to be ended by these: nothing else
    /// may follow them.
    pub fn limits_end_lexemes(&self) -> bool {
        self.limits().is_some_and(|(rules, _)| rules.program.swallowing.is_possible())
    }

    /// Whether parts have limits and lexemes end at their longest match, so that what follows a lexeme
    /// depends on whether a limit has ended it.
    pub fn limits_may_end_lexemes(&self) -> bool {
        self.limits().is_some_and(|(rules, _)| !rules.families.is_empty())
    }

    /// How many tokens suffice in a state, if that was kept: see [`Automaton::keep_steady`].
    #[allow(clippy::option_option)]
    pub fn steady(&self, state: StateId) -> Option<Option<u32>> {
        let (_, limits) = self.limits()?;
        limits.steady.lock().get(&state.0).copied()
    }

    /// Keeps how many tokens all open parts must have left in a state so that any that may come can be
    /// followed to an end; `None` where no number is known.
    pub fn keep_steady(&self, state: StateId, tokens: Option<u32>) {
        if let Some((_, limits)) = self.limits() {
            limits.held.add(map_entry::<u32, Option<u32>>());
            limits.steady.lock().insert(state.0, tokens);
        }
    }

    /// The parts that have begun and not ended, for some thread.
    pub fn open_parts(&self, threads: &[Thread]) -> Vec<OpenPart> {
        let Some((rules, limits)) = self.limits() else { return Vec::new() };
        let mut found = Vec::new();
        for thread in threads {
            let on_stack = self.on_stack(rules, limits, thread.stack);
            found.extend(on_stack.limits.iter().map(|&limit| self.part(rules, limits, limit)));
        }
        found.retain(|part| part.age < FRESH);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The parts with a limit, and how many tokens they may have.
    pub fn limited_parts(&self) -> Vec<(NodeId, u32)> {
        let limits = self.rules().map(|rules| &rules.program.limits);
        let mut parts: Vec<(NodeId, u32)> =
            limits.into_iter().flatten().map(|(&node, &max)| (node, max)).collect();
        parts.sort_unstable();
        parts
    }

    /// A short text of a part with a limit; `None` where it may be empty, or none is found.
    pub fn ending_of_part(&self, part: NodeId) -> Result<Option<EndingText>, EngineError> {
        let Some(rules) = self.rules() else { return Ok(None) };
        let symbols = &rules.program.symbols;
        for id in (0..symbols.len() as u32).map(SymbolId) {
            let &Symbol::Marked(node, inner) = symbols.get(id) else { continue };
            if node != part {
                continue;
            }
            if symbols.is_nullable(inner) {
                return Ok(None);
            }
            let stack = self.push_symbol(rules, inner, StackId::END)?;
            return self.completion(self.starts(stack)?);
        }
        Ok(None)
    }

    /// The stack with some of its limits changed; `None` where no text goes on from it then.
    fn rewritten(
        &self,
        (rules, limits): (&Rules, &Limits),
        root: StackId,
        change: &impl Fn(&Limit) -> Change,
        known: &mut Rewritten,
    ) -> Result<Option<StackId>, EngineError> {
        let changes = |limit: &u32| !matches!(change(limits.frames.get(*limit)), Change::Keep);
        let mut pending = vec![root];
        while let Some(&top) = pending.last() {
            if known.contains_key(&top) {
                pending.pop();
                continue;
            }
            if !self.on_stack(rules, limits, top).limits.iter().any(changes) {
                known.insert(top, Some(top));
                continue;
            }
            let below = self.below(rules, top);
            let before = pending.len();
            pending.extend(below.iter().copied().filter(|stack| !known.contains_key(stack)));
            if pending.len() > before {
                continue;
            }
            let of = |stack: StackId| known.get(&stack).copied().flatten();
            let parent = of(self.cell(top).parent);
            let frame = self.cell(top).frame;
            let now = match (frame, parent) {
                (Frame::Union(_), _) => {
                    let members: SmallVec<[StackId; 8]> =
                        below.iter().filter_map(|&stack| of(stack)).collect();
                    if members.is_empty() {
                        None
                    } else {
                        Some(self.union(rules, &members)?)
                    }
                }
                (Frame::Row(_), _) => {
                    let nowhere = self.union(rules, &[])?;
                    let after: SmallVec<[StackId; 4]> =
                        below.iter().map(|&stack| of(stack).unwrap_or(nowhere)).collect();
                    if after.iter().all(|&stack| self.leads_nowhere(stack)) {
                        None
                    } else {
                        Some(self.push_row(rules, after)?)
                    }
                }
                (_, None) => None,
                (Frame::Limit(limit), Some(parent)) => {
                    let &Limit { node, age } = limits.frames.get(limit);
                    let age = match change(&Limit { node, age }) {
                        Change::Keep => Some(age),
                        Change::Age(age) => Some(age),
                        Change::Drop => None,
                    };
                    match age {
                        Some(age) => {
                            let limit = limits.frames.intern(Limit { node, age })?;
                            Some(self.push(Frame::Limit(limit), parent)?)
                        }
                        None => None,
                    }
                }
                (frame, Some(parent)) => Some(self.push(frame, parent)?),
            };
            known.insert(top, now);
            pending.pop();
        }
        Ok(known.get(&root).copied().flatten())
    }

    /// The stack after a byte of the lexeme on top of it: what is unopened begins.
    fn opened(&self, all: (&Rules, &Limits), stack: StackId) -> Result<StackId, EngineError> {
        let (rules, limits) = all;
        if self.on_stack(rules, limits, stack).limits.is_empty() {
            return Ok(stack);
        }
        if let Some(&known) = limits.opened.lock().get(&stack) {
            return Ok(known);
        }
        let open = |limit: &Limit| match limit.age {
            UNOPENED => Change::Age(FRESH),
            _ => Change::Keep,
        };
        let opened = self.rewritten(all, stack, &open, &mut Rewritten::default())?;
        let opened = opened.unwrap_or(stack);
        limits.held.add(map_entry::<StackId, StackId>());
        limits.opened.lock().insert(stack, opened);
        Ok(opened)
    }

    /// A stack after what is on top of it has begun, with all the parts that this belongs to.
    pub fn begun(&self, stack: StackId) -> Result<StackId, EngineError> {
        match self.limits() {
            Some(all) => self.opened(all, stack),
            None => Ok(stack),
        }
    }

    /// As [`Automaton::step`], and the parts begin that the byte belongs to.
    pub fn step_open(&self, threads: &[Thread], byte: u8) -> Result<Threads, EngineError> {
        let Some(all) = self.limits() else { return self.step(threads, byte) };
        let mut next = Threads::new();
        for thread in threads {
            self.step_open_thread(all, thread, byte, &mut next)?;
        }
        self.settle(&mut next)?;
        Ok(next)
    }

    fn step_open_thread(
        &self,
        all: (&Rules, &Limits),
        thread: &Thread,
        byte: u8,
        next: &mut Threads,
    ) -> Result<(), EngineError> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else {
            let opened = Thread { stack: self.opened(all, thread.stack)?, ..*thread };
            // After a key comes its colon, so no part begins there.
            next.extend(self.step(&[opened], byte)?);
            return Ok(());
        };
        let lexeme = self.lexeme(index);
        let state = thread.lex_state();
        let after = lexeme.next(state, byte)?;
        let goes_on = after.is_some();
        if let Some(after) = after {
            let opened = Thread { stack: self.opened(all, thread.stack)?, ..*thread };
            let transcript = self.append(thread.transcript, byte)?;
            if after.is_final() {
                let ended = Thread { transcript, ..opened };
                let stack = self.exit_thread(&ended, lexeme.accept(after))?;
                next.extend(self.following_alive(stack, transcript, true)?);
            } else {
                let text = self.append(thread.text, byte)?;
                let thread = Thread { state: after.0, text, transcript, ..opened };
                if self.is_unrivalled(&thread)? {
                    next.push(thread);
                }
            }
        }
        if state.accepts() && !(goes_on && lexeme.spec().ends != Ends::Anywhere) {
            let stack = self.exit_thread(thread, lexeme.accept(state))?;
            for start in &self.following(stack, thread.transcript)? {
                self.step_open_thread(all, start, byte, next)?;
            }
        }
        Ok(())
    }

    /// As [`Automaton::read`], or as [`Automaton::walk`] where a token may only be its text; and the
    /// parts begin that the token belongs to.
    pub fn read_open(
        &self,
        threads: &[Thread],
        token: Option<u32>,
        text: &[u8],
    ) -> Result<Option<Threads>, EngineError> {
        let Some(all) = self.limits() else {
            return match token {
                Some(token) => self.read(threads, token, text),
                None => self.walk(threads, text),
            };
        };
        let mut next = Threads::new();
        if let Some(token) = token {
            for (set, stack) in self.token_exits(threads)? {
                if self.is_in_set(set, token) {
                    let opened = self.opened(all, stack)?;
                    next.extend_from_slice(self.starts(opened)?);
                }
            }
        }
        if token.is_none() || !text.is_empty() {
            let mut current = Threads::from_slice(threads);
            for &byte in text {
                current = self.step_open(&current, byte)?;
            }
            next.extend(current);
        }
        self.settle(&mut next)?;
        Ok((!next.is_empty()).then_some(next))
    }
}

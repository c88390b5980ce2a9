//! The ends of a text's pieces, before the whole text is known.
//!
//! A pre-tokenizer decides with the whole text. This automaton reads a text byte by byte, receives
//! the ends of pieces, and rejects those that no continuation of the text makes true.
//!
//! A state is a set of *accounts*, one [`StageHypothesis`] for each stage: the open piece of each
//! stage, and the conditions on the later text. A piece of the last stage ends at its own splits,
//! or at those of an earlier stage, which are the end of the text for the later ones. An account is
//! dropped if no text makes it true, and the accounts of a state share the ends of pieces; each way
//! to split a text has one state.

use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{ClassId, ClassSet, Classes, Decoded, DecoderNode};
use super::hypothesis::StageHypothesis;
use super::stage::Stage;
use super::work::Work;
use ffwd_bounds::error::LimitExceeded;

/// A text read so far and where its pieces have ended, as far as it matters for the rest: a state
/// of [`Boundaries`] and a place within a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct HypothesisId(pub u32);

/// Bits of the place within a character.
const NODE_BITS: u32 = 15;
const MAX_ACCOUNTS: usize = 1 << 14;
const MAX_STATES: usize = 1 << 14;
/// No state.
const NONE: u32 = u32::MAX;

impl HypothesisId {
    fn new(state: u32, node: DecoderNode) -> Self {
        Self(state << NODE_BITS | u32::from(node.0))
    }

    #[inline]
    fn state(self) -> usize {
        (self.0 >> NODE_BITS) as usize
    }

    #[inline]
    fn node(self) -> DecoderNode {
        DecoderNode((self.0 & ((1 << NODE_BITS) - 1)) as u16)
    }
}

/// The automaton of a pre-tokenizer over bytes and ends of pieces.
#[derive(Debug)]
pub struct Boundaries {
    classes: Arc<Classes>,
    /// By state and class.
    steps: Vec<u32>,
    /// The classes that continue a state.
    alive: Vec<ClassSet>,
    closes: Vec<Option<HypothesisId>>,
    ends: Vec<bool>,
    /// By state, the characters of one byte that lead where they lead at the start of a text.
    anew: Vec<u128>,
    /// The same after a space.
    anew_after_space: Vec<u128>,
}

impl Boundaries {
    pub(super) fn new(classes: &Arc<Classes>, stages: &[Stage]) -> Result<Self, LimitExceeded> {
        let mut work = Work::new();
        let accounts = Accounts::new(classes, stages, &mut work)?;
        let mut states: Interner<Vec<AccountId>> = Interner::default();
        states.add(vec![AccountId(0)]);
        let mut boundaries = Self {
            classes: Arc::clone(classes),
            steps: Vec::new(),
            alive: Vec::new(),
            closes: Vec::new(),
            ends: Vec::new(),
            anew: Vec::new(),
            anew_after_space: Vec::new(),
        };
        let mut state = 0;
        while let Some(members) = states.get(state).cloned() {
            let mut successor = |list: Vec<AccountId>| match list.is_empty() {
                true => Ok(NONE),
                false if states.len() < MAX_STATES => Ok(states.add(list)),
                false => Err(LimitExceeded::new("boundary_states", MAX_STATES)),
            };
            let mut alive = ClassSet::NONE;
            work.spend(members.len() * classes.count() * 4)?;
            for class in classes.iter() {
                let step = successor(accounts.union(&members, |account| account.steps_by(class)))?;
                if step != NONE {
                    alive.insert(class);
                }
                boundaries.steps.push(step);
            }
            let close = successor(accounts.union(&members, |account| &account.closes))?;
            let close = (close != NONE).then(|| HypothesisId::new(close, DecoderNode::START));
            boundaries.alive.push(alive);
            boundaries.closes.push(close);
            boundaries.ends.push(members.iter().any(|&id| accounts.get(id).can_end));
            state += 1;
        }
        work.spend(state * 32)?;
        let all = || (0..state as u32).map(|state| HypothesisId::new(state, DecoderNode::START));
        let start = boundaries.start();
        boundaries.anew = all().map(|from| boundaries.find_anew(from, start)).collect();
        // Where a piece may not end behind the space.
        let spaced = boundaries.step(start, b' ');
        let closed = spaced.and_then(|spaced| boundaries.close(spaced).first().copied());
        let after_space = |from| {
            let anew = boundaries.find_anew(boundaries.step(from, b' ')?, spaced?);
            let ends = |&byte: &u8| closed.and_then(|next| boundaries.step(next, byte)).is_some();
            Some((0..128u8).filter(ends).fold(anew, |anew, byte| anew & !(1 << byte)))
        };
        boundaries.anew_after_space = all().map(|from| after_space(from).unwrap_or(0)).collect();
        Ok(boundaries)
    }

    /// The characters of one byte that lead to the same place from two.
    fn find_anew(&self, from: HypothesisId, start: HypothesisId) -> u128 {
        (0..128).fold(0, |found, byte| {
            let next = self.step(from, byte);
            let is_anew = next.is_some() && next == self.step(start, byte);
            found | u128::from(is_anew) << byte
        })
    }

    /// All places between characters.
    pub fn places(&self) -> impl Iterator<Item = HypothesisId> {
        (0..self.ends.len() as u32).map(|state| HypothesisId::new(state, DecoderNode::START))
    }

    /// The characters of one byte after which nothing is known of the text before, as bits.
    #[inline]
    pub fn anew(&self, hypothesis: HypothesisId) -> u128 {
        match hypothesis.node() == DecoderNode::START {
            true => self.anew[hypothesis.state()],
            false => 0,
        }
    }

    /// The same for characters behind a space. No piece ends between the two.
    #[inline]
    pub fn anew_after_space(&self, hypothesis: HypothesisId) -> u128 {
        match hypothesis.node() == DecoderNode::START {
            true => self.anew_after_space[hypothesis.state()],
            false => 0,
        }
    }

    /// At the start of a text: a piece without a character is open.
    pub fn start(&self) -> HypothesisId {
        HypothesisId::new(0, DecoderNode::START)
    }

    /// Continues the open piece with this byte; `None` if no text is split in that way, or the byte
    /// is not UTF-8.
    #[inline]
    pub fn step(&self, hypothesis: HypothesisId, byte: u8) -> Option<HypothesisId> {
        let state = hypothesis.state();
        match self.classes.step(hypothesis.node(), byte) {
            Decoded::Class(class) => {
                let next = self.steps[state * self.classes.count() + class.index()];
                (next != NONE).then(|| HypothesisId::new(next, DecoderNode::START))
            }
            Decoded::Pending(node) => {
                let possible = self.alive[state].and(self.classes.below(node));
                (!possible.is_empty()).then(|| HypothesisId::new(state as u32, node))
            }
            Decoded::Invalid => None,
        }
    }

    /// Ends the open piece, which has at least one character, and opens a new one. `None` if no
    /// text is split here.
    #[inline]
    pub fn close(&self, hypothesis: HypothesisId) -> &[HypothesisId] {
        if hypothesis.node() == DecoderNode::START {
            self.closes[hypothesis.state()].as_slice()
        } else {
            &[]
        }
    }

    /// Whether the text has ended: no character may follow.
    pub fn is_over(&self, hypothesis: HypothesisId) -> bool {
        self.alive[hypothesis.state()].is_empty()
    }

    /// Whether the text may end here: with the open piece, or, if that has no character, with the
    /// one before.
    #[inline]
    pub fn can_end(&self, hypothesis: HypothesisId) -> bool {
        hypothesis.node() == DecoderNode::START && self.ends[hypothesis.state()]
    }

    #[cfg(test)]
    pub(crate) fn state_count(&self) -> usize {
        self.ends.len()
    }
}

/// Values and their numbers, in the order of insertion.
struct Interner<T> {
    values: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { values: Vec::new(), ids: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn add(&mut self, value: T) -> u32 {
        match self.ids.get(&value) {
            Some(&id) => id,
            None => {
                let id = self.values.len() as u32;
                self.values.push(value.clone());
                self.ids.insert(value, id);
                id
            }
        }
    }

    fn get(&self, id: usize) -> Option<&T> {
        self.values.get(id)
    }

    fn len(&self) -> usize {
        self.values.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct AccountId(u32);

impl AccountId {
    /// The state after a piece that only ends with the text; it gets a number after all others.
    const ENDED: Self = Self(u32::MAX);
}

/// An account: one hypothesis of each stage, by number.
type Parts = Vec<u32>;

#[derive(Default)]
struct Account {
    /// By class.
    steps: Vec<Vec<AccountId>>,
    closes: Vec<AccountId>,
    can_end: bool,
    viable: bool,
}

impl Account {
    fn steps_by(&self, class: ClassId) -> &[AccountId] {
        self.steps.get(class.index()).map_or(&[], Vec::as_slice)
    }
}

/// All accounts that some text reaches.
struct Accounts {
    accounts: Vec<Account>,
}

impl Accounts {
    fn new(classes: &Classes, stages: &[Stage], work: &mut Work) -> Result<Self, LimitExceeded> {
        let mut parts: Interner<Parts> = Interner::default();
        let mut of_stages: Vec<StageHypotheses<'_>> =
            stages.iter().map(StageHypotheses::new).collect();
        parts.add(vec![0; stages.len()]);
        let mut accounts: Vec<Account> = Vec::new();
        let mut id = 0;
        let limit = || LimitExceeded::new("boundary_accounts", MAX_ACCOUNTS);
        while let Some(account) = parts.get(id).cloned() {
            let mut add = |list: Vec<Parts>| -> Vec<AccountId> {
                list.into_iter().map(|account| AccountId(parts.add(account))).collect()
            };
            let mut steps = Vec::with_capacity(classes.count());
            for class in classes.iter() {
                let choices: Vec<Vec<u32>> = of_stages
                    .iter_mut()
                    .zip(&account)
                    .map(|(stage, &part)| stage.step(part, class, work))
                    .collect::<Result<_, _>>()?;
                steps.push(add(product(&choices, work)?));
            }
            let mut closes = Vec::new();
            let ending: Vec<bool> =
                of_stages.iter().zip(&account).map(|(stage, &part)| stage.can_end(part)).collect();
            for closing in 0..stages.len() {
                // The later stages are at the end of their text.
                if !ending.iter().skip(closing + 1).all(|&can| can) {
                    continue;
                }
                let ends = of_stages
                    .get_mut(closing)
                    .zip(account.get(closing))
                    .map_or(Ok(Vec::new()), |(stage, &part)| stage.close(part, work))?;
                for part in ends {
                    let mut closed = account.clone();
                    for later in closed.iter_mut().skip(closing) {
                        *later = 0;
                    }
                    if let Some(own) = closed.get_mut(closing) {
                        *own = part;
                    }
                    closes.push(closed);
                }
            }
            let can_end = ending.iter().all(|&can| can);
            let with_the_text = closes.iter().any(|closed| {
                of_stages.iter().zip(closed).all(|(stage, &part)| stage.can_end(part))
            });
            let mut closes = add(closes);
            let open = of_stages.last().zip(account.last());
            if can_end && !with_the_text && open.is_some_and(|(stage, &part)| stage.is_open(part)) {
                closes.push(AccountId::ENDED);
            }
            accounts.push(Account { steps, closes, can_end, viable: can_end });
            if parts.len() > MAX_ACCOUNTS || of_stages.iter().any(StageHypotheses::is_large) {
                return Err(limit());
            }
            id += 1;
        }
        let ended = AccountId(accounts.len() as u32);
        for close in accounts.iter_mut().flat_map(|account| &mut account.closes) {
            if *close == AccountId::ENDED {
                *close = ended;
            }
        }
        accounts.push(Account { can_end: true, viable: true, ..Account::default() });
        let mut accounts = Self { accounts };
        accounts.find_viable();
        Ok(accounts)
    }

    fn get(&self, id: AccountId) -> &Account {
        &self.accounts[id.0 as usize]
    }

    /// Marks the accounts that some text makes true.
    fn find_viable(&mut self) {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.accounts.len()];
        for (id, account) in self.accounts.iter().enumerate() {
            for next in account.steps.iter().flatten().chain(&account.closes) {
                before[next.0 as usize].push(id);
            }
        }
        let mut queue: VecDeque<usize> =
            (0..self.accounts.len()).filter(|&id| self.accounts[id].viable).collect();
        while let Some(id) = queue.pop_front() {
            for &earlier in &before[id] {
                if !std::mem::replace(&mut self.accounts[earlier].viable, true) {
                    queue.push_back(earlier);
                }
            }
        }
    }

    /// The viable successors of several accounts.
    fn union<'a>(
        &'a self,
        members: &[AccountId],
        next: impl Fn(&'a Account) -> &'a [AccountId],
    ) -> Vec<AccountId> {
        let all = members.iter().flat_map(|&id| next(self.get(id)));
        let unique: FxHashSet<AccountId> = all.copied().filter(|&id| self.get(id).viable).collect();
        let mut list: Vec<AccountId> = unique.into_iter().collect();
        list.sort_unstable();
        list
    }
}

/// The hypotheses of one stage; number 0 is at the start of a text.
struct StageHypotheses<'s> {
    stage: &'s Stage,
    hypotheses: Interner<StageHypothesis>,
    steps: FxHashMap<(u32, ClassId), Vec<u32>>,
}

impl<'s> StageHypotheses<'s> {
    fn new(stage: &'s Stage) -> Self {
        let mut hypotheses = Interner::default();
        hypotheses.add(StageHypothesis::start());
        Self { stage, hypotheses, steps: FxHashMap::default() }
    }

    fn is_large(&self) -> bool {
        self.hypotheses.len() > MAX_ACCOUNTS
    }

    fn step(
        &mut self,
        id: u32,
        class: ClassId,
        work: &mut Work,
    ) -> Result<Vec<u32>, LimitExceeded> {
        if let Some(known) = self.steps.get(&(id, class)) {
            return Ok(known.clone());
        }
        let Some(known) = self.hypotheses.get(id as usize) else { return Ok(Vec::new()) };
        work.spend(known.cost(&self.stage.program))?;
        let next = known.step(self.stage, class);
        let next = self.add(next);
        self.steps.insert((id, class), next.clone());
        Ok(next)
    }

    fn close(&mut self, id: u32, work: &mut Work) -> Result<Vec<u32>, LimitExceeded> {
        let Some(known) = self.hypotheses.get(id as usize) else { return Ok(Vec::new()) };
        work.spend(known.cost(&self.stage.program))?;
        let next = known.close(self.stage);
        Ok(self.add(next))
    }

    fn add(&mut self, list: Vec<StageHypothesis>) -> Vec<u32> {
        list.into_iter().map(|hypothesis| self.hypotheses.add(hypothesis)).collect()
    }

    fn is_open(&self, id: u32) -> bool {
        self.hypotheses.get(id as usize).is_some_and(|known| !known.is_empty())
    }

    fn can_end(&self, id: u32) -> bool {
        self.hypotheses.get(id as usize).is_some_and(StageHypothesis::can_end)
    }
}

/// Every way to choose one from each list.
fn product(choices: &[Vec<u32>], work: &mut Work) -> Result<Vec<Parts>, LimitExceeded> {
    let mut results: Vec<Parts> = vec![Vec::with_capacity(choices.len())];
    for list in choices {
        work.spend(results.len() * list.len() * choices.len())?;
        let longer = results.iter().flat_map(|start| {
            list.iter().map(|&choice| {
                let mut longer = start.clone();
                longer.push(choice);
                longer
            })
        });
        results = longer.collect();
    }
    Ok(results)
}

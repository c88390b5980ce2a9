//! The tokens that stay within a lexeme, by the state that they lead to.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lexeme_mask::Inner;
use super::loops::{KnownChanges, Loops};
use super::token_set::{has_bit, set_bits};
use super::walk::{may_stay, Rows, WalkLevel, BULK_NODES, NODES_PER_CHARGE, NODES_PER_STEP};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Lexeme};
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};

/// The tokens of a vocabulary that end within a character.
#[derive(Debug)]
pub(super) struct Unfinished {
    tokens: Box<[TokenId]>,
    row: Box<[u32]>,
}

impl Unfinished {
    pub fn of(vocabulary: &Vocabulary) -> Self {
        let ends_within = |text: &[u8]| {
            let lead = text.iter().rev().take(3).position(|byte| byte & 0xC0 != 0x80);
            lead.is_some_and(|after| match text[text.len() - 1 - after] {
                0xC0..=0xDF => after < 1,
                0xE0..=0xEF => after < 2,
                0xF0..=0xFF => after < 3,
                _ => false,
            })
        };
        let all = (0..vocabulary.width() as u32).map(TokenId);
        let tokens: Box<[TokenId]> =
            all.filter(|&token| ends_within(vocabulary.text(token))).collect();
        let mut row = vec![0; vocabulary.mask_words()];
        set_bits(&mut row, &tokens);
        Self { tokens, row: row.into() }
    }

    fn removed_from(&self, inner: Inner) -> Inner {
        match inner {
            Inner::Few(tokens) => {
                let finished = tokens.iter().copied().filter(|&token| !has_bit(&self.row, token));
                Inner::Few(finished.collect())
            }
            Inner::Many(bitmap) => {
                let finished = bitmap.iter().zip(&self.row).map(|(all, row)| all & !row);
                Inner::Many(finished.collect())
            }
        }
    }
}

/// The tokens that stay within a lexeme or end where it must, by the state that they lead to.
#[derive(Debug)]
pub(super) struct Inside(Box<[(LexState, Arc<Inner>)]>);

impl Inside {
    /// The tokens from one state. `None` if the lexeme may have ended within some of them.
    pub fn new(
        changes: &KnownChanges,
        unfinished: &Unfinished,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        start: LexState,
    ) -> Result<Option<Self>, LimitExceeded> {
        let Some(runs) = runs_by_state(changes, vocabulary, lexeme, start)? else {
            return Ok(None);
        };
        let mut groups: Vec<(LexState, Arc<Inner>)> = Vec::with_capacity(runs.all.len());
        for (state, runs) in runs.all {
            let inner = Inner::of_runs(vocabulary, vocabulary.trie(), &runs);
            groups.push((state, Arc::new(unfinished.removed_from(inner))));
        }
        // Where all characters lead back to a state, the walk does not look into them.
        let mut within: FxHashMap<LexState, Vec<TokenId>> = FxHashMap::default();
        for &token in &unfinished.tokens {
            let mut state = Some(start);
            for &byte in vocabulary.text(token) {
                let Some(from) = state else { break };
                if from.accepts() {
                    return Ok(None);
                }
                state = lexeme.next(from, byte)?.filter(|next| !next.is_final());
            }
            if let Some(state) = state {
                within.entry(state).or_default().push(token);
            }
        }
        let within = within.into_iter();
        groups.extend(within.map(|(to, tokens)| (to, Arc::new(Inner::of(vocabulary, tokens)))));
        Ok(Some(Self::of(groups)))
    }

    /// From groups of tokens, each with the state it leads to.
    pub fn of(groups: Vec<(LexState, Arc<Inner>)>) -> Self {
        Self(groups.into())
    }

    /// Tokens with the state that they lead to, which may be that of several groups.
    pub fn groups(&self) -> &[(LexState, Arc<Inner>)] {
        &self.0
    }

    /// Without the tokens that others hold, too.
    pub fn memory_bytes(&self) -> usize {
        let group = |(_, tokens): &(LexState, Arc<Inner>)| match &**tokens {
            _ if Arc::strong_count(tokens) > 1 => 16,
            Inner::Few(tokens) => 64 + tokens.len() * 4,
            Inner::Many(bitmap) => 64 + bitmap.len() * 4,
        };
        self.0.iter().map(group).sum()
    }
}

/// Adjacent tokens of the trie, by the state that they lead to.
#[derive(Default)]
struct Runs {
    places: FxHashMap<LexState, usize>,
    all: Vec<(LexState, Vec<Range<usize>>)>,
    /// The place of the last run.
    last: usize,
}

impl Runs {
    #[inline]
    fn add(&mut self, state: LexState, tokens: Range<usize>) {
        if tokens.is_empty() {
            return;
        }
        if self.all.get(self.last).is_none_or(|&(known, _)| known != state) {
            self.last = *self.places.entry(state).or_insert_with(|| {
                self.all.push((state, Vec::new()));
                self.all.len() - 1
            });
        }
        let runs = &mut self.all[self.last].1;
        match runs.last_mut() {
            Some(run) if run.end == tokens.start => run.end = tokens.end,
            _ => runs.push(tokens),
        }
    }
}

/// The places of tokens in the trie, by the state that they lead to: that before an unfinished
/// character if all its characters lead back. `None` if the lexeme may have ended within a token.
fn runs_by_state(
    changes: &KnownChanges,
    vocabulary: &Vocabulary,
    lexeme: &Lexeme,
    start: LexState,
) -> Result<Option<Runs>, LimitExceeded> {
    let trie = vocabulary.trie();
    let mut runs = Runs::default();
    let before = |node| trie.tokens_before(node);
    let mut loops_of = Loops::new(vocabulary, lexeme, false, changes);
    let mut rows = Rows::new(lexeme, false);
    let end = trie.after(NodeId::ROOT);
    let mut node = NodeId(1);
    let mut level = WalkLevel { end, row: rows.get(start), changes: None };
    if may_stay(trie, NodeId::ROOT, level.row)? {
        level.changes = loops_of.changes_below(NodeId::ROOT, start)?;
    }
    let mut path: Vec<WalkLevel<'_>> = Vec::new();
    let mut walked = 0;
    while node < end {
        walked += 1;
        if walked == NODES_PER_CHARGE {
            walked = 0;
            meter::charge(NODES_PER_CHARGE / NODES_PER_STEP)?;
        }
        while node >= level.end {
            let Some(outer) = path.pop() else { break };
            level = outer;
        }
        let state = level.row.state();
        if let Some(changes) = level.changes {
            let change = loops_of.next_change(changes, node, level.end);
            runs.add(state, before(node)..before(change));
            node = change;
            if node >= level.end {
                continue;
            }
            if vocabulary.places().is_ill_formed(node) {
                node = trie.after(node);
                continue;
            }
        }
        let after = trie.after(node);
        let Some(next) = level.row.next(trie.byte(node))? else {
            node = after;
            continue;
        };
        let first_child = NodeId(node.0 + 1);
        runs.add(next, before(node)..before(first_child));
        if next.is_final() {
            node = after;
            continue;
        }
        if first_child < after {
            if next.accepts() {
                return Ok(None);
            }
            let below = if next == state { level.row } else { rows.get(next) };
            let mut changes = loops_of.known_changes(node, next);
            if changes.is_none() && after.0 > node.0 + BULK_NODES && may_stay(trie, node, below)? {
                if vocabulary.below(node).within(loops_of.get(next)?.groups) {
                    runs.add(next, before(first_child)..before(after));
                    node = after;
                    continue;
                }
                changes = loops_of.changes_below(node, next)?;
            }
            // If the state stays, the level stays too, unless leaps begin here.
            if next != state || changes.is_some() || level.changes.is_some() {
                let inside = WalkLevel { end: after, row: below, changes };
                path.push(std::mem::replace(&mut level, inside));
            }
        }
        node = first_child;
    }
    meter::charge(1 + walked / NODES_PER_STEP)?;
    Ok(Some(runs))
}

//! The targets of the vocabulary's tokens from a configuration: composed, as masks are, from the
//! effects of tokens in a lexeme and from the continuations after it.

use std::sync::Arc;

use super::inside::Inside;
use super::lexeme_mask::{ExitGroup, LexemeMask};
use super::state_mask::Masker;
use super::successors::{forgotten, left_behind, Found, Left, Successors};
use super::token_set::set_bits;
use super::token_set::{has_bit, Bitmap};
use ffwd_automaton::keys::Terminal;
use ffwd_automaton::{is_in_escape, Automaton, Result, TextId, Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_tokenizer::vocabulary::{NodeId, TokenId};

/// Tokens that lead to one configuration: some are listed, the others in bitmaps.
#[derive(Debug)]
pub(crate) struct Target {
    pub threads: Threads,
    pub tokens: Vec<TokenId>,
    pub bitmaps: Vec<Bitmap>,
}

impl Target {
    /// The tokens that are in a mask, too.
    pub fn within<'a>(&'a self, mask: &'a [u32]) -> impl Iterator<Item = TokenId> + 'a {
        let listed = self.tokens.iter().copied().filter(|&token| has_bit(mask, token));
        listed.chain(self.bitmaps.iter().flat_map(|bitmap| common(bitmap, mask)))
    }

    /// About how many bytes of memory it holds, without bitmaps that others hold, too.
    pub fn memory_bytes(&self) -> usize {
        let own =
            |bitmap: &Bitmap| if Arc::strong_count(bitmap) > 1 { 0 } else { bitmap.len() * 4 };
        let bitmaps: usize = self.bitmaps.iter().map(own).sum();
        size_of::<Self>()
            + self.threads.len() * size_of::<Thread>()
            + self.tokens.len() * 4
            + bitmaps
    }

    /// Whether a token of the bitmaps is in a mask.
    pub fn has_bitmapped(&self, mask: &[u32]) -> bool {
        // Words by the dozen, which the compiler compares side by side.
        let all = |(one, other): (&[u32], &[u32])| {
            one.iter().zip(other).fold(0, |any, (one, other)| any | one & other) != 0
        };
        self.bitmaps.iter().any(|bitmap| bitmap.chunks(64).zip(mask.chunks(64)).any(all))
    }
}

/// The tokens of two masks.
fn common<'a>(one: &'a [u32], other: &'a [u32]) -> impl Iterator<Item = TokenId> + 'a {
    one.iter().zip(other).enumerate().flat_map(|(at, (one, other))| {
        let mut rest = one & other;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(TokenId(at as u32 * 32 + bit))
        })
    })
}

impl Masker {
    /// The targets of all tokens.
    pub(super) fn successors(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
    ) -> Result<Successors> {
        if is_in_escape(threads) {
            return self.successors_within_escape(automaton, threads);
        }
        let successors = self.canonical_successors(automaton, threads)?;
        match automaton.escaping() {
            Some(_) => self.successors_with_escapes(automaton, threads, successors),
            None => Ok(successors),
        }
    }

    /// The same where strings are canonical.
    fn canonical_successors(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
    ) -> Result<Successors> {
        let mut successors = Successors::default();
        if let [thread] = threads {
            let is_known = match thread.lexeme {
                ThreadLexeme::Lexeme(_) => self.add_lexeme(automaton, thread, &mut successors)?,
                ThreadLexeme::Key => self.add_keys(automaton, thread, &mut successors)?,
                ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => false,
            };
            if is_known {
                return Ok(successors);
            }
        }
        let trie = self.vocabulary.trie();
        successors.add_below(automaton, trie, NodeId::ROOT, threads, &Left::new())?;
        Ok(successors)
    }

    /// The tokens of a configuration without recorded texts, by the configurations to which they
    /// lead.
    pub(crate) fn targets(
        &self,
        automaton: &Automaton,
        forgetful: &[Thread],
    ) -> Result<Vec<Target>> {
        let successors = self.successors(automaton, forgetful)?;
        let target =
            |Found { threads, tokens, bitmaps, .. }: Found| Target { threads, tokens, bitmaps };
        Ok(successors.found.into_iter().map(target).collect())
    }

    /// The successors within a lexeme and after it; `false` if the lexeme alone does not determine
    /// them.
    fn add_lexeme(
        &self,
        automaton: &Automaton,
        thread: &Thread,
        successors: &mut Successors,
    ) -> Result<bool> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(false) };
        let Some(inside) = self.inside(automaton, thread)? else { return Ok(false) };
        let lexeme = automaton.lexeme(index);
        let mask = self.lexeme_masks.get(&self.vocabulary, lexeme, thread.lex_state())?;
        if !are_listed(&mask) {
            return Ok(false);
        }
        // These also end where the lexeme must, because a mask may list them among its inner ones.
        successors.add_inside(automaton, thread, &inside)?;
        self.add_listed_exits(automaton, thread, &mask, false, successors)?;
        Ok(true)
    }

    /// The successors in the keys of an object. Declared names and earlier keys are read byte by
    /// byte; all others follow their lexeme. `false` if that does not apply.
    fn add_keys(
        &self,
        automaton: &Automaton,
        thread: &Thread,
        successors: &mut Successors,
    ) -> Result<bool> {
        let Some(json) = automaton.json() else { return Ok(false) };
        let key = json.keys.node(thread.key_node());
        let Some(base) = key.base else { return Ok(false) };
        let (lexeme, state) = (ThreadLexeme::Lexeme(base.lexeme), base.state.0);
        let mut others = Successors::default();
        if !self.add_lexeme(automaton, &Thread { lexeme, state, ..*thread }, &mut others)? {
            return Ok(false);
        }
        let (trie, nowhere) = (self.vocabulary.trie(), Left::new());
        let mut named: Vec<TokenId> = Vec::new();
        let mut pending = vec![(NodeId::ROOT, key, Threads::from_slice(&[*thread]))];
        while let Some((node, key, threads)) = pending.pop() {
            meter::charge(1)?;
            if json.keys.terminal(&key) != Terminal::None && !key.is_before_quote() {
                if let Some(closed) = trie.child(node, b'"') {
                    named.extend_from_slice(trie.tokens_below(closed));
                    let next = automaton.step(&threads, b'"')?;
                    if !next.is_empty() {
                        successors.add(&next, &nowhere, trie.tokens_at(closed));
                        successors.add_below(automaton, trie, closed, &next, &nowhere)?;
                    }
                }
            }
            for (byte, below) in json.keys.children(&key)? {
                let Some(child) = trie.child(node, byte) else { continue };
                // Below, other keys are not allowed.
                let is_cut = key.base.is_some() && below.base.is_none();
                let tokens = trie.tokens_at(child);
                named.extend_from_slice(if is_cut { trie.tokens_below(child) } else { tokens });
                let next = automaton.step(&threads, byte)?;
                if !next.is_empty() {
                    successors.add(&next, &nowhere, tokens);
                    pending.push((child, below, next));
                }
            }
        }
        if !named.is_empty() {
            let mut row = vec![0; self.vocabulary.mask_words()];
            set_bits(&mut row, &named);
            others.remove(&row);
        }
        successors.add_all(others);
        Ok(true)
    }

    /// The tokens that stay in the lexeme of a thread, if the others leave it and do not depend on
    /// recorded texts.
    fn inside(&self, automaton: &Automaton, thread: &Thread) -> Result<Option<Arc<Inside>>> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(None) };
        let (lexeme, state) = (automaton.lexeme(index), thread.lex_state());
        // Later items are compared with a recorded item.
        let is_compared = !matches!(thread.transcript, TextId::NONE | TextId::ANY);
        if is_compared || state.accepts() || lexeme.spec().ends != Ends::Anywhere {
            return Ok(None);
        }
        Ok(self.lexeme_masks.inside(&self.vocabulary, lexeme, state)?)
    }

    /// The successors of the tokens that leave the lexeme of a thread, without the text of an ended
    /// key. `with_ends`: also those of tokens that end with the lexeme.
    pub(super) fn add_listed_exits(
        &self,
        automaton: &Automaton,
        thread: &Thread,
        mask: &LexemeMask,
        with_ends: bool,
        successors: &mut Successors,
    ) -> Result<()> {
        let trie = self.vocabulary.trie();
        let left = left_behind(automaton, thread);
        let thread = forgotten(thread);
        for group in &mask.exits {
            let stack = automaton.exit_thread(&thread, group.accept)?;
            let starts = automaton.following(stack, thread.transcript)?;
            if starts.is_empty() {
                continue;
            }
            if with_ends {
                successors.add(&starts, &left, group.rests.tokens_at(NodeId::ROOT));
            }
            successors.add_below(automaton, &group.rests, NodeId::ROOT, &starts, &left)?;
            for &(root, with_node) in &group.grafts {
                if with_node && with_ends {
                    successors.add(&starts, &left, trie.tokens_at(root));
                }
                successors.add_below(automaton, trie, root, &starts, &left)?;
            }
        }
        Ok(())
    }
}

/// Whether all tokens that leave a lexeme are listed.
pub(super) fn are_listed(mask: &LexemeMask) -> bool {
    let is_listed = |g: &ExitGroup| g.everywhere.is_empty() && g.longest_grafts.is_empty();
    mask.exits.iter().all(is_listed)
}

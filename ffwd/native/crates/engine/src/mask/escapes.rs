//! Masks where any character of a string may be written as an escape.
//!
//! The masks of lexemes know strings as they are written canonically. They decide about all tokens
//! without a backslash. The others are read byte by byte, and within an escape all tokens are.

use std::sync::Arc;

use smallvec::SmallVec;

use super::known_steps::walk_known;
use super::state_mask::Masker;
use super::successors::{Left, Successors};
use super::token_set::{bits, has_bit, TokenList, TokenMask, TokenMaskBuilder};
use super::walk::View;
use ffwd_automaton::{
    is_in_escape, without_texts, Automaton, Escaping, LexemeId, Result, StateId, TextId,
};
use ffwd_automaton::{Thread, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::LexState;
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId};

impl Masker {
    /// The mask of a state in which some thread is within an escape.
    pub(super) fn mask_within_escape(
        &self,
        automaton: &Automaton,
        state: StateId,
    ) -> Result<TokenMask> {
        let threads = automaton.threads(state);
        let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
        let is_compared = |thread: &Thread| {
            thread.transcript != TextId::NONE || automaton.has_history(thread.stack)
        };
        if threads.iter().any(is_compared) {
            self.read_all(automaton, self.vocabulary.trie(), threads, &mut builder.added)?;
        } else {
            self.collect_after_escape(automaton, &without_texts(threads), &mut builder)?;
            let escaped = self.vocabulary.with_backslash();
            builder.remove_bitmap(&escaped.row);
            self.read_all(automaton, &escaped.trie, &without_texts(threads), &mut builder.added)?;
        }
        for (set, _) in automaton.token_exits(threads)? {
            for &(first, last) in automaton.token_set(set) {
                builder.added.extend((first..=last).map(TokenId));
            }
        }
        if automaton.is_accepting(state) {
            builder.added.extend_from_slice(self.vocabulary.eos());
        }
        let mask = builder.build();
        let likely = self.vocabulary.tokens_with_two_keys().iter();
        let likely: Vec<TokenId> = likely.copied().filter(|&token| mask.contains(token)).collect();
        if likely.is_empty() {
            return Ok(mask);
        }
        let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
        builder.add_mask(&mask);
        builder.remove(&likely);
        self.add_certain(automaton, threads, likely, &mut builder.added)?;
        Ok(builder.build())
    }

    /// The tokens that end an escape and have no other one.
    fn collect_after_escape(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        builder: &mut TokenMaskBuilder,
    ) -> Result<()> {
        let trie = self.vocabulary.trie();
        let mut nodes = 0;
        let mut pending = vec![(NodeId::ROOT, Threads::from_slice(threads))];
        while let Some((node, threads)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                let next = automaton.step(&threads, byte)?;
                if next.is_empty() {
                    continue;
                }
                builder.added.extend_from_slice(trie.tokens_at(child));
                if is_in_escape(&next) {
                    pending.push((child, next));
                } else {
                    let view = View { trie, root: child };
                    self.collect(automaton, view, &next, builder, &mut nodes)?;
                }
            }
        }
        self.count_nodes(nodes);
        Ok(())
    }

    /// Adds those of some tokens that threads can read with what is recorded.
    fn add_certain(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        tokens: Vec<TokenId>,
        found: &mut Vec<TokenId>,
    ) -> Result<()> {
        let with_two = self.vocabulary.tokens_with_two_keys();
        for token in tokens {
            let text = self.vocabulary.text(token);
            if !with_two.contains(&token) || automaton.walk(threads, text)?.is_some() {
                found.push(token);
            }
        }
        Ok(())
    }

    /// A mask that knows canonical strings alone, with the tokens in which other escapes are.
    pub(super) fn with_escapes(
        &self,
        automaton: &Automaton,
        escaping: Escaping<'_>,
        threads: &[Thread],
        mask: &Arc<TokenMask>,
    ) -> Result<Arc<TokenMask>> {
        let escaped = self.vocabulary.with_backslash();
        let mut found = Vec::new();
        let strings: Option<SmallVec<[_; 2]>> =
            threads.iter().map(|thread| escaping.string_of(thread)).collect();
        match strings {
            Some(strings) => {
                for (thread, place) in threads.iter().zip(strings) {
                    found.extend_from_slice(&self.within_string(automaton, thread, place)?);
                }
                self.read_quoted(automaton, threads, &mut found)?;
            }
            None => self.read_all(automaton, &escaped.trie, threads, &mut found)?,
        }
        let mut row = vec![0; self.vocabulary.mask_words()];
        mask.fill(&mut row);
        // Most masks differ in a few tokens only.
        let added: Vec<TokenId> =
            found.iter().copied().filter(|&token| !has_bit(&row, token)).collect();
        row.iter_mut().zip(&escaped.row).for_each(|(word, escaped)| *word &= escaped);
        for token in found {
            row[token.index() / 32] &= !(1 << (token.0 % 32));
        }
        let removed: Vec<TokenId> = bits(&row).collect();
        if added.is_empty() && removed.is_empty() {
            return Ok(mask.clone());
        }
        let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
        builder.add_mask(mask);
        builder.remove(&removed);
        builder.added.extend(added);
        Ok(Arc::new(builder.build()))
    }

    /// The tokens without a quote that a thread in a string can read.
    fn within_string(
        &self,
        automaton: &Automaton,
        thread: &Thread,
        place: (LexemeId, LexState),
    ) -> Result<TokenList> {
        if let Some(known) = self.in_strings.lock().get(&place) {
            return Ok(known.clone());
        }
        let alone = Thread { text: TextId::NONE, ..*thread };
        let mut found = Vec::new();
        self.read_all(automaton, &self.vocabulary.with_backslash().unquoted, &[alone], &mut found)?;
        let found: TokenList = found.into();
        self.make_room(found.len() * 4);
        self.in_strings.lock().insert(place, found.clone());
        Ok(found)
    }

    /// The tokens with a backslash and a quote that threads in strings can read.
    fn read_quoted(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        found: &mut Vec<TokenId>,
    ) -> Result<()> {
        let quoted = &self.vocabulary.with_backslash().quoted;
        // A key that is no name, nor the beginning of an earlier key, is a new one, so its text
        // decides only about a second key in the same token.
        let is_recorded = |thread: &Thread| thread.text != TextId::NONE;
        if !threads.iter().any(is_recorded) {
            return self.read_all(automaton, quoted, threads, found);
        }
        let mut likely = Vec::new();
        self.read_all(automaton, quoted, &without_texts(threads), &mut likely)?;
        self.add_certain(automaton, threads, likely, found)
    }

    fn read_all(
        &self,
        automaton: &Automaton,
        trie: &ByteTrie,
        threads: &[Thread],
        found: &mut Vec<TokenId>,
    ) -> Result<()> {
        let mut nodes = 0;
        walk_known(automaton, trie, NodeId::ROOT, threads, found, &mut nodes)?;
        self.count_nodes(nodes);
        Ok(())
    }

    /// The targets of tokens that leave a string, with those of tokens in which other escapes are.
    pub(super) fn read_escaped_exits(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        successors: &mut Successors,
    ) -> Result<()> {
        let escaped = self.vocabulary.with_backslash();
        successors.remove(&escaped.row);
        successors.add_read(automaton, &escaped.quoted, threads)
    }

    /// The targets of tokens that were found where strings are canonical, with those of the tokens
    /// in which other escapes are.
    pub(super) fn successors_with_escapes(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        mut canonical: Successors,
    ) -> Result<Successors> {
        let escaped = self.vocabulary.with_backslash();
        canonical.remove(&escaped.row);
        canonical.add_read(automaton, &escaped.trie, threads)?;
        Ok(canonical)
    }

    /// The targets of all tokens where some thread is within an escape.
    pub(super) fn successors_within_escape(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
    ) -> Result<Successors> {
        let mut successors = Successors::default();
        successors.add_read(automaton, self.vocabulary.trie(), threads)?;
        Ok(successors)
    }
}

impl Successors {
    /// The tokens of a trie, read byte by byte, with all recorded texts.
    fn add_read(
        &mut self,
        automaton: &Automaton,
        trie: &ByteTrie,
        threads: &[Thread],
    ) -> Result<()> {
        let mut pending = vec![(NodeId::ROOT, Threads::from_slice(threads))];
        while let Some((node, threads)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                meter::charge(1)?;
                let next = automaton.step(&threads, byte)?;
                if next.is_empty() {
                    continue;
                }
                self.add_exactly(&next, &Left::new(), trie.tokens_at(child));
                if !trie.is_leaf(child) {
                    pending.push((child, next));
                }
            }
        }
        Ok(())
    }
}

//! The masks of keys.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{add_inner, anonymous_starts, walk, Masker, WALKED_NODES};
use crate::mask::doubt::Doubts;
use crate::mask::key_places::{key_places, KeyPlaces};
use crate::mask::lexeme_mask::ExitGroup;
use crate::mask::token_set::{TokenList, TokenMask, TokenMaskBuilder, FEW};
use crate::mask::walk::View;
use ffwd_automaton::keys::Terminal;
use ffwd_automaton::{Automaton, Result, Spare, StackId, StateId, TextId, Thread, ThreadLexeme};
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId};

impl Masker {
    /// As [`Self::collect_exits`], for keys without a name: many places within the names of an
    /// object have the same exits.
    fn collect_other_keys(
        &self,
        automaton: &Automaton,
        group: &ExitGroup,
        stack: StackId,
        builder: &mut TokenMaskBuilder,
        nodes: &mut u64,
    ) -> Result<()> {
        if !group.everywhere.is_empty() || !group.longest_grafts.is_empty() {
            return self.collect_exits(automaton, group, stack, builder, nodes);
        }
        let key = (group.rests.id(), SmallVec::from_slice(&group.grafts), stack);
        let known = self.after_keys.lock().get(&key).cloned();
        if let Some(known) = known {
            builder.add_list(&known);
            return Ok(());
        }
        let mut after = TokenMaskBuilder::new(self.vocabulary.mask_words());
        self.collect_exits(automaton, group, stack, &mut after, nodes)?;
        match after.as_tokens().map(TokenList::from) {
            Some(list) => {
                self.make_room(list.len() * 4 + std::mem::size_of_val(&key));
                builder.add_list(&list);
                self.after_keys.lock().insert(key, list);
            }
            None => builder.add_all(after),
        }
        Ok(())
    }

    /// The declared names of an object and, if they are allowed, all other keys.
    pub(super) fn collect_keys(
        &self,
        automaton: &Automaton,
        view: View<'_>,
        thread: &Thread,
        builder: &mut TokenMaskBuilder,
        nodes: &mut u64,
    ) -> Result<()> {
        let Some(json) = automaton.json() else { return Ok(()) };
        let root = json.keys.node(thread.key_node());
        let places = key_places(&json.keys, view, root, nodes)?;
        self.collect_keys_at(automaton, view, thread, places, builder, nodes)
    }

    /// The tokens of a state within a key, if no token ends a declared name or leaves the other
    /// keys. They are the same wherever the other keys are in the same state on the same stack, so
    /// most places within the names of an object share them. `None` for any other state.
    pub(super) fn other_keys_alone(
        &self,
        automaton: &Automaton,
        state: StateId,
        nodes: &mut u64,
    ) -> Result<Option<Arc<TokenMask>>> {
        let (Some(json), [thread]) = (automaton.json(), automaton.threads(state)) else {
            return Ok(None);
        };
        let is_plain = thread.lexeme == ThreadLexeme::Key
            && thread.transcript == TextId::NONE
            && !automaton.has_history(thread.stack);
        if !is_plain {
            return Ok(None);
        }
        let root = json.keys.node(thread.key_node());
        let Some(base) = root.base else { return Ok(None) };
        let view = View::of(&self.vocabulary);
        let places = key_places(&json.keys, view, root, nodes)?;
        if !places.is_empty() || !automaton.items().stays_endless(thread)? {
            return Ok(None);
        }
        let key = (thread.stack, base.lexeme, base.state, thread.text == TextId::NONE);
        let known = self.other_keys.lock().get(&key).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
        self.collect_keys_at(automaton, view, thread, places, &mut builder, nodes)?;
        if !builder.is_certain() {
            return Ok(None);
        }
        let mask = Arc::new(builder.build());
        self.make_room(mask.memory_bytes() + std::mem::size_of_val(&key));
        self.other_keys.lock().insert(key, mask.clone());
        Ok(Some(mask))
    }

    /// As [`Self::collect_keys`], from the positions of the keys in the trie.
    fn collect_keys_at(
        &self,
        automaton: &Automaton,
        view: View<'_>,
        thread: &Thread,
        places: KeyPlaces,
        builder: &mut TokenMaskBuilder,
        nodes: &mut u64,
    ) -> Result<()> {
        let Some(json) = automaton.json() else { return Ok(()) };
        self.counters.key_masks.fetch_add(1, Ordering::Relaxed);
        let trie = view.trie;
        let root = json.keys.node(thread.key_node());
        let KeyPlaces { names, cut, within } = places;
        if let Some(base) = root.base {
            let mask = self.lexeme_mask(view, automaton.lexeme(base.lexeme), base.state)?;
            let mut others = TokenMaskBuilder::new(self.vocabulary.mask_words());
            add_inner(if cut.is_empty() { &mut *builder } else { &mut others }, &mask.inner);
            let text = match thread.text {
                TextId::NONE => TextId::NONE,
                _ => TextId::ANY,
            };
            for group in &mask.exits {
                let lexeme = ThreadLexeme::Lexeme(base.lexeme);
                let stack = automaton.exit(thread.stack, lexeme, group.accept, text)?;
                self.collect_other_keys(automaton, group, stack, &mut others, nodes)?;
            }
            // Declared names are no other keys.
            self.remove_names(&mut others, trie, names.iter().map(|&(_, node)| node).chain(cut));
            builder.add_all(others);
        }
        for node in within {
            builder.added.extend_from_slice(trie.tokens_at(node));
        }
        for (terminal, node) in names {
            if let Terminal::Allowed(name) = terminal {
                let stack = automaton.exit(thread.stack, ThreadLexeme::Key, 1, name.as_text())?;
                builder.added.extend_from_slice(trie.tokens_at(node));
                if !trie.is_leaf(node) {
                    let starts = anonymous_starts(automaton, stack)?;
                    if trie.after(node).0 - node.0 <= WALKED_NODES {
                        walk(automaton, trie, node, &starts, &mut builder.added, nodes)?;
                    } else {
                        self.collect(
                            automaton,
                            View { trie, root: node },
                            &starts,
                            builder,
                            nodes,
                        )?;
                    }
                    if thread.transcript != TextId::NONE {
                        // The object may be a compared item, and end within the token.
                        let mut doubts = Doubts::new(&self.vocabulary, Spare::None);
                        doubts.add_if(View { trie, root: node }, |text| text.contains(&b'}'));
                        builder.doubtful.extend(doubts.found());
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the tokens below nodes of a trie.
    fn remove_names(
        &self,
        others: &mut TokenMaskBuilder,
        trie: &ByteTrie,
        nodes: impl Iterator<Item = NodeId> + Clone,
    ) {
        // Usually far more tokens are below a name than end with it.
        if trie.id() == self.vocabulary.trie().id() {
            let mut runs: SmallVec<[Range<usize>; 8]> =
                nodes.clone().map(|node| trie.places_below(node)).collect();
            // A run that lies within another one comes after it.
            runs.sort_unstable_by_key(|run| (run.start, Reverse(run.end)));
            let mut end = 0;
            runs.retain(|run| {
                let is_outer = run.end > end;
                end = end.max(run.end);
                is_outer
            });
            let is_named = |token: TokenId| {
                let place = self.vocabulary.place_in_trie(token);
                let after = runs.partition_point(|run| run.start <= place);
                after > 0 && runs[after - 1].contains(&place)
            };
            let count: usize = runs.iter().map(Range::len).sum();
            if count > FEW && others.remove_where(is_named) {
                return;
            }
        }
        let mut named: Vec<TokenId> = Vec::new();
        nodes.for_each(|node| named.extend_from_slice(trie.tokens_below(node)));
        others.remove(&named);
    }
}

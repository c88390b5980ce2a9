//! Tokens with which a scalar can only become an item that came: where one text is one value.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::state_mask::Masker;
use ffwd_automaton::{Automaton, EngineError, UsedId};
use ffwd_bounds::meter;
use ffwd_regular::expr::LexState;
use ffwd_tokenizer::vocabulary::{NodeId, TokenId};

/// By the items that came, the lexeme and its state, and how much of a token has been read.
pub(super) type RuledOut = FxHashMap<(UsedId, u32, LexState, NodeId), Arc<[TokenId]>>;

/// The most bytes of a token that are distinguished. Few tokens are longer.
const MAX_DEPTH: usize = 48;

impl Masker {
    /// The tokens after which a scalar can only equal an earlier item. They are found in the
    /// intersection of the vocabulary's trie with that of the items. Results below a node are
    /// cached, and an additional item changes the nodes of one path.
    pub(super) fn ruled_out(
        &self,
        automaton: &Automaton,
        came: UsedId,
        (index, state): (u32, LexState),
    ) -> Result<Arc<[TokenId]>, EngineError> {
        self.ruled_out_below(automaton, came, (index, state), NodeId::ROOT, 0)
    }

    fn ruled_out_below(
        &self,
        automaton: &Automaton,
        came: UsedId,
        (index, state): (u32, LexState),
        node: NodeId,
        depth: usize,
    ) -> Result<Arc<[TokenId]>, EngineError> {
        let key = (came, index, state, node);
        if let Some(known) = self.ruled_out.lock().get(&key) {
            return Ok(known.clone());
        }
        let trie = self.vocabulary.trie();
        let lexeme = automaton.lexeme(index);
        let mut tokens: Vec<TokenId> = Vec::new();
        if automaton.is_item(came) && state.accepts() && !state.is_final() {
            // The scalar would end here.
            for (byte, child) in trie.children(node) {
                if lexeme.next(state, byte)?.is_none() {
                    tokens.extend_from_slice(trie.tokens_below(child));
                }
            }
        }
        for &(byte, items) in automaton.items_below(came) {
            meter::charge(1)?;
            let Some(child) = trie.child(node, byte) else { continue };
            let Some(next) = lexeme.next(state, byte)? else { continue };
            if !automaton.leaves_a_scalar((index, next), items)? {
                tokens.extend_from_slice(trie.tokens_below(child));
            } else if !next.is_final() && !trie.is_leaf(child) {
                let below = match depth < MAX_DEPTH {
                    true => {
                        let place = (index, next);
                        self.ruled_out_below(automaton, items, place, child, depth + 1)?
                    }
                    false => self.read_each(automaton, (index, next), items, child)?,
                };
                tokens.extend_from_slice(&below);
            }
        }
        tokens.sort_unstable();
        let tokens: Arc<[TokenId]> = tokens.into();
        let entry = std::mem::size_of_val(&key) + 2 * std::mem::size_of::<usize>();
        self.make_room(2 * entry + std::mem::size_of_val(&*tokens));
        self.ruled_out.lock().insert(key, tokens.clone());
        Ok(tokens)
    }

    /// Returns the tokens below a node that leave no other value, each matched by itself.
    fn read_each(
        &self,
        automaton: &Automaton,
        (index, state): (u32, LexState),
        came: UsedId,
        node: NodeId,
    ) -> Result<Arc<[TokenId]>, EngineError> {
        let lexeme = automaton.lexeme(index);
        let mut ruled = Vec::new();
        for (left, token) in self.vocabulary.trie().below(node) {
            let text = self.vocabulary.text(token);
            let (mut state, mut items) = (state, came);
            for &byte in &text[text.len() - left..] {
                meter::charge(1)?;
                let Some(next) = lexeme.next(state, byte)? else {
                    if automaton.is_item(items) && state.accepts() {
                        ruled.push(token);
                    }
                    break;
                };
                let below = automaton.items_below(items);
                let Ok(at) = below.binary_search_by_key(&byte, |&(byte, _)| byte) else { break };
                (state, items) = (next, below[at].1);
                if !automaton.leaves_a_scalar((index, state), items)? {
                    ruled.push(token);
                    break;
                }
                if state.is_final() {
                    break;
                }
            }
        }
        Ok(ruled.into())
    }
}

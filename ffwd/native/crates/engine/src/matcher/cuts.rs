//! Texts in which a limit of tokens ends a lexeme.
//!
//! A lexeme that ends at its longest match may consume everything that could follow it. Within a
//! part with a limit, the part's last token ends it all the same. So a text may need to use up the
//! tokens of a part before it can continue. The search for such texts is breadth first, token by
//! token. While nothing ends, a layer soon equals an earlier one, so the layers up to the limit can
//! be skipped.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::budget::Plan;
use super::sections::settled;
use super::{Matcher, Place, Stage};
use crate::engine::Generation;
use crate::mask::Completion;
use ffwd_automaton::{Ages, EndingText, Result, StateId};
use ffwd_bounds::meter;
use ffwd_tokenizer::vocabulary::TokenId;

/// How many configurations one search examines.
const MAX_NODES: usize = 4_096;
/// The number of tokens after which a configuration that leads to itself is searched.
const MAX_STEADY: usize = 6;

/// A configuration, with the positions of the tokens with which open parts began.
type CutKey = (StateId, Ages);

struct Node {
    key: CutKey,
    /// The previous node, and the tokens from there.
    from: usize,
    tokens: SmallVec<[TokenId; 1]>,
}

/// The nodes at a distance of this many tokens.
#[derive(Default)]
struct Layer {
    nodes: Vec<usize>,
    of: FxHashMap<CutKey, usize>,
}

impl Layer {
    fn has_the_keys_of(&self, other: &Self) -> bool {
        self.of.len() == other.of.len() && self.of.keys().all(|key| other.of.contains_key(key))
    }
}

/// A configuration after one more token.
struct Successor {
    token: TokenId,
    key: CutKey,
    closed: bool,
}

impl Matcher {
    /// A plan for a text in which limits end lexemes; `None` if none is found.
    pub(super) fn through_limits(
        &self,
        generation: &Generation,
        place: &Place,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<Plan>> {
        let Some(ending) = self.ending_through_limits(generation, place.state, ages, position)?
        else {
            return Ok(None);
        };
        let vocabulary = self.compiled.engine.vocabulary();
        let completion = Arc::new(Completion::new(vocabulary, [].into(), ending));
        let completion = self.beginning_with(place, completion);
        // Tokens before the text may count, and the whole has a budget.
        if self.is_in_text(place) && self.max_tokens().is_none()
            || self.keeps_to_limits(generation, place, ages, position, &completion)?
        {
            return Ok(Some(Plan::of(completion)));
        }
        Ok(None)
    }

    fn ending_through_limits(
        &self,
        generation: &Generation,
        state: StateId,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<EndingText>> {
        let Generation { automaton, .. } = generation;
        let mut nodes = vec![Node { key: (state, ages.clone()), from: 0, tokens: SmallVec::new() }];
        let mut layers = vec![Layer { nodes: vec![0], of: FxHashMap::default() }];
        layers[0].of.insert(nodes[0].key.clone(), 0);
        let mut position = position;
        while let Some(layer) = layers.last().filter(|layer| !layer.nodes.is_empty()) {
            let mut next = Layer::default();
            let mut has_closed = false;
            for &node in &layer.nodes {
                let key = nodes[node].key.clone();
                for successor in self.successors(generation, &key, position)? {
                    let Successor { token, key, closed } = successor;
                    if next.of.contains_key(&key) {
                        continue;
                    }
                    let tokens = SmallVec::from_slice(&[token]);
                    let number = nodes.len();
                    nodes.push(Node { key: key.clone(), from: node, tokens });
                    has_closed |= closed;
                    let (state, ages) = &key;
                    let rest = if automaton.is_accepting(*state) {
                        Some(EndingText::default())
                    } else if closed {
                        self.ending_at_once(generation, *state, ages, position + 1)?
                    } else {
                        None
                    };
                    if let Some(rest) = rest {
                        return Ok(Some(ending(&nodes, number, &rest)));
                    }
                    next.nodes.push(number);
                    next.of.insert(key, number);
                }
            }
            if nodes.len() > MAX_NODES {
                return Ok(None);
            }
            position += 1;
            let earlier = layers.iter().position(|layer| layer.has_the_keys_of(&next));
            layers.push(next);
            if has_closed {
                layers.drain(..layers.len() - 1);
                continue;
            }
            let Some(earlier) = earlier else { continue };
            // From here on the layers repeat, until a part has had all of its tokens.
            let ends = layers[earlier..].iter().flat_map(|layer| layer.of.keys());
            let mut first_end = usize::MAX;
            for (state, ages) in ends {
                for part in automaton.limited().open_parts(automaton.threads(*state)) {
                    first_end = first_end.min(position + part.left(ages, position));
                }
            }
            if first_end == usize::MAX {
                return Ok(None);
            }
            let repeated = first_end.saturating_sub(position + 1);
            let last = self.after_repetition(&mut nodes, &layers[earlier..], repeated)?;
            layers = vec![last];
            position += repeated;
        }
        Ok(None)
    }

    /// Returns the layer after this many more tokens, if the last of some layers equals the first.
    fn after_repetition(
        &self,
        nodes: &mut Vec<Node>,
        layers: &[Layer],
        tokens: usize,
    ) -> Result<Layer> {
        let period = layers.len() - 1;
        let mut last = Layer::default();
        for &node in &layers[tokens % period].nodes {
            meter::charge(tokens)?;
            let key = nodes[node].key.clone();
            let mut way: Vec<TokenId> = Vec::with_capacity(tokens);
            let mut at = key.clone();
            for left in (1..=tokens).rev() {
                // The last layer has its own predecessors; the first has only those of its first
                // occurrence.
                let place = match left % period {
                    0 => period,
                    place => place,
                };
                let Some(&node) = layers[place].of.get(&at) else { break };
                way.extend(nodes[node].tokens.iter().rev());
                at = nodes[nodes[node].from].key.clone();
            }
            way.reverse();
            let Some(&from) = layers[period].of.get(&at) else { continue };
            let number = nodes.len();
            nodes.push(Node { key: key.clone(), from, tokens: way.into() });
            last.nodes.push(number);
            last.of.insert(key, number);
        }
        Ok(last)
    }

    fn successors(
        &self,
        generation: &Generation,
        (state, ages): &CutKey,
        position: usize,
    ) -> Result<Vec<Successor>> {
        let Generation { automaton, masker, .. } = generation;
        let mut found = Vec::new();
        for group in masker.groups(automaton, *state)?.iter() {
            meter::charge(8)?;
            let Some(token) = group.first_token() else { continue };
            let threads = automaton.threads(group.next);
            let Some(settled) = settled(automaton, threads, ages, position)? else { continue };
            let state = match settled.threads.as_slice() == threads {
                true => group.next,
                false => automaton.intern(settled.threads)?,
            };
            found.push(Successor { token, key: (state, settled.ages), closed: settled.closed });
        }
        Ok(found)
    }

    /// The plan for a text that ends in time without another lexeme that a limit must end.
    fn ending_at_once(
        &self,
        generation: &Generation,
        state: StateId,
        ages: &Ages,
        position: usize,
    ) -> Result<Option<EndingText>> {
        let place = self.text_in(state);
        let plan = self.in_time_at_once(generation, &place, ages, position)?;
        Ok(plan.map(|plan| plan.ending()))
    }

    /// A place within the grammar's text.
    fn text_in(&self, state: StateId) -> Place {
        Place { state, read: self.prefix.len(), stage: Stage::Grammar }
    }

    /// Returns how many tokens all open parts must have left in a state so that each allowed token
    /// has a completion, counted with that token; `None` if this is unknown. A text has a
    /// completion if that many tokens reach a suitable configuration. It must loop up to the limit
    /// of the outer part, and the text must be able to end after that part.
    pub(super) fn steady_after(
        &self,
        generation: &Generation,
        state: StateId,
    ) -> Result<Option<u32>> {
        let Generation { automaton, .. } = generation;
        if let Some(known) = automaton.limited().steady(state) {
            return Ok(known);
        }
        let parts = automaton.limited().open_parts(automaton.threads(state));
        let ages = parts.iter().map(|part| part.age + 1).max().unwrap_or(0);
        let ages: Ages = (0..ages).map(|_| 0).collect();
        let mut most = Some(0);
        for successor in self.successors(generation, &(state, ages), 0)? {
            let tokens = match successor.closed {
                true => None,
                false => self.steady_from(generation, successor.key)?,
            };
            most = most.zip(tokens).map(|(most, tokens)| tokens.max(most));
            if most.is_none() {
                break;
            }
        }
        let tokens = most.map(|most| most as u32);
        automaton.limited().keep_steady(state, tokens);
        Ok(tokens)
    }

    fn steady_from(&self, generation: &Generation, key: CutKey) -> Result<Option<usize>> {
        let Generation { automaton, .. } = generation;
        if let Some(completion) = self.completion_at(generation, &self.text_in(key.0))? {
            return Ok(Some(completion.most() + 1));
        }
        if automaton.limited().open_parts(automaton.threads(key.0)).is_empty() {
            let ages = Ages::new();
            let ending = self.ending_through_limits(generation, key.0, &ages, 0)?;
            return Ok(ending.map(|_| 0));
        }
        let mut seen: FxHashSet<CutKey> = FxHashSet::from_iter([key.clone()]);
        let mut layer = vec![key];
        for tokens in 1..=MAX_STEADY {
            let mut next = Vec::new();
            for key in layer {
                let successors = self.successors(generation, &key, 0)?;
                let stays = successors.iter().any(|next| next.key == key && !next.closed);
                if stays && self.ends_where_closed(generation, key.0)? {
                    return Ok(Some(tokens));
                }
                for Successor { key, closed, .. } in successors {
                    if !closed && seen.insert(key.clone()) {
                        next.push(key);
                    }
                }
            }
            layer = next;
        }
        Ok(None)
    }

    /// Whether a text can end once its single open part has used all of its tokens.
    fn ends_where_closed(&self, generation: &Generation, state: StateId) -> Result<bool> {
        let Generation { automaton, .. } = generation;
        let threads = automaton.threads(state);
        let [part] = automaton.limited().open_parts(threads)[..] else { return Ok(false) };
        let closed = automaton.limited().closed(threads, &|open| *open == part)?;
        if closed.is_empty() || !automaton.limited().open_parts(&closed).is_empty() {
            return Ok(false);
        }
        let state = automaton.intern(closed)?;
        let ages = Ages::new();
        let at_once = self.ending_at_once(generation, state, &ages, 0)?;
        if at_once.is_some() {
            return Ok(true);
        }
        Ok(self.ending_through_limits(generation, state, &ages, 0)?.is_some())
    }
}

/// The tokens that lead to a node, and then a text.
fn ending(nodes: &[Node], last: usize, rest: &EndingText) -> EndingText {
    let mut way: Vec<TokenId> = Vec::new();
    let mut node = last;
    while node != 0 {
        way.extend(nodes[node].tokens.iter().rev());
        node = nodes[node].from;
    }
    let way = way.iter().rev().map(|token| (0, token.0));
    EndingText { text: rest.text.clone(), tokens: way.chain(rest.tokens.iter().copied()).collect() }
}

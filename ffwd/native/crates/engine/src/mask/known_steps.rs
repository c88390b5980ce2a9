//! Reads a trie byte by byte where lexemes are too short for their masks to help. Each set of
//! threads is stepped once for each byte, at whatever nodes it occurs.

use rustc_hash::FxHashMap;

use ffwd_automaton::{Automaton, Result, Thread, Threads};
use ffwd_bounds::meter;
use ffwd_tokenizer::vocabulary::{ByteTrie, Descent, NodeId, TokenId};

/// The most distinct sets of threads; nodes below others are matched without the cache.
const MAX_SETS: usize = 1 << 14;

/// A set of threads, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SetId(u32);

impl SetId {
    const UNKNOWN: Self = Self(u32::MAX);
    const DEAD: Self = Self(u32::MAX - 1);
}

struct KnownSteps<'a> {
    automaton: &'a Automaton,
    ids: FxHashMap<Threads, SetId>,
    sets: Vec<Threads>,
    next: Vec<[SetId; 256]>,
}

impl KnownSteps<'_> {
    fn id(&mut self, threads: Threads) -> Option<SetId> {
        if let Some(&known) = self.ids.get(&threads) {
            return Some(known);
        }
        if self.sets.len() >= MAX_SETS {
            return None;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(threads.clone());
        self.next.push([SetId::UNKNOWN; 256]);
        self.ids.insert(threads, id);
        Some(id)
    }

    /// The set after a byte; `None` if there are too many sets.
    fn step(&mut self, set: SetId, byte: u8) -> Result<Option<SetId>> {
        let known = self.next[set.0 as usize][usize::from(byte)];
        if known != SetId::UNKNOWN {
            return Ok(Some(known));
        }
        let threads = self.automaton.step(&self.sets[set.0 as usize], byte)?;
        let next = if threads.is_empty() { Some(SetId::DEAD) } else { self.id(threads) };
        if let Some(next) = next {
            self.next[set.0 as usize][usize::from(byte)] = next;
        }
        Ok(next)
    }
}

/// The tokens below a node of a trie that the threads can read.
pub(super) fn walk_known(
    automaton: &Automaton,
    trie: &ByteTrie,
    root: NodeId,
    threads: &[Thread],
    found: &mut Vec<TokenId>,
    nodes: &mut u64,
) -> Result<()> {
    let (sets, next) = (Vec::new(), Vec::new());
    let mut steps = KnownSteps { automaton, ids: FxHashMap::default(), sets, next };
    let Some(start) = steps.id(threads.iter().copied().collect()) else { return Ok(()) };
    trie.walk(root, start, |&set, node, _| {
        if (*nodes).is_multiple_of(64) {
            meter::charge(16)?;
        }
        *nodes += 1;
        match steps.step(set, trie.byte(node))? {
            Some(SetId::DEAD) => return Ok(Descent::Skip),
            Some(next) => {
                found.extend_from_slice(trie.tokens_at(node));
                return Ok(Descent::Below(next));
            }
            None => {}
        }
        let threads = automaton.step(&steps.sets[set.0 as usize], trie.byte(node))?;
        if !threads.is_empty() {
            found.extend_from_slice(trie.tokens_at(node));
            super::state_mask::walk(automaton, trie, node, &threads, found, nodes)?;
        }
        Ok(Descent::Skip)
    })
}

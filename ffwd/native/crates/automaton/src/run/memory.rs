//! How many bytes of memory an automaton holds, by what holds them.

use crate::interning::intern::Ids;
use crate::interning::memory::element;
use crate::json::key_texts::MAX_TEXTS;
use crate::run::automaton::{Automaton, Config, MAX_CONFIGS};
use crate::stacks::cells::MAX_CELLS;

/// Bytes by what holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutomatonBytes {
    /// Configurations and their threads.
    pub states: usize,
    /// Stacks, what follows them, and completions.
    pub stacks: usize,
    /// Frames of containers, queries, and the beginnings of values.
    pub frames: usize,
    /// The tries of names, and the texts of keys and items.
    pub keys: usize,
    /// Normal forms of the schema, and their caches.
    pub schema: usize,
    /// Lexemes in use, which other grammars may use too.
    pub lexemes: usize,
}

impl AutomatonBytes {
    /// The sum of all.
    pub fn total(&self) -> usize {
        self.states + self.stacks + self.frames + self.keys + self.schema + self.lexemes
    }
}

impl Automaton {
    /// Measures the lexemes, which is otherwise done only occasionally.
    pub fn weigh_lexemes(&self) {
        self.stacks.lexemes.weigh();
    }

    /// Returns whether little room is left, so that a limit on counts may be exceeded before the
    /// one on bytes: the grammar's on states or stacks, or a fixed one.
    pub fn is_crowded(&self, max_states: usize, max_stacks: usize) -> bool {
        let texts = self.json().map_or(0, |json| json.keys.texts.len());
        let most = |limit: usize, maximum: usize| limit.min(maximum) / 4 * 3;
        self.configs.count() > most(max_states, MAX_CONFIGS)
            || self.stacks.len() > most(max_stacks, MAX_CELLS)
            || texts > MAX_TEXTS / 4 * 3
    }

    /// About how many bytes of memory all of this holds.
    pub fn memory_bytes(&self) -> AutomatonBytes {
        let state = element::<Config>() + Ids::ENTRY_BYTES;
        let mut bytes = AutomatonBytes {
            states: self.configs.count() * state + self.thread_bytes.get(),
            stacks: self.stacks.memory_bytes() + self.completions.held.get(),
            lexemes: self.stacks.lexemes.memory_bytes(),
            ..AutomatonBytes::default()
        };
        bytes.states += self.escapes.as_ref().map_or(0, |escapes| escapes.memory_bytes());
        bytes.stacks += self.rules().map_or(0, |rules| rules.memory_bytes());
        if let Some(json) = self.json() {
            bytes.frames = json.frame_bytes();
            bytes.keys = json.keys.memory_bytes();
            bytes.schema = json.schema.memory_bytes();
        }
        bytes
    }
}

//! Automata: how they begin, and their configurations.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::error::Result;
use crate::interning::intern::{Ids, ShortHash};
use crate::interning::memory::Bytes;
use crate::json::punctuation;
use crate::json::tables::Json;
use crate::rules::beginnings::Beginnings;
use crate::rules::program::Program;
use crate::rules::tables::Rules;
use crate::run::completions::Completions;
use crate::run::escapes::AnyEscapes;
use crate::run::grammar::{Grammar, RuleSchemas};
use crate::stacks::cells::Stacks;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::lexemes::Lexemes;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::Whitespace;
use ffwd_regular::expr::lexeme::after_value;
use ffwd_regular::expr::{Lexeme, LexemeStore, Spelling, Verdict};

/// An interned configuration of one [`Automaton`].
/// The place of the configuration in the automaton, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

#[derive(Debug)]
pub(crate) struct Config {
    threads: Box<[Thread]>,
    accepting: bool,
}

/// A lazily compiled grammar; threads may share it.
#[derive(Debug)]
pub struct Automaton {
    pub(crate) stacks: Stacks,
    pub(crate) configs: boxcar::Vec<Config>,
    config_ids: Mutex<Ids>,
    json: Option<Json>,
    rules: Option<Rules>,
    start: OnceLock<StateId>,
    /// Bytes of the threads of configurations.
    pub(crate) thread_bytes: Bytes,
    pub(crate) completions: Completions,
    /// The beginnings on stacks with marks; see [`crate::rules::beginnings`].
    pub(crate) marked: Mutex<Beginnings>,
    /// `None` if strings are written in one way.
    pub(crate) escapes: Option<AnyEscapes>,
}

pub(crate) const MAX_CONFIGS: usize = 8_000_000;

impl Automaton {
    /// Boxed from the start: even empty, its tables take kilobytes, and moving them would take much
    /// of the time of a small compilation.
    pub fn new(grammar: Grammar, lexeme_store: Arc<LexemeStore>) -> Result<Box<Self>> {
        let mut automaton = Box::new(Self {
            stacks: Stacks::new(Lexemes::new(lexeme_store)),
            configs: boxcar::Vec::new(),
            config_ids: Mutex::default(),
            json: None,
            rules: None,
            start: OnceLock::new(),
            thread_bytes: Bytes::default(),
            completions: Completions::default(),
            marked: Mutex::default(),
            escapes: None,
        });
        automaton.push(Frame::End, StackId::END)?;
        let stack = match grammar {
            Grammar::Text(ast) => {
                let lexeme = automaton.add_lexeme(&punctuation::spec(Spelling::Utf8, [ast]))?;
                automaton.push(Frame::Lexeme(lexeme), StackId::END)?
            }
            Grammar::Json { schema, writing } => {
                let root = schema.root();
                automaton.escapes = AnyEscapes::of(&writing);
                let Self { stacks, json, .. } = &mut *automaton;
                let whitespaces = [&writing.whitespace];
                let lexemes = &stacks.lexemes;
                let new = Json::new(schema, &writing, &whitespaces, after_value(), lexemes)?;
                let json = json.insert(new);
                let root = json.root_value(root, &writing.whitespace)?;
                automaton.push_root(root, StackId::END)?
            }
            Grammar::Rules { program, json } => {
                let mut values = Vec::new();
                if let Some(RuleSchemas { schema, roots, writing }) = json {
                    automaton.escapes = AnyEscapes::of(&writing);
                    let whitespaces: Vec<&Whitespace> = roots.iter().map(|(_, own)| own).collect();
                    let Self { stacks, json, .. } = &mut *automaton;
                    let (after, lexemes) = (program.after_values, &stacks.lexemes);
                    let new = Json::new(schema, &writing, &whitespaces, after, lexemes)?;
                    let json = json.insert(new);
                    for (root, whitespace) in &roots {
                        values.push(json.root_value(*root, whitespace)?);
                    }
                }
                let start = program.symbols.start;
                automaton.rules = Some(Rules::new(program, values));
                automaton.push(Frame::Symbol(start), StackId::END)?
            }
        };
        automaton.starting(stack)
    }

    /// With the configuration of a stack as the first.
    fn starting(self: Box<Self>, stack: StackId) -> Result<Box<Self>> {
        let mut threads: Threads = On::starts(&*self, stack)?.iter().copied().collect();
        if let Some(rules) = self.rules() {
            rules.drop_dead_ends(&*self, &mut threads)?;
        }
        let start = self.intern(threads)?;
        let _ = self.start.set(start);
        Ok(self)
    }

    /// The configuration before any byte.
    pub fn start(&self) -> StateId {
        self.start.get().copied().unwrap_or(StateId(0))
    }

    /// Whether any text at all belongs to the grammar.
    pub fn is_satisfiable(&self) -> bool {
        !self.threads(self.start()).is_empty()
    }

    /// The tables of JSON values; `None` for a grammar without any.
    pub fn json(&self) -> Option<&Json> {
        self.json.as_ref()
    }

    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// The grammar of rules; `None` for a regular language or a JSON text.
    #[inline]
    pub fn program(&self) -> Option<&Program> {
        self.rules().map(|rules| &*rules.program)
    }

    /// The lexeme of an index that a thread or a key has.
    #[inline]
    pub fn lexeme(&self, index: LexemeId) -> &Arc<Lexeme> {
        On::lexeme(self, index)
    }

    /// The lexemes that may begin on a stack. Those within an item that later ones are compared with
    /// have an empty transcript; see [`Self::following`].
    pub fn starts(&self, stack: StackId) -> Result<&[Thread]> {
        On::starts(self, stack)
    }

    /// Returns the lexemes that may begin on a stack, with a transcript to continue.
    pub fn following(&self, stack: StackId, transcript: TextId) -> Result<Threads> {
        On::following(self, stack, transcript)
    }

    /// Returns the stack after an accepted lexeme. `accept` has the languages that hold. `text` is
    /// the key if the lexeme was a key, or the item's text if later items are compared with it.
    pub fn exit(
        &self,
        stack: StackId,
        lexeme: ThreadLexeme,
        accept: Verdict,
        text: TextId,
    ) -> Result<StackId> {
        On::exit(self, stack, lexeme, accept, text)
    }

    /// Whether a stack has earlier items that are stored beside a schema.
    #[inline]
    pub fn has_history(&self, stack: StackId) -> bool {
        self.cell(stack).has_history
    }

    /// The number of frames of a stack.
    pub fn height(&self, stack: StackId) -> u32 {
        self.cell(stack).height
    }

    /// The configuration of these threads.
    pub fn intern(&self, mut threads: Threads) -> Result<StateId> {
        if threads.len() > 1 {
            threads.sort_unstable();
            threads.dedup();
        }
        let hash = ShortHash::of(threads.as_slice());
        let is = |id: u32| *self.configs[id as usize].threads == *threads;
        if let Some(known) = self.config_ids.lock().find(hash, is) {
            return Ok(StateId(known));
        }
        let accepting = self.accepts(&threads)?;
        let mut ids = self.config_ids.lock();
        if let Some(known) = ids.find(hash, is) {
            return Ok(StateId(known));
        }
        meter::charge(threads.len())?;
        meter::check::states(self.configs.count() + 1)?;
        if self.configs.count() >= MAX_CONFIGS {
            return Err(LimitExceeded::new("grammar_states", MAX_CONFIGS).into());
        }
        let threads: Box<[Thread]> = threads.into_vec().into_boxed_slice();
        self.thread_bytes.add(std::mem::size_of_val(&*threads));
        let id = self.configs.push(Config { threads, accepting }) as u32;
        ids.insert(hash, id);
        Ok(StateId(id))
    }

    /// All parses of the text so far, one thread each.
    #[inline]
    pub fn threads(&self, state: StateId) -> &[Thread] {
        &self.configs[state.0 as usize].threads
    }

    /// Whether the text may end in this configuration.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.configs[state.0 as usize].accepting
    }

    /// Counts and sizes, for reports.
    pub fn num_states(&self) -> usize {
        self.configs.count()
    }

    /// How many stacks are interned, and how many lexemes are in use.
    pub fn num_stacks_and_lexemes(&self) -> (usize, usize) {
        (self.stacks.len(), self.stacks.lexemes.len())
    }
}

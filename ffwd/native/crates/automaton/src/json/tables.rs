//! The tables of a grammar's JSON values.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::interning::intern::Interner;
use crate::interning::memory::Bytes;
use crate::json::arrays::Arrays;
use crate::json::history::Histories;
use crate::json::keys::Keys;
use crate::json::known_rivals::KnownRivals;
use crate::json::layouts::Layouts;
use crate::json::object_group::ObjectGroup;
use crate::json::object_state::{Feasibility, LeastMembers, ObjectPending, ObjectState};
use crate::json::punctuation;
use crate::json::punctuation::index;
use crate::json::query::{Query, ValueStarts};
use crate::stacks::ids::{LexemeId, NameId, QueryId};
use crate::stacks::lexemes::Lexemes;
use crate::writing::{PropertyOrder, Writing};
use ffwd_grammar::Whitespace;
use ffwd_json_schema::SchemaSet;
use ffwd_regular::expr::ByteSet;

const MAX_FRAMES: usize = 8_000_000;

/// The parts of an automaton that only JSON grammars have. Its methods are in the modules of the
/// kinds of values.
#[derive(Debug)]
pub struct Json {
    /// The normal forms of all schemas, which grow as texts are read.
    pub schema: Box<SchemaSet>,
    pub(crate) property_order: PropertyOrder,
    /// The bytes that may follow a value.
    pub(crate) after_values: ByteSet,
    /// See [`Writing::narrows`].
    pub(crate) narrows: bool,
    /// The names of all objects.
    pub keys: Keys,
    pub(crate) layouts: Layouts,
    pub(crate) queries: Interner<Query>,
    pub(crate) value_starts: Mutex<FxHashMap<QueryId, Arc<ValueStarts>>>,
    pub(crate) object_groups: boxcar::Vec<ObjectGroup>,
    pub(crate) feasible: Mutex<FxHashMap<Feasibility, bool>>,
    /// The members that components of exclusions need, with a member whose value has not been read.
    pub(crate) least_members: Mutex<FxHashMap<(Feasibility, Option<NameId>), LeastMembers>>,
    pub(crate) object_states: Interner<ObjectState>,
    pub(crate) object_pendings: Interner<ObjectPending>,
    pub(crate) arrays: Arrays,
    /// Earlier items that are stored beside the schema.
    pub(crate) histories: Histories,
    pub(crate) rivals: KnownRivals,
    /// Bytes of what is not interned.
    pub(crate) held: Bytes,
}

impl Json {
    /// Creates the tables with the lexemes of punctuation, which have fixed places: `lexemes` must
    /// be empty.
    pub(crate) fn new(
        schema: Box<SchemaSet>,
        writing: &Writing,
        whitespaces: &[&Whitespace],
        after_values: ByteSet,
        lexemes: &Lexemes,
    ) -> Result<Self> {
        let mut different: Vec<&Whitespace> = Vec::new();
        for &whitespace in whitespaces {
            if !different.contains(&whitespace) {
                different.push(whitespace);
            }
        }
        // By position: two marks may have the same text.
        let mut firsts = Vec::with_capacity(different.len());
        for whitespace in &different {
            firsts.push(LexemeId(lexemes.len() as u32));
            for lexeme in punctuation::lexemes(whitespace, lexemes.store())? {
                lexemes.push(lexeme);
            }
            if firsts.len() == 1 {
                let any_string =
                    lexemes.push_known(lexemes.store().get(&punctuation::any_string())?);
                debug_assert_eq!(any_string, index::ANY_STRING);
            }
        }
        let mut layouts = Layouts::default();
        for (whitespace, &first) in different.iter().zip(&firsts) {
            layouts.add(whitespace, first, |spec| Ok(lexemes.add(spec)?))?;
        }
        let frames = "grammar_frames";
        Ok(Self {
            schema,
            property_order: writing.property_order,
            after_values,
            narrows: writing.narrows(),
            keys: Keys::new()?,
            layouts,
            queries: Interner::new(frames, MAX_FRAMES),
            value_starts: Mutex::default(),
            object_groups: boxcar::Vec::new(),
            feasible: Mutex::default(),
            least_members: Mutex::default(),
            object_states: Interner::new(frames, MAX_FRAMES),
            object_pendings: Interner::new(frames, MAX_FRAMES),
            arrays: Arrays {
                groups: boxcar::Vec::new(),
                states: Interner::new(frames, MAX_FRAMES),
                pendings: Interner::new(frames, MAX_FRAMES),
                items: Mutex::default(),
                spares: Mutex::default(),
                repeats: AtomicBool::new(false),
            },
            histories: Histories::new()?,
            rivals: KnownRivals::default(),
            held: Bytes::default(),
        })
    }

    /// The estimated memory in bytes of containers' frames and of queries.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.held.get()
            + self.queries.memory_bytes()
            + self.object_states.memory_bytes()
            + self.object_pendings.memory_bytes()
            + self.arrays.states.memory_bytes()
            + self.histories.memory_bytes()
            + self.arrays.pendings.memory_bytes()
    }
}

//! The keys of an object: declared names, and the lexeme of all other keys.
//!
//! The names of an object are sorted by their text, so those with a common prefix are a range. A
//! *node* is such a range together with the state of the lexeme of other keys, and the earlier keys
//! without a name. Nodes are made as a text reaches them.
//!
//! If patterns restrict the other keys, all that are left at a node may be names or earlier keys.
//! Such a node has no base: it is *dead* unless some name in its range is allowed.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::interning::intern::Interner;
use crate::interning::memory::Held;
use crate::json::key_texts::Texts;
use crate::json::name_set::NameSet;
use crate::json::punctuation::index;
use crate::json::used_keys::{UsedId, UsedKeys};
use crate::stacks::ids::{KeyNodeId, LexemeId, NameId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::texts::{texts, TextCounter};
use ffwd_regular::expr::{spell, unspell_json, LexState, Lexeme, Spelling};

/// An interned [`KeySet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeySetId(u32);

/// A name that ends at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// No declared name.
    None,
    /// A name that is allowed here, by its place among the sorted names.
    Allowed(NameId),
    /// A name that is not allowed any more.
    Refused,
}

/// A place in the lexeme of the keys that are not declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyBase {
    /// The lexeme, by its index in the automaton.
    pub lexeme: LexemeId,
    /// Its state after the bytes so far.
    pub state: LexState,
}

/// The lexeme of the keys that are not declared.
#[derive(Clone, Debug)]
pub struct OtherKeys {
    /// Its index in the automaton.
    pub index: LexemeId,
    /// All keys that are not declared, each with its opening quote.
    pub lexeme: Arc<Lexeme>,
}

/// The names of an object, sorted by their bytes, each with its opening quote.
pub type Names = Arc<[Box<[u8]>]>;

/// The allowed names of an object, and the other allowed keys.
#[derive(Debug)]
pub struct KeySet {
    /// Unique to these names within the grammar.
    group: u32,
    names: Names,
    allowed: NameSet,
    others: Option<OtherKeys>,
    /// For each name, how many of those before it the lexeme of the other keys contains too.
    covered: OnceLock<Box<[u32]>>,
}

impl KeySet {
    /// `group` must be unique to `names` within the grammar.
    pub fn new(group: u32, names: Names, allowed: NameSet, others: Option<OtherKeys>) -> Self {
        Self { group, names, allowed, others, covered: OnceLock::new() }
    }

    fn identity(&self) -> (u32, &NameSet, Option<LexemeId>) {
        (self.group, &self.allowed, self.others.as_ref().map(|others| others.index))
    }

    /// How many names of a range the lexeme of the other keys contains too.
    fn covered(&self, from: u32, to: u32, lexeme: &Lexeme) -> Result<u32, LimitExceeded> {
        let known = match self.covered.get() {
            Some(known) => known,
            None => {
                let mut sums = Vec::with_capacity(self.names.len() + 1);
                let mut sum = 0;
                sums.push(sum);
                for name in self.names.iter() {
                    sum += u32::from(has(lexeme, lexeme.start(), name)?);
                    sums.push(sum);
                }
                self.covered.get_or_init(|| sums.into())
            }
        };
        Ok(known[to as usize] - known[from as usize])
    }
}

impl Clone for KeySet {
    fn clone(&self) -> Self {
        let (names, allowed) = (self.names.clone(), self.allowed.clone());
        Self::new(self.group, names, allowed, self.others.clone())
    }
}

impl PartialEq for KeySet {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for KeySet {}

impl Held for KeySet {
    fn held_bytes(&self) -> usize {
        // The names belong to the group, and only one of the two copies counts them.
        let covered = self.others.as_ref().map_or(0, |_| self.names.len() * 4);
        self.allowed.bytes() + covered / 2
    }
}

impl Hash for KeySet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Whether a lexeme has a key, from some state on, with the closing quote.
fn has(lexeme: &Lexeme, start: LexState, key: &[u8]) -> Result<bool, LimitExceeded> {
    let mut state = start;
    for &byte in key.iter().chain(b"\"") {
        match lexeme.next(state, byte)? {
            Some(next) => state = next,
            None => return Ok(false),
        }
    }
    Ok(state.accepts())
}

/// The keys that begin with some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyNode {
    set: KeySetId,
    /// The names with these bytes.
    from: u32,
    to: u32,
    /// How many bytes they are.
    depth: u32,
    /// Earlier keys without a name.
    used: UsedId,
    /// The state of other keys, if they are allowed.
    pub base: Option<KeyBase>,
}

impl Held for KeyNode {}

impl KeyNode {
    /// Whether a quote would open the key rather than close it.
    pub fn is_before_quote(&self) -> bool {
        self.depth == 0
    }

    /// Whether any declared name begins with these bytes.
    pub(crate) fn has_names(&self) -> bool {
        self.from < self.to
    }
}

/// The names of a node.
#[derive(Clone, Copy, Debug)]
pub struct PlainNames<'k> {
    /// Sorted; all of them begin with the bytes of the node.
    pub names: &'k [Box<[u8]>],
    /// The place of the first among all names.
    pub first: u32,
    /// The number of bytes up to the node.
    pub depth: usize,
    allowed: &'k NameSet,
}

impl PlainNames<'_> {
    /// Whether a name may come, by its place among all names.
    pub fn is_allowed(&self, name: NameId) -> bool {
        self.allowed.contains(name)
    }
}

/// The interned names and keys of all objects of one grammar.
#[derive(Debug)]
pub struct Keys {
    sets: Interner<KeySet>,
    nodes: Interner<KeyNode>,
    /// The sets of earlier keys.
    pub used: UsedKeys,
    /// The keys and items that are compared with later ones.
    pub texts: Texts,
    counter: Mutex<TextCounter>,
}

const MAX_KEY_NODES: usize = 8_000_000;

impl Keys {
    /// Without any names.
    pub fn new() -> Result<Self, LimitExceeded> {
        Ok(Self {
            sets: Interner::new("key_sets", MAX_KEY_NODES),
            nodes: Interner::new("key_places", MAX_KEY_NODES),
            used: UsedKeys::new()?,
            texts: Texts::default(),
            counter: Mutex::default(),
        })
    }

    /// The node of an id of this grammar.
    #[inline]
    pub fn node(&self, id: KeyNodeId) -> KeyNode {
        *self.nodes.get(id.0)
    }

    /// About how many bytes of memory the nodes and texts hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes()
            + self.nodes.memory_bytes()
            + self.used.memory_bytes()
            + self.texts.memory_bytes()
            + self.counter.try_lock().map_or(0, |counter| counter.memory_bytes())
    }

    /// How many nodes are interned.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len() + self.used.num_nodes()
    }

    /// The id of a set, which is added unless it is known.
    pub fn intern(&self, node: KeyNode) -> Result<KeyNodeId, LimitExceeded> {
        Ok(KeyNodeId(self.nodes.intern(node)?))
    }

    fn set(&self, node: &KeyNode) -> &KeySet {
        self.sets.get(node.set.0)
    }

    fn names<'k>(&'k self, node: &KeyNode) -> &'k [Box<[u8]>] {
        &self.set(node).names[node.from as usize..node.to as usize]
    }

    /// The keys of a set without the earlier ones.
    pub fn root(&self, set: KeySet, used: UsedId) -> Result<KeyNodeId, LimitExceeded> {
        let to = set.names.len() as u32;
        let start =
            |others: &OtherKeys| KeyBase { lexeme: others.index, state: others.lexeme.start() };
        let base = set.others.as_ref().map(start);
        let set = KeySetId(self.sets.intern(set)?);
        let root = KeyNode { set, from: 0, to, depth: 0, used, base };
        self.intern(self.settled(root)?)
    }

    /// The node, without a base if all keys of the lexeme are names or earlier keys.
    fn settled(&self, mut node: KeyNode) -> Result<KeyNode, LimitExceeded> {
        let (Some(base), Some(others)) = (node.base, &self.set(&node).others) else {
            return Ok(node);
        };
        // "Any string" has more keys than these everywhere.
        if base.lexeme == index::ANY_STRING {
            return Ok(node);
        }
        let is_left = |taken: u32| -> Result<bool, LimitExceeded> {
            let limit = u64::from(taken) + 1;
            Ok(self.counter.lock().count(&others.lexeme, base.state, limit)? == limit)
        };
        if is_left(node.to - node.from + self.used.count(node.used))? {
            return Ok(node);
        }
        let names = self.set(&node).covered(node.from, node.to, &others.lexeme)?;
        let used = self.used_of(&others.lexeme, base.state, node.used)?;
        if !is_left(names + used)? {
            node.base = None;
        }
        Ok(node)
    }

    /// How many earlier keys a lexeme contains from a state on.
    fn used_of(
        &self,
        lexeme: &Lexeme,
        state: LexState,
        used: UsedId,
    ) -> Result<u32, LimitExceeded> {
        let mut count = 0;
        let mut pending = vec![(used, state)];
        while let Some((used, state)) = pending.pop() {
            meter::charge(1)?;
            if self.used.ends(used) {
                count += u32::from(has(lexeme, state, b"")?);
            }
            for &(byte, child) in self.used.children(used) {
                if let Some(next) = lexeme.next(state, byte)? {
                    pending.push((child, next));
                }
            }
        }
        Ok(count)
    }

    /// The bytes that a node stands for, where some name begins with them.
    pub fn written<'k>(&'k self, node: &KeyNode) -> &'k [u8] {
        self.names(node).first().map_or(&[], |name| &name[..node.depth as usize])
    }

    /// The allowed names of a node, by their places among all names, in order.
    pub(crate) fn allowed_names(&self, node: &KeyNode) -> impl Iterator<Item = NameId> + '_ {
        let allowed = &self.set(node).allowed;
        (node.from..node.to).map(NameId).filter(|&name| allowed.contains(name))
    }

    /// Returns the rest of a name after a node, with its closing quote.
    pub(crate) fn rest_of_name(&self, node: &KeyNode, name: NameId) -> Vec<u8> {
        let name = &self.set(node).names[name.0 as usize];
        name[node.depth as usize..].iter().copied().chain([b'"']).collect()
    }

    /// A name of a node, by its place among all names.
    pub fn name(&self, node: &KeyNode, name: NameId) -> Arc<str> {
        decoded(&self.set(node).names[name.0 as usize])
    }

    /// A name of a node that is not allowed and continues with these bytes, or equals them if they
    /// are the whole rest.
    pub(crate) fn refused_name(&self, node: &KeyNode, rest: &[u8], whole: bool) -> Option<&[u8]> {
        let set = self.set(node);
        let refused = (node.from..node.to).map(NameId).filter(|&name| !set.allowed.contains(name));
        let mut names = refused.map(|name| &*set.names[name.0 as usize]);
        names.find(|name| match name.get(node.depth as usize..) {
            Some(left) if whole => left == rest,
            Some(left) => left.starts_with(rest),
            None => false,
        })
    }

    /// Returns the name that ends here.
    pub fn terminal(&self, node: &KeyNode) -> Terminal {
        match self.names(node).first() {
            Some(name) if name.len() == node.depth as usize => {
                match self.set(node).allowed.contains(NameId(node.from)) {
                    true => Terminal::Allowed(NameId(node.from)),
                    false => Terminal::Refused,
                }
            }
            _ if self.used.ends(node.used) => Terminal::Refused,
            _ => Terminal::None,
        }
    }

    /// Whether no key continues here.
    pub fn is_dead(&self, node: &KeyNode) -> bool {
        node.base.is_none() && !self.set(node).allowed.has_any(node.from, node.to)
    }

    /// Returns the declared names, and the earlier keys, that continue with a byte; `None` if only
    /// other keys do.
    pub fn child(&self, node: &KeyNode, byte: u8) -> Result<Option<KeyNode>, LimitExceeded> {
        let names = self.names(node);
        let depth = node.depth as usize;
        let at = |name: &[u8]| name.get(depth).map_or(-1, |&byte| i32::from(byte));
        let from = names.partition_point(|name| at(name) < i32::from(byte));
        let rest = &names[from..];
        let count = match rest.first().is_some_and(|name| at(name) == i32::from(byte)) {
            true => rest.partition_point(|name| at(name) == i32::from(byte)),
            false => 0,
        };
        let used = self.used.child(node.used, byte);
        if count == 0 && used.is_none() {
            return Ok(None);
        }
        let from = node.from + from as u32;
        let used = used.unwrap_or(UsedId::EMPTY);
        self.step(node, byte, from, from + count as u32, used).map(Some)
    }

    fn step(
        &self,
        node: &KeyNode,
        byte: u8,
        from: u32,
        to: u32,
        used: UsedId,
    ) -> Result<KeyNode, LimitExceeded> {
        let base = match (node.base, &self.set(node).others) {
            (Some(base), Some(others)) => {
                let next = others.lexeme.next(base.state, byte)?;
                next.map(|state| KeyBase { state, ..base })
            }
            _ => None,
        };
        let depth = node.depth + 1;
        self.settled(KeyNode { set: node.set, from, to, depth, used, base })
    }

    /// The nodes that [`Self::child`] leads to, sorted by byte.
    pub fn children(&self, node: &KeyNode) -> Result<SmallVec<[(u8, KeyNode); 4]>, LimitExceeded> {
        let names = self.names(node);
        let depth = node.depth as usize;
        let mut used = self.used.children(node.used).iter().copied().peekable();
        let mut found = SmallVec::new();
        let mut at = usize::from(names.first().is_some_and(|name| name.len() == depth));
        loop {
            let named = names.get(at).map(|name| name[depth]);
            let came = used.peek().map(|&(byte, _)| byte);
            let Some(byte) = named.into_iter().chain(came).min() else { return Ok(found) };
            let count = match named == Some(byte) {
                false => 0,
                // Mostly few, so that the next is near.
                true => match names.get(at + 1).is_some_and(|name| name[depth] == byte) {
                    false => 1,
                    true => names[at..].partition_point(|name| name[depth] == byte),
                },
            };
            let came = used.next_if(|&(known, _)| known == byte);
            let came = came.map_or(UsedId::EMPTY, |(_, used)| used);
            let from = node.from + at as u32;
            found.push((byte, self.step(node, byte, from, from + count as u32, came)?));
            at += count;
        }
    }

    /// Returns the names of a node, and the allowed ones of all names, if nothing else matters:
    /// there are no earlier keys, and other keys continue everywhere or nowhere.
    pub fn plain_names(&self, node: &KeyNode) -> Option<PlainNames<'_>> {
        let is_plain = node.used == UsedId::EMPTY
            && node.base.is_none_or(|base| base.lexeme == index::ANY_STRING);
        let allowed = &self.set(node).allowed;
        is_plain.then(|| PlainNames {
            names: self.names(node),
            first: node.from,
            depth: node.depth as usize,
            allowed,
        })
    }

    /// Returns the texts of a lexeme, as JSON strings, if they are few.
    pub fn texts(
        &self,
        lexeme: &Lexeme,
        limit: u64,
    ) -> Result<Option<Vec<Vec<u8>>>, LimitExceeded> {
        texts(&mut self.counter.lock(), lexeme, lexeme.start(), limit)
    }
}

/// A name as it is written, with its opening quote.
pub fn written(name: &str) -> Box<[u8]> {
    let spelled = spell(name, Spelling::JsonString);
    b"\"".iter().copied().chain(spelled).collect()
}

/// The name that is written so.
pub(crate) fn decoded(written: &[u8]) -> Arc<str> {
    unspell_json(written.get(1..).unwrap_or_default()).unwrap_or_default().into()
}

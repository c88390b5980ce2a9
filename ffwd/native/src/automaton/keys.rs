//! The keys of objects: which names may come, as persistent tries over their spelling.
//!
//! A trie node says what the names below it are; where the object also takes other keys it says
//! in addition where in the lexeme of those keys it stands, so that leaving the trie is entering
//! that lexeme. Nodes are hash-consed and changed by copying a path, so the tries of an object's
//! successive states share all but what changed.
//!
//! Where patterns restrict the other keys, all that are left below a node may be names that are
//! refused. Such a node has no base: it is *dead* unless some name below it may come.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::intern::Interner;
use super::memory::{map_entry, Held};
use super::punctuation::index;
use crate::error::LimitExceeded;
use crate::expr::lower::{spell, unspell_json, Spelling};
use crate::expr::texts::{texts, TextCounter};
use crate::expr::{LexState, Lexeme};

/// A key as it is written: the opening quote and the spelled characters so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

impl TextId {
    /// No text is recorded.
    pub const NONE: Self = Self(0);
    /// Nothing has been written yet.
    pub const EMPTY: Self = Self(1);
    /// Some text that is not known: masks are computed for all texts at once.
    pub const ANY: Self = Self(u32::MAX);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyNodeId(pub u32);

/// What a name that ends at a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// No declared name.
    None,
    /// A name that may come now.
    Allowed(TextId),
    /// A name that may not come any more.
    Refused,
}

/// A place in the lexeme of the keys that are not declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyBase {
    /// The lexeme, by its index in the automaton.
    pub lexeme: u32,
    pub state: LexState,
}

/// The lexeme of the keys that are not declared.
#[derive(Clone, Copy, Debug)]
pub struct OtherKeys<'l> {
    /// Its index in the automaton.
    pub index: u32,
    pub lexeme: &'l Lexeme,
}

impl OtherKeys<'_> {
    fn start(self) -> KeyBase {
        KeyBase { lexeme: self.index, state: self.lexeme.start() }
    }

    fn next(self, base: Option<KeyBase>, byte: u8) -> Result<Option<KeyBase>, LimitExceeded> {
        let Some(base) = base else { return Ok(None) };
        let next = self.lexeme.next(base.state, byte)?;
        Ok(next.map(|state| KeyBase { state, ..base }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyNode {
    /// Sorted by byte.
    pub children: Arc<[(u8, KeyNodeId)]>,
    pub terminal: Terminal,
    /// Where other keys are allowed.
    pub base: Option<KeyBase>,
    /// How many names at and below the node the lexeme of the other keys has too. Not counted for
    /// "any string", which has more keys than these everywhere.
    covered: u32,
}

impl Held for KeyNode {
    fn held_bytes(&self) -> usize {
        // The children are shared by both copies of a node.
        std::mem::size_of_val(&*self.children) / 2 + 8
    }
}

impl KeyNode {
    pub fn child(&self, byte: u8) -> Option<KeyNodeId> {
        let position = self.children.binary_search_by_key(&byte, |&(label, _)| label).ok()?;
        Some(self.children[position].1)
    }

    /// Whether no key goes on here.
    pub fn is_dead(&self) -> bool {
        self.base.is_none()
            && self.children.is_empty()
            && !matches!(self.terminal, Terminal::Allowed(_))
    }

    /// Whether a quote would open the key rather than close it.
    pub fn is_before_quote(&self) -> bool {
        self.base.is_some_and(|base| base.state == LexState::QUOTE)
    }
}

#[derive(Debug)]
pub struct Keys {
    nodes: Interner<KeyNode>,
    /// Texts as (all but the last byte, last byte).
    texts: boxcar::Vec<(TextId, u8)>,
    text_ids: Mutex<FxHashMap<(TextId, u8), TextId>>,
    counter: Mutex<TextCounter>,
}

/// How many bytes of keys one grammar remembers, to tell repeated keys.
const MAX_TEXTS: usize = 16_000_000;
const MAX_KEY_NODES: usize = 8_000_000;

impl Default for Keys {
    fn default() -> Self {
        let texts = boxcar::Vec::new();
        // NONE and EMPTY.
        texts.push((TextId::NONE, 0));
        texts.push((TextId::NONE, 0));
        Self {
            nodes: Interner::new("nodes of the key tries of one grammar", MAX_KEY_NODES),
            texts,
            text_ids: Mutex::default(),
            counter: Mutex::default(),
        }
    }
}

impl Keys {
    #[inline]
    pub fn node(&self, id: KeyNodeId) -> &KeyNode {
        self.nodes.get(id.0)
    }

    /// About how many bytes of memory the tries and texts hold.
    pub fn memory_bytes(&self) -> usize {
        let text = std::mem::size_of::<(TextId, u8)>() + map_entry::<(TextId, u8), TextId>();
        self.nodes.memory_bytes()
            + self.texts.count() * text
            + self.counter.try_lock().map_or(0, |counter| counter.memory_bytes())
    }

    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The text with one byte more.
    pub fn append(&self, text: TextId, byte: u8) -> Result<TextId, LimitExceeded> {
        if text == TextId::ANY || text == TextId::NONE {
            return Ok(text);
        }
        let mut ids = self.text_ids.lock();
        if let Some(&known) = ids.get(&(text, byte)) {
            return Ok(known);
        }
        if self.texts.count() >= MAX_TEXTS {
            return Err(LimitExceeded::new("bytes of distinct keys of one grammar", MAX_TEXTS));
        }
        let id = TextId(self.texts.push((text, byte)) as u32);
        ids.insert((text, byte), id);
        Ok(id)
    }

    /// The text of a declared name.
    pub fn name(&self, name: &str) -> Result<TextId, LimitExceeded> {
        let mut text = self.append(TextId::EMPTY, b'"')?;
        for byte in spell(name, Spelling::JsonString) {
            text = self.append(text, byte)?;
        }
        Ok(text)
    }

    /// The bytes of a text, the opening quote first.
    pub fn bytes(&self, text: TextId) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut current = text;
        while current > TextId::EMPTY && current != TextId::ANY {
            let (prefix, byte) = self.texts[current.0 as usize];
            bytes.push(byte);
            current = prefix;
        }
        bytes.reverse();
        bytes
    }

    /// The name that a text writes, which is a whole name with its opening quote.
    pub fn decoded(&self, text: TextId) -> Arc<str> {
        let bytes = self.bytes(text);
        unspell_json(bytes.get(1..).unwrap_or_default()).unwrap_or_default().into()
    }

    /// The node, in its canonical form: without a base where all keys of the lexeme are names, and
    /// without what cannot matter there.
    fn intern(
        &self,
        mut children: Vec<(u8, KeyNodeId)>,
        mut terminal: Terminal,
        mut base: Option<KeyBase>,
        others: Option<OtherKeys<'_>>,
        mut covered: u32,
    ) -> Result<KeyNodeId, LimitExceeded> {
        if let (Some(place), Some(others)) = (base, others) {
            if others.index != index::ANY_STRING {
                let below = children.iter().map(|&(_, child)| self.node(child).covered);
                covered = below.sum();
                if terminal != Terminal::None && place.state != LexState::QUOTE {
                    covered += u32::from(others.lexeme.next(place.state, b'"')?.is_some());
                }
                let limit = u64::from(covered) + 1;
                let left = self.counter.lock().count(others.lexeme, place.state, limit)?;
                if left < limit {
                    base = None;
                }
            }
        }
        if base.is_none() {
            if terminal == Terminal::Refused {
                terminal = Terminal::None;
            }
            children.retain(|&(_, child)| !self.node(child).is_dead());
        } else {
            // Neither what says nothing, nor what refuses that which the lexeme of the other keys
            // does not have.
            children.retain(|&(_, child)| {
                let child = self.node(child);
                let says_nothing = child.children.is_empty() && child.terminal == Terminal::None;
                !says_nothing || (child.base.is_none() && child.covered > 0)
            });
        }
        let node = KeyNode { children: children.into(), terminal, base, covered };
        Ok(KeyNodeId(self.nodes.intern(node)?))
    }

    /// The trie of `names` (sorted by bytes, each with its opening quote), at the place before the
    /// opening quote. `others`: which other keys are allowed too.
    pub fn build(
        &self,
        names: &[(Vec<u8>, Terminal)],
        others: Option<OtherKeys<'_>>,
    ) -> Result<KeyNodeId, LimitExceeded> {
        struct Open {
            byte: u8,
            children: Vec<(u8, KeyNodeId)>,
            terminal: Terminal,
            base: Option<KeyBase>,
        }
        let start = others.map(OtherKeys::start);
        let mut nodes =
            vec![Open { byte: 0, children: Vec::new(), terminal: Terminal::None, base: start }];
        let mut path: Vec<u8> = Vec::new();
        let close = |nodes: &mut Vec<Open>| -> Result<(), LimitExceeded> {
            if let Some(node) = nodes.pop() {
                let id = self.intern(node.children, node.terminal, node.base, others, 0)?;
                if let Some(parent) = nodes.last_mut() {
                    parent.children.push((node.byte, id));
                }
            }
            Ok(())
        };
        for (name, terminal) in names {
            let shared = path.iter().zip(name).take_while(|(a, b)| a == b).count();
            while nodes.len() > shared + 1 {
                close(&mut nodes)?;
            }
            path.truncate(shared);
            for &byte in &name[shared..] {
                path.push(byte);
                let base = match others {
                    Some(others) => others.next(nodes.last().and_then(|node| node.base), byte)?,
                    None => None,
                };
                nodes.push(Open { byte, children: Vec::new(), terminal: Terminal::None, base });
            }
            if let Some(node) = nodes.last_mut() {
                node.terminal = *terminal;
            }
        }
        while nodes.len() > 1 {
            close(&mut nodes)?;
        }
        match nodes.pop() {
            Some(root) => self.intern(root.children, root.terminal, root.base, others, 0),
            None => self.intern(Vec::new(), Terminal::None, start, others, 0),
        }
    }

    /// The trie with one name changed. Where no other keys are allowed, a name that may not come
    /// is taken out, so that every node leads to a name that may.
    pub fn with(
        &self,
        root: KeyNodeId,
        others: Option<OtherKeys<'_>>,
        name: &[u8],
        terminal: Terminal,
    ) -> Result<KeyNodeId, LimitExceeded> {
        let mut path: Vec<KeyNode> = vec![self.node(root).clone()];
        for &byte in name {
            let last = &path[path.len() - 1];
            let next = match last.child(byte) {
                Some(child) => self.node(child).clone(),
                None => KeyNode {
                    children: Arc::from([]),
                    terminal: Terminal::None,
                    base: match others {
                        Some(others) => others.next(last.base, byte)?,
                        None => None,
                    },
                    covered: 0,
                },
            };
            path.push(next);
        }
        if let Some(last) = path.last_mut() {
            last.terminal = terminal;
        }
        let mut below: Option<KeyNodeId> = None;
        for (depth, node) in path.into_iter().enumerate().rev() {
            let mut children: Vec<(u8, KeyNodeId)> = node.children.to_vec();
            if let (Some(&byte), Some(id)) = (name.get(depth), below) {
                match children.binary_search_by_key(&byte, |&(label, _)| label) {
                    Ok(at) => children[at].1 = id,
                    Err(at) => children.insert(at, (byte, id)),
                }
            }
            below = Some(self.intern(children, node.terminal, node.base, others, node.covered)?);
        }
        Ok(below.unwrap_or(root))
    }

    /// The names in a trie that are marked as refused, in order of their bytes.
    pub fn refused(&self, root: KeyNodeId) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut pending: Vec<(KeyNodeId, Vec<u8>)> = vec![(root, Vec::new())];
        while let Some((id, text)) = pending.pop() {
            let node = self.node(id);
            for &(byte, child) in node.children.iter().rev() {
                let mut longer = text.clone();
                longer.push(byte);
                pending.push((child, longer));
            }
            if node.terminal == Terminal::Refused {
                found.push(text);
            }
        }
        found
    }

    /// The texts of a lexeme, spelled, if they are few.
    pub fn texts(
        &self,
        lexeme: &Lexeme,
        limit: u64,
    ) -> Result<Option<Vec<Vec<u8>>>, LimitExceeded> {
        texts(&mut self.counter.lock(), lexeme, lexeme.start(), limit)
    }
}

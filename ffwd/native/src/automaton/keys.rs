//! The keys of objects: which names may come, as persistent tries over their spelling.
//!
//! A trie node says what the names below it are; where the object also takes other keys it says
//! in addition where in "any JSON string" it stands, so that leaving the trie is entering the
//! string that all schemas share. Nodes are hash-consed and changed by copying a path, so the
//! tries of an object's successive states share all but what changed.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::intern::Interner;
use crate::error::LimitExceeded;
use crate::expr::lower::{spell, Spelling};
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyNode {
    /// Sorted by byte.
    pub children: Arc<[(u8, KeyNodeId)]>,
    pub terminal: Terminal,
    /// Where other keys are allowed: the state of "any JSON string" here.
    pub base: Option<LexState>,
}

impl KeyNode {
    pub fn child(&self, byte: u8) -> Option<KeyNodeId> {
        let position = self.children.binary_search_by_key(&byte, |&(label, _)| label).ok()?;
        Some(self.children[position].1)
    }
}

#[derive(Debug)]
pub struct Keys {
    nodes: Interner<KeyNode>,
    /// Texts as (all but the last byte, last byte).
    texts: boxcar::Vec<(TextId, u8)>,
    text_ids: Mutex<FxHashMap<(TextId, u8), TextId>>,
    any_string: Arc<Lexeme>,
}

/// How many bytes of keys one grammar remembers, to tell repeated keys.
const MAX_TEXTS: usize = 16_000_000;
const MAX_KEY_NODES: usize = 8_000_000;

impl Keys {
    pub fn new(any_string: Arc<Lexeme>) -> Self {
        let texts = boxcar::Vec::new();
        // NONE and EMPTY.
        texts.push((TextId::NONE, 0));
        texts.push((TextId::NONE, 0));
        Self {
            nodes: Interner::new("nodes of the key tries of one grammar", MAX_KEY_NODES),
            texts,
            text_ids: Mutex::default(),
            any_string,
        }
    }

    #[inline]
    pub fn node(&self, id: KeyNodeId) -> &KeyNode {
        self.nodes.get(id.0)
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

    fn intern(
        &self,
        children: Vec<(u8, KeyNodeId)>,
        terminal: Terminal,
        base: Option<LexState>,
    ) -> Result<KeyNodeId, LimitExceeded> {
        let node = KeyNode { children: children.into(), terminal, base };
        Ok(KeyNodeId(self.nodes.intern(node)?))
    }

    /// The trie of `names` (sorted by bytes, each with its opening quote), at the place before the
    /// opening quote. `open`: other keys are allowed too.
    pub fn build(
        &self,
        names: &[(Vec<u8>, Terminal)],
        open: bool,
    ) -> Result<KeyNodeId, LimitExceeded> {
        struct Open {
            byte: u8,
            children: Vec<(u8, KeyNodeId)>,
            terminal: Terminal,
            base: Option<LexState>,
        }
        let start = open.then_some(LexState::QUOTE);
        let mut nodes =
            vec![Open { byte: 0, children: Vec::new(), terminal: Terminal::None, base: start }];
        let mut path: Vec<u8> = Vec::new();
        let close = |nodes: &mut Vec<Open>| -> Result<(), LimitExceeded> {
            if let Some(node) = nodes.pop() {
                let id = self.intern(node.children, node.terminal, node.base)?;
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
                let base = match nodes.last().and_then(|node| node.base) {
                    Some(state) => self.any_string.next(state, byte)?,
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
            Some(root) => self.intern(root.children, root.terminal, root.base),
            None => self.intern(Vec::new(), Terminal::None, start),
        }
    }

    /// The trie with one name changed. In a trie without `base` a name that is neither allowed nor
    /// refused is taken out, so that every node leads to an allowed name.
    pub fn with(
        &self,
        root: KeyNodeId,
        name: &[u8],
        terminal: Terminal,
    ) -> Result<KeyNodeId, LimitExceeded> {
        let open = self.node(root).base.is_some();
        let terminal =
            if open || terminal != Terminal::Refused { terminal } else { Terminal::None };
        let mut path: Vec<KeyNode> = vec![self.node(root).clone()];
        for &byte in name {
            let last = &path[path.len() - 1];
            let next = match last.child(byte) {
                Some(child) => self.node(child).clone(),
                None => KeyNode {
                    children: Arc::from([]),
                    terminal: Terminal::None,
                    base: match last.base {
                        Some(state) => self.any_string.next(state, byte)?,
                        None => None,
                    },
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
            if let Some(&byte) = name.get(depth) {
                let position = children.binary_search_by_key(&byte, |&(label, _)| label);
                match (position, below) {
                    (Ok(at), Some(id)) => children[at].1 = id,
                    (Ok(at), None) => {
                        children.remove(at);
                    }
                    (Err(at), Some(id)) => children.insert(at, (byte, id)),
                    (Err(_), None) => {}
                }
            }
            let empty = children.is_empty() && node.terminal == Terminal::None && depth > 0;
            below =
                if empty { None } else { Some(self.intern(children, node.terminal, node.base)?) };
        }
        Ok(below.unwrap_or(root))
    }
}

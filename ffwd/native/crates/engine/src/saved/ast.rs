//! Languages as bytes: a list of nodes, each after its parts, and none twice.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bytes::{Reader, Writer};
use super::SavedError;
use ffwd_regular::regex::{substring_of, Ast, CharClass, Look};

/// How many nodes a language may have, shared ones counted as often as they occur.
const MAX_SIZE: u64 = 1 << 24;
/// How deep it may nest.
const MAX_DEPTH: u32 = 2_000;

/// Collects the nodes of languages.
#[derive(Default)]
pub(super) struct Languages {
    nodes: Vec<Arc<[u8]>>,
    ids: FxHashMap<Arc<[u8]>, u32>,
    visited: u64,
}

impl Languages {
    /// The number of a language.
    pub fn add(&mut self, ast: &Ast) -> Result<u32, SavedError> {
        self.add_at(ast, 0)
    }

    fn add_at(&mut self, ast: &Ast, depth: u32) -> Result<u32, SavedError> {
        self.visited += 1;
        if self.visited > MAX_SIZE || depth >= MAX_DEPTH {
            return Err(SavedError::Unsupported("a language that large"));
        }
        let mut node = Writer::default();
        let mut all = |languages: &mut Self, tag: u8, parts: &[Ast]| {
            let mut ids = Vec::with_capacity(parts.len());
            for part in parts {
                ids.push(languages.add_at(part, depth + 1)?);
            }
            node.byte(tag);
            node.length(ids.len());
            ids.into_iter().for_each(|id| node.number(id));
            Ok::<(), SavedError>(())
        };
        let one = std::slice::from_ref::<Ast>;
        match ast {
            Ast::Empty => node.byte(0),
            Ast::Epsilon => node.byte(1),
            Ast::Class(class) => {
                node.byte(2);
                node.length(class.ranges().len());
                for &(low, high) in class.ranges() {
                    node.number(low);
                    node.number(high - low);
                }
            }
            Ast::Literal(text) => {
                node.byte(3);
                node.text(text);
            }
            Ast::Substring(chunks) => {
                node.byte(4);
                node.length(chunks.texts().len());
                chunks.texts().iter().for_each(|chunk| node.text(chunk));
            }
            Ast::Concat(parts) => all(self, 5, parts)?,
            Ast::Alternation(parts) => all(self, 6, parts)?,
            Ast::Intersection(parts) => all(self, 7, parts)?,
            Ast::Repeat { inner, min, max } => {
                all(self, 8, one(inner))?;
                node.number(*min);
                node.optional(*max);
            }
            Ast::Complement(inner) => all(self, 9, one(inner))?,
            Ast::Before(inner) => all(self, 10, one(inner))?,
            Ast::After(inner) => all(self, 11, one(inner))?,
            Ast::Approximate { .. } | Ast::Magnitude(_) | Ast::Finite(_) => {
                return Err(SavedError::Unsupported("a language of numbers"));
            }
        }
        let node: Arc<[u8]> = node.0.into();
        if let Some(&known) = self.ids.get(&node) {
            return Ok(known);
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        Ok(id)
    }

    /// All of them, in the order of their numbers.
    pub fn write(&self, writer: &mut Writer) {
        writer.length(self.nodes.len());
        self.nodes.iter().for_each(|node| writer.0.extend_from_slice(node));
    }
}

/// A language that was read, with its size.
struct ReadLanguage {
    ast: Ast,
    size: u64,
    depth: u32,
    look: Look,
    /// Whether it can only be a language of whole texts: it has a lookaround within an intersection
    /// or a complement.
    whole: bool,
}

/// The languages that were written.
pub(super) struct ReadLanguages(Vec<ReadLanguage>);

impl ReadLanguages {
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SavedError> {
        let mut known: Vec<ReadLanguage> = Vec::new();
        for _ in 0..reader.length()? {
            let next = read_node(reader, &known)?;
            known.push(next);
        }
        Ok(Self(known))
    }

    pub fn get(&self, id: u32) -> Result<Ast, SavedError> {
        let known = self.0.get(id as usize).ok_or(SavedError::Malformed("a language"))?;
        Ok(known.ast.clone())
    }
}

fn read_node(reader: &mut Reader<'_>, known: &[ReadLanguage]) -> Result<ReadLanguage, SavedError> {
    const MALFORMED: SavedError = SavedError::Malformed("a language");
    let leaf = |ast| ReadLanguage { ast, size: 1, depth: 1, look: Look::Nowhere, whole: false };
    let tag = reader.byte()?;
    match tag {
        0 => return Ok(leaf(Ast::Empty)),
        1 => return Ok(leaf(Ast::Epsilon)),
        2 => {
            let ranges = reader.list(|reader| {
                let low = reader.small()?;
                Ok((low, low.saturating_add(reader.small()?)))
            })?;
            return Ok(leaf(Ast::class(CharClass::new(ranges))));
        }
        3 => return Ok(leaf(Ast::literal(reader.text()?))),
        4 => {
            let chunks = reader.list(|reader| Ok(reader.text()?.to_owned()))?;
            return Ok(leaf(substring_of(&chunks)));
        }
        _ => {}
    }
    let ids = reader.list(Reader::small)?;
    let parts: Vec<&ReadLanguage> = ids
        .iter()
        .map(|&id| known.get(id as usize).ok_or(MALFORMED))
        .collect::<Result<_, SavedError>>()?;
    let size = parts.iter().fold(1u64, |sum, part| sum.saturating_add(part.size));
    let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
    if size > MAX_SIZE || depth > MAX_DEPTH {
        return Err(SavedError::Malformed("the size of a language"));
    }
    let look = parts.iter().map(|part| part.look).max().unwrap_or(Look::Nowhere);
    let whole = parts.iter().any(|part| part.whole);
    let asts = || parts.iter().map(|part| part.ast.clone());
    let only = || match parts[..] {
        [part] => Ok(part.ast.clone()),
        _ => Err(MALFORMED),
    };
    let bound = look != Look::Nowhere;
    let node = |ast, look, whole| Ok(ReadLanguage { ast, size, depth, look, whole });
    match tag {
        5 if !whole || parts.len() == 1 => node(Ast::concat(asts()), look, whole),
        6 => node(Ast::alternation(asts()), look, whole),
        7 => node(Ast::intersection(asts()), look, whole || bound),
        8 => {
            let (min, max) = (reader.small()?, reader.optional()?);
            if whole || max.is_some_and(|max| max < min) {
                return Err(MALFORMED);
            }
            node(Ast::repeat(only()?, min, max), look, false)
        }
        9 => node(Ast::complement(only()?), look, whole || bound),
        10 if look < Look::Ahead => node(Ast::before(only()?), Look::Behind, false),
        11 => node(Ast::after(only()?), Look::Ahead, false),
        _ => Err(MALFORMED),
    }
}

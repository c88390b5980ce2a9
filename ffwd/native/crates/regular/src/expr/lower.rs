//! Conversion of text languages to expressions over encoded bytes.
//!
//! An encoding maps each character to a self-delimiting run of bytes. A language of texts and the
//! language of its encodings therefore have the same boolean structure; only complements must be
//! restricted to valid encodings.

use std::sync::OnceLock;

use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};
use rustc_hash::FxHashMap;

use super::byte_set::ByteSet;
use super::listed::TextTable;
use super::lookaround::resolve;
use super::store::{ExprId, ExprStore};
use super::substring::SubstringTable;
use crate::regex::{Ast, CharClass, Look};
use ffwd_bounds::error::LimitExceeded;

/// How characters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As UTF-8.
    Utf8,
    /// As inside a JSON string, canonically: raw UTF-8 but for the short escapes `\" \\ \b \f \n
    /// \r \t` and `\u00xx`, lower case, for the other control characters.
    JsonString,
}

/// From how many texts on a union of texts is a table rather than a trie of expressions.
pub const LISTED_FROM: usize = 32;

/// Lowers texts into one store.
pub struct Lowering<'s> {
    store: &'s mut ExprStore,
    spelling: Spelling,
    classes: FxHashMap<CharClass, ExprId>,
    /// From how many texts on a union of texts is a table.
    listed_from: usize,
}

/// A trie under construction, in sorted order.
struct OpenTrie {
    /// The byte of each open node, and where its children begin.
    path: Vec<(u8, usize)>,
    children: Vec<ExprId>,
    /// The expressions of single bytes.
    heads: [Option<ExprId>; 256],
}

impl Default for OpenTrie {
    fn default() -> Self {
        Self { path: Vec::new(), children: Vec::new(), heads: [None; 256] }
    }
}

impl<'s> Lowering<'s> {
    /// Makes the store anew, with "any text" of the spelling as its universe.
    pub fn new(
        store: &'s mut ExprStore,
        spelling: Spelling,
        listed_from: usize,
    ) -> Result<Self, LimitExceeded> {
        // The expression of any character is larger than most languages are.
        static TEMPLATES: [OnceLock<ExprStore>; 2] = [const { OnceLock::new() }; 2];
        let template = &TEMPLATES[spelling as usize];
        match template.get() {
            Some(known) => store.clone_from(known),
            None => {
                let made = template_of(spelling)?;
                store.clone_from(template.get_or_init(|| made));
            }
        }
        let any = store.any_character().map(|id| (CharClass::any(), id));
        let classes = any.into_iter().collect();
        Ok(Self { store, spelling, classes, listed_from })
    }

    /// One character of any kind.
    pub fn any_character(&mut self) -> Result<ExprId, LimitExceeded> {
        self.class(&CharClass::any())
    }

    /// The expression of a language of whole texts.
    pub fn lower(&mut self, ast: &Ast) -> Result<ExprId, LimitExceeded> {
        if ast.looks_around() == Look::Ahead && !matches!(ast, Ast::Intersection(_)) {
            let span = self.span(ast)?;
            return resolve(self.store, span, ExprId::EPSILON);
        }
        self.span(ast)
    }

    fn span(&mut self, ast: &Ast) -> Result<ExprId, LimitExceeded> {
        match ast {
            Ast::Empty => Ok(ExprId::EMPTY),
            Ast::Epsilon => Ok(ExprId::EPSILON),
            Ast::Class(class) => self.class(class),
            Ast::Magnitude(magnitude) => self.store.magnitude(magnitude.clone()),
            Ast::Finite(finite) => self.store.finite(*finite),
            Ast::Substring(chunks) => {
                let texts = chunks.texts().iter();
                let spelled: Vec<Vec<u8>> = texts.map(|text| spell(text, self.spelling)).collect();
                self.store.substrings(SubstringTable::new(&spelled)?)
            }
            Ast::Literal(text) => {
                let spelled = spell(text, self.spelling);
                self.store.literal(&spelled)
            }
            Ast::Concat(parts) => {
                let mut id = ExprId::EPSILON;
                for part in parts.iter().rev() {
                    let head = self.span(part)?;
                    id = self.store.concat(head, id)?;
                }
                Ok(id)
            }
            Ast::Alternation(parts) => {
                // The encoded texts, one after the other, and the end of each.
                let (mut buffer, mut ends) = (Vec::new(), Vec::new());
                let mut ids = Vec::new();
                for part in parts.iter() {
                    match part {
                        Ast::Literal(text) => spell_into(text, self.spelling, &mut buffer),
                        Ast::Epsilon => {}
                        other => {
                            ids.push(self.span(other)?);
                            continue;
                        }
                    }
                    ends.push(buffer.len());
                }
                let table = TextTable::new(&buffer, &ends)?;
                ids.push(if table.len() < self.listed_from {
                    let texts: Vec<&[u8]> = (0..table.len()).map(|at| table.text(at)).collect();
                    self.literal_set(&texts)?
                } else {
                    self.store.table(table)?
                });
                self.store.or(&ids)
            }
            Ast::Repeat { inner, min, max } => {
                let inner = self.span(inner)?;
                self.store.repeat(inner, *min, *max)
            }
            Ast::Approximate { known, .. } => self.lower(known),
            Ast::Before(text) => {
                let text = self.lower(text)?;
                self.store.before(text)
            }
            Ast::After(text) => {
                let text = self.lower(text)?;
                self.store.after(text)
            }
            Ast::Intersection(parts) => {
                let mut ids = Vec::with_capacity(parts.len());
                for part in parts.iter() {
                    ids.push(self.lower(part)?);
                }
                self.store.and(&ids)
            }
            Ast::Complement(inner) => {
                let inner = self.lower(inner)?;
                let not = self.store.not(inner)?;
                match self.store.universe() {
                    Some(universe) => self.store.and(&[universe, not]),
                    None => Ok(not),
                }
            }
        }
    }

    /// The union of sorted literals as a trie, so that its derivatives are small however many
    /// there are.
    fn literal_set<T: AsRef<[u8]>>(&mut self, sorted: &[T]) -> Result<ExprId, LimitExceeded> {
        // Build from the deepest node up without recursing on the native stack: a stack of open
        // nodes, one per byte of the current literal. Their children lie in one list, those of the
        // deepest node last.
        let mut trie = OpenTrie::default();
        for literal in sorted.iter().map(AsRef::as_ref) {
            let shared = trie.path.iter().zip(literal).take_while(|(a, b)| a.0 == **b).count();
            self.close_nodes(&mut trie, shared)?;
            for &byte in &literal[shared..] {
                trie.path.push((byte, trie.children.len()));
            }
            trie.children.push(ExprId::EPSILON);
        }
        self.close_nodes(&mut trie, 0)?;
        self.store.or(&trie.children)
    }

    fn close_nodes(&mut self, trie: &mut OpenTrie, down_to: usize) -> Result<(), LimitExceeded> {
        while trie.path.len() > down_to {
            let Some((byte, start)) = trie.path.pop() else { break };
            let below = match trie.children[start..] {
                [only] => only,
                ref children => self.store.or(children)?,
            };
            trie.children.truncate(start);
            let head = match trie.heads[usize::from(byte)] {
                Some(head) => head,
                None => self.store.bytes(ByteSet::single(byte))?,
            };
            trie.heads[usize::from(byte)] = Some(head);
            trie.children.push(self.store.concat(head, below)?);
        }
        Ok(())
    }

    fn class(&mut self, class: &CharClass) -> Result<ExprId, LimitExceeded> {
        if let Some(&id) = self.classes.get(class) {
            return Ok(id);
        }
        let id = match self.spelling {
            Spelling::Utf8 => self.utf8_class(class.ranges())?,
            Spelling::JsonString => {
                let escaped = CharClass::new([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]);
                let raw = class.intersect(&escaped.negate());
                let raw = self.utf8_class(raw.ranges())?;
                let mut spelled: Vec<Vec<u8>> = Vec::new();
                for code in 0..=0x5Cu8 {
                    let character = char::from(code);
                    if needs_escape(character) && class.contains(character) {
                        let mut bytes = Vec::new();
                        spell_json(character, &mut bytes);
                        spelled.push(bytes);
                    }
                }
                spelled.sort_unstable();
                let escapes = self.literal_set(&spelled)?;
                self.store.or(&[raw, escapes])?
            }
        };
        self.classes.insert(class.clone(), id);
        self.store.add_character(id);
        Ok(id)
    }

    fn utf8_class(&mut self, ranges: &[(u32, u32)]) -> Result<ExprId, LimitExceeded> {
        let mut sequences: Vec<Utf8Sequence> = Vec::new();
        for &(low, high) in ranges {
            let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
                continue;
            };
            sequences.extend(Utf8Sequences::new(low, high));
        }
        self.utf8_tails(&sequences, 0)
    }

    /// Sequences that agree on their first `depth` ranges. Ranges of one class are disjoint, so
    /// sequences that share a first byte share the whole first range.
    fn utf8_tails(
        &mut self,
        sequences: &[Utf8Sequence],
        depth: usize,
    ) -> Result<ExprId, LimitExceeded> {
        let mut by_tail: Vec<(ExprId, ByteSet)> = Vec::new();
        let mut start = 0;
        while start < sequences.len() {
            let Some(&first) = sequences[start].as_slice().get(depth) else {
                return Ok(ExprId::EPSILON);
            };
            let mut end = start + 1;
            while end < sequences.len() && sequences[end].as_slice().get(depth) == Some(&first) {
                end += 1;
            }
            let tail = self.utf8_tails(&sequences[start..end], depth + 1)?;
            let set = ByteSet::range(first.start, first.end);
            match by_tail.iter_mut().find(|(known, _)| *known == tail) {
                Some((_, bytes)) => *bytes = bytes.union(&set),
                None => by_tail.push((tail, set)),
            }
            start = end;
        }
        let mut parts = Vec::with_capacity(by_tail.len());
        for (tail, set) in by_tail {
            let head = self.store.bytes(set)?;
            parts.push(self.store.concat(head, tail)?);
        }
        self.store.or(&parts)
    }
}

/// A store that knows any character and any text.
fn template_of(spelling: Spelling) -> Result<ExprStore, LimitExceeded> {
    let mut store = ExprStore::new();
    let classes = FxHashMap::default();
    let mut lowering = Lowering { store: &mut store, spelling, classes, listed_from: LISTED_FROM };
    let any = lowering.class(&CharClass::any())?;
    let universe = store.repeat(any, 0, None)?;
    store.set_universe(universe, any);
    Ok(store)
}

pub(super) fn needs_escape(character: char) -> bool {
    character < ' ' || character == '"' || character == '\\'
}

pub(super) fn spell_json(character: char, out: &mut Vec<u8>) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ if character < ' ' => {
            out.extend(format!("\\u{:04x}", character as u32).bytes());
            return;
        }
        _ => {
            out.extend(character.encode_utf8(&mut [0; 4]).bytes());
            return;
        }
    };
    out.extend([b'\\', short]);
}

/// Returns the encoded bytes of a text.
pub fn spell(text: &str, spelling: Spelling) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    spell_into(text, spelling, &mut out);
    out
}

/// Appends the encoded bytes of a text.
fn spell_into(text: &str, spelling: Spelling, out: &mut Vec<u8>) {
    if spelling == Spelling::Utf8 || !text.contains(needs_escape) {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|character| spell_json(character, out));
    }
}

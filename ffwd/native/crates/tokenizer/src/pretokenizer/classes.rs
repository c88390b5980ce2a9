//! Classes of characters that no pattern of a pre-tokenizer distinguishes.

use regex_syntax::hir::ClassUnicode;
use rustc_hash::FxHashMap;

use ffwd_bounds::error::LimitExceeded;

/// A class of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u8);

impl ClassId {
    /// Represents the end of the text as the class of the next character.
    pub const END: Self = Self(127);

    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of classes, and possibly [`ClassId::END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassSet(u128);

impl ClassSet {
    pub const NONE: Self = Self(0);
    /// Every class and the end.
    pub const ALL: Self = Self(u128::MAX);
    pub const END: Self = Self(1 << 127);

    #[inline]
    pub fn contains(self, class: ClassId) -> bool {
        self.0 >> class.0 & 1 != 0
    }

    pub fn insert(&mut self, class: ClassId) {
        self.0 |= 1 << class.0;
    }

    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A place within a character's bytes. [`DecoderNode::START`] is between two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecoderNode(pub u16);

impl DecoderNode {
    pub const START: Self = Self(0);
}

/// The result of a byte within a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// It ends the character, which is of this class.
    Class(ClassId),
    Pending(DecoderNode),
    /// No character continues with it.
    Invalid,
}

const INVALID: u16 = u16::MAX;
const FINAL: u16 = 1 << 15;
/// The class of what is no character.
const NO_CLASS: u8 = u8::MAX;
const MAX_CLASSES: usize = 127;

/// The class of each character, read from its bytes.
///
/// A trie over UTF-8 whose equal nodes are one. It has no path for what is not UTF-8, so that
/// reading the class is validating as well.
#[derive(Debug)]
pub struct Classes {
    ascii: [ClassId; 128],
    /// By the first byte.
    lead: [u16; 256],
    /// By the node, and the lower bits of the next byte.
    follow: Vec<[u16; 64]>,
    /// Classes of the characters that start with the node's bytes.
    below: Vec<ClassSet>,
    count: usize,
    replacement: ClassId,
}

impl Classes {
    /// The coarsest classes such that each set is a union of some, and these unions.
    pub fn new(sets: &[ClassUnicode]) -> Result<(Self, Vec<ClassSet>), LimitExceeded> {
        let mut cuts: Vec<u32> = vec![0, 0xD800, 0xE000, 0x11_0000];
        for range in sets.iter().flat_map(ClassUnicode::iter) {
            cuts.push(range.start() as u32);
            cuts.push(range.end() as u32 + 1);
        }
        cuts.sort_unstable();
        cuts.dedup();
        // The sets that hold the characters between two cuts, by sweeping over the ranges.
        let mut changes: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, set) in sets.iter().enumerate() {
            for range in set.iter() {
                changes.entry(range.start() as u32).or_default().push(index);
                changes.entry(range.end() as u32 + 1).or_default().push(index);
            }
        }
        let mut class_of = vec![NO_CLASS; 0x11_0000];
        let mut unions = vec![ClassSet::NONE; sets.len()];
        let mut known: FxHashMap<Vec<bool>, ClassId> = FxHashMap::default();
        let mut member = vec![false; sets.len()];
        for pair in cuts.windows(2) {
            let &[from, to] = pair else { continue };
            for &index in changes.get(&from).into_iter().flatten() {
                if let Some(flag) = member.get_mut(index) {
                    *flag = !*flag;
                }
            }
            if from == 0xD800 {
                // Surrogates are no characters.
                continue;
            }
            let class = match known.get(&member) {
                Some(&class) => class,
                None => {
                    if known.len() == MAX_CLASSES {
                        return Err(LimitExceeded::new("character_classes", MAX_CLASSES));
                    }
                    let class = ClassId(known.len() as u8);
                    for (union, _) in unions.iter_mut().zip(&member).filter(|(_, &is)| is) {
                        union.insert(class);
                    }
                    known.insert(member.clone(), class);
                    class
                }
            };
            class_of[from as usize..to as usize].fill(class.0);
        }
        Ok((Self::of_table(&class_of, known.len()), unions))
    }

    fn of_table(class_of: &[u8], count: usize) -> Self {
        let mut nodes = Nodes::default();
        // Node 0 is the start, which has a table of its own.
        nodes.add([INVALID; 64]);
        let last: Vec<u16> = class_of
            .chunks(64)
            .map(|block| {
                let mut node = [INVALID; 64];
                for (entry, &class) in node.iter_mut().zip(block) {
                    if class != NO_CLASS {
                        *entry = FINAL | u16::from(class);
                    }
                }
                nodes.add(node)
            })
            .collect();
        let middle: Vec<u16> = last
            .chunks(64)
            .enumerate()
            .map(|(index, block)| {
                let mut node = [INVALID; 64];
                for (at, (entry, &child)) in node.iter_mut().zip(block).enumerate() {
                    // Three bytes never encode a character of two.
                    if index > 0 || at >= 32 {
                        *entry = child;
                    }
                }
                nodes.add(node)
            })
            .collect();
        let mut lead = [INVALID; 256];
        let mut ascii = [ClassId(0); 128];
        for (byte, class) in ascii.iter_mut().enumerate() {
            *class = ClassId(class_of[byte]);
            lead[byte] = FINAL | u16::from(class.0);
        }
        lead[0xC2..0xE0].copy_from_slice(&last[2..32]);
        lead[0xE0..0xF0].copy_from_slice(&middle[..16]);
        for (index, byte) in (0xF0..=0xF4).enumerate() {
            let mut node = [INVALID; 64];
            for (at, entry) in node.iter_mut().enumerate() {
                // Four bytes never encode a character of three, nor an invalid code point.
                let block = index * 64 + at;
                if block >= 16 {
                    *entry = middle.get(block).copied().unwrap_or(INVALID);
                }
            }
            lead[byte] = nodes.add(node);
        }
        let below = nodes.classes_below();
        let replacement = ClassId(class_of[0xFFFD]);
        Self { ascii, lead, follow: nodes.nodes, below, count, replacement }
    }

    /// How many classes there are, [`ClassId::END`] not counted.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = ClassId> {
        (0..self.count).map(|class| ClassId(class as u8))
    }

    #[inline]
    pub fn step(&self, node: DecoderNode, byte: u8) -> Decoded {
        let entry = if node == DecoderNode::START {
            self.lead[usize::from(byte)]
        } else if byte & 0xC0 == 0x80 {
            self.follow[usize::from(node.0)][usize::from(byte & 0x3F)]
        } else {
            INVALID
        };
        match entry {
            INVALID => Decoded::Invalid,
            entry if entry & FINAL != 0 => Decoded::Class(ClassId(entry as u8)),
            entry => Decoded::Pending(DecoderNode(entry)),
        }
    }

    #[inline]
    pub fn of_ascii(&self, byte: u8) -> Option<ClassId> {
        self.ascii.get(usize::from(byte)).copied()
    }

    /// The classes of the characters that start with the bytes of `node`.
    #[inline]
    pub fn below(&self, node: DecoderNode) -> ClassSet {
        self.below[usize::from(node.0)]
    }

    /// The class and the length of the character that begins at `at`, before the end of `text`.
    ///
    /// A byte that is not of UTF-8 counts as U+FFFD, for itself.
    #[inline]
    pub fn decode(&self, text: &[u8], at: usize) -> (ClassId, usize) {
        match self.of_ascii(text[at]) {
            Some(class) => (class, 1),
            None => self.decode_long(text, at),
        }
    }

    /// The same for a character that is not ASCII.
    #[inline]
    pub fn decode_long(&self, text: &[u8], at: usize) -> (ClassId, usize) {
        let mut node = DecoderNode::START;
        for (length, &byte) in (1..).zip(&text[at..]) {
            match self.step(node, byte) {
                Decoded::Class(class) => return (class, length),
                Decoded::Pending(next) => node = next,
                Decoded::Invalid => break,
            }
        }
        (self.replacement, 1)
    }
}

/// The nodes of the trie while it is built from the last bytes to the first.
#[derive(Default)]
struct Nodes {
    nodes: Vec<[u16; 64]>,
    ids: FxHashMap<[u16; 64], u16>,
}

impl Nodes {
    /// [`INVALID`] without a continuation. There are fewer than 2^15 nodes: 17,408 blocks of 64
    /// code points, 272 above them and 5 first bytes.
    fn add(&mut self, node: [u16; 64]) -> u16 {
        if !self.nodes.is_empty() && node == [INVALID; 64] {
            return INVALID;
        }
        let next = self.nodes.len() as u16;
        let nodes = &mut self.nodes;
        *self.ids.entry(node).or_insert_with(|| {
            nodes.push(node);
            next
        })
    }

    /// Children come before their parents.
    fn classes_below(&self) -> Vec<ClassSet> {
        let mut below: Vec<ClassSet> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut classes = ClassSet::NONE;
            for &entry in node.iter().filter(|&&entry| entry != INVALID) {
                if entry & FINAL != 0 {
                    classes.insert(ClassId(entry as u8));
                } else {
                    classes = classes.or(below[usize::from(entry)]);
                }
            }
            below.push(classes);
        }
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pattern: &str) -> ClassUnicode {
        let hir = regex_syntax::parse(pattern).unwrap();
        let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) =
            hir.kind()
        else {
            panic!("{pattern} is no class");
        };
        class.clone()
    }

    #[test]
    fn every_character_is_of_the_classes_of_its_sets() {
        let sets = [r"\p{L}", r"\s", r"[\r\n]", r"\p{N}", r"[^\s\p{L}\p{N}]", "[a-c\u{10000}]"];
        let sets: Vec<ClassUnicode> = sets.iter().map(|pattern| set(pattern)).collect();
        let (classes, unions) = Classes::new(&sets).unwrap();
        let members: Vec<Vec<bool>> = sets
            .iter()
            .map(|set| {
                let mut member = vec![false; 0x11_0000];
                for range in set.iter() {
                    member[range.start() as usize..=range.end() as usize].fill(true);
                }
                member
            })
            .collect();
        for character in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let text = character.encode_utf8(&mut buffer).as_bytes();
            let (class, length) = classes.decode(text, 0);
            assert_eq!(length, text.len());
            for (member, union) in members.iter().zip(&unions) {
                assert_eq!(member[character as usize], union.contains(class), "{character:?}");
            }
        }
    }

    #[test]
    fn what_is_not_utf8_counts_as_the_replacement_character() {
        let (classes, _) = Classes::new(&[set(r"\p{S}"), set("\\p{L}")]).unwrap();
        let (replacement, _) = classes.decode("\u{FFFD}".as_bytes(), 0);
        for bytes in [&b"\xFF"[..], b"\x80", b"\xC0\x80", b"\xED\xA0\x80", b"\xE0\x80\x80"] {
            assert_eq!(classes.decode(bytes, 0), (replacement, 1), "{bytes:x?}");
        }
        for bytes in [&b"\xF4\x90\x80\x80"[..], b"\xF0\x80\x80\x80", b"\xE3\x81a"] {
            assert_eq!(classes.decode(bytes, 0), (replacement, 1), "{bytes:x?}");
        }
        for bytes in [&b"\xE3\x81"[..], b"\xF0\x9F\x98", b"\xC3"] {
            assert_eq!(classes.decode(bytes, 0), (replacement, 1), "{bytes:x?}");
        }
    }
}

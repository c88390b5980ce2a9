//! A parsed pattern, before its anchors and lookaheads are resolved.

use super::{Ast, CharClass};

/// The syntax tree of a pattern. A node matches a span of a text; anchors and lookaheads also
/// examine the context of the span, which [`Ast`] cannot express.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A span that belongs to this language, wherever it is.
    Text(Ast),
    /// The empty span at the start of the text.
    Start,
    /// The empty span at the end of the text.
    End,
    Concat(Vec<Node>),
    Alternation(Vec<Node>),
    Repeat {
        inner: Box<Node>,
        min: u32,
        max: Option<u32>,
    },
    /// The empty span where `inner` matches some span that begins there (or, negative, none).
    Lookahead {
        inner: Box<Node>,
        negative: bool,
        /// The offset in the pattern, in characters.
        offset: usize,
    },
    /// The empty span where `inner` matches some span that ends there (or, negative, none).
    Lookbehind {
        inner: Box<Node>,
        negative: bool,
        offset: usize,
    },
    /// The empty span between a word character and another, or an end of the text (or, negative,
    /// where there is none of these).
    WordBoundary {
        negative: bool,
        words: CharClass,
    },
}

impl Node {
    pub(super) fn epsilon() -> Self {
        Self::Text(Ast::Epsilon)
    }

    /// Whether the node has a condition on the text before a span, other than an anchor.
    pub(super) fn looks_behind(&self) -> bool {
        match self {
            Self::Text(_) | Self::Start | Self::End => false,
            Self::Concat(parts) | Self::Alternation(parts) => parts.iter().any(Self::looks_behind),
            Self::Repeat { inner, .. } | Self::Lookahead { inner, .. } => inner.looks_behind(),
            Self::Lookbehind { .. } | Self::WordBoundary { .. } => true,
        }
    }

    /// The place of some lookahead in the node.
    pub(super) fn lookahead(&self) -> Option<usize> {
        match self {
            Self::Text(_) | Self::Start | Self::End => None,
            Self::Lookbehind { .. } | Self::WordBoundary { .. } => None,
            Self::Concat(parts) | Self::Alternation(parts) => {
                parts.iter().find_map(Self::lookahead)
            }
            Self::Repeat { inner, .. } => inner.lookahead(),
            Self::Lookahead { offset, .. } => Some(*offset),
        }
    }
}

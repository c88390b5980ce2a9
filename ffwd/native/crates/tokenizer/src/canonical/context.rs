//! How far a sequence of tokens is canonical, token by token.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::bpe::BpeTable;
use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{ByteTrie, NodeId, TokenId};

use super::apart::Apart;

/// The part that a token plays in its tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No tokenization of any text contains it: it is no token of the model, or another one with
    /// the same text is preferred.
    Never,
    /// Merges produce it, or it is in their base.
    Merged,
    /// No merge produces it, but a piece of exactly its bytes is encoded as it.
    WholePiece,
    /// One byte of a character that has no token of its own.
    Byte,
}

/// The open piece as a whole, if it has the bytes of a token that no merge produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Whole {
    /// No such token starts with the piece.
    Nothing,
    /// The piece leads here in the trie of those tokens.
    Node(NodeId),
    /// It is exactly such a token, so it must end here.
    Alone,
}

/// One hypothesis: where the pieces of the text so far end, and the resulting conditions on the
/// later text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Hypothesis {
    pub boundary: HypothesisId,
    pub whole: Whole,
}

pub(super) type Hypotheses = SmallVec<[Hypothesis; 2]>;

/// One way to read the next token: within the open piece, or at the beginning of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    pub(super) from: Hypothesis,
    pub(super) goes_on: bool,
}

/// The first bytes, at most three, of a character in byte tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    bytes: [u8; 3],
    count: u8,
}

impl Pending {
    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }
}

/// The state after a sequence of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    pub(super) last: Option<TokenId>,
    /// Sorted; empty if nothing is known about the text so far.
    pub(super) hypotheses: Hypotheses,
    pub(super) pending: Pending,
}

impl Context {
    /// Whether nothing is known about the text so far, because its tokens fit no tokenization.
    pub fn is_lost(&self) -> bool {
        self.hypotheses.is_empty()
    }

    /// Whether the last character has all its bytes, as far as byte tokens spell it.
    pub(super) fn is_between_characters(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Which sequences of tokens a tokenizer produces.
pub struct Canonicality {
    tokenizer: Arc<Tokenizer>,
    roles: Box<[Role]>,
    /// The tokens that only a whole piece becomes.
    pub(super) wholes: ByteTrie,
    /// The target of each token in that trie, from its root.
    whole_of: Box<[Whole]>,
    /// The tokens for bytes of characters that have none of their own, by byte.
    byte_tokens: Box<[Option<TokenId>]>,
    /// Made when first asked for.
    pub(super) apart: OnceLock<Apart>,
}

impl std::fmt::Debug for Canonicality {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Canonicality").field("width", &self.width()).finish_non_exhaustive()
    }
}

impl Canonicality {
    /// `None` if a tokenizer is not exact, or the pieces of a growing text cannot be determined.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Option<Self> {
        tokenizer.pretokenizer().boundaries()?;
        if !tokenizer.limits().is_empty() || tokenizer.specials().any_text() {
            return None;
        }
        let table = tokenizer.table();
        let width = table.width();
        let role = |token: TokenId| {
            let text = table.text(token);
            if text.is_empty() {
                Role::Never
            } else if table.is_byte_fallback(token) {
                Role::Byte
            } else if table.is_reachable(token) {
                Role::Merged
            } else if table.whole_piece(text) == Some(token) {
                Role::WholePiece
            } else {
                Role::Never
            }
        };
        let roles: Box<[Role]> = (0..width as u32).map(|id| role(TokenId(id))).collect();
        let mut wholes: Vec<(&[u8], TokenId)> = (0..width as u32)
            .map(TokenId)
            .filter(|token| roles[token.index()] == Role::WholePiece)
            .map(|token| (table.text(token), token))
            .collect();
        wholes.sort_unstable();
        let wholes = ByteTrie::from_sorted(&wholes);
        let whole_of = (0..width as u32)
            .map(|id| match roles[id as usize] {
                Role::Never => Whole::Nothing,
                _ => follow(&wholes, Whole::Node(NodeId::ROOT), table.text(TokenId(id))),
            })
            .collect();
        let mut byte_tokens = vec![None; 256];
        for token in (0..width as u32).map(TokenId) {
            if let (Role::Byte, &[byte]) = (roles[token.index()], table.text(token)) {
                byte_tokens[usize::from(byte)] = Some(token);
            }
        }
        let byte_tokens = byte_tokens.into();
        Some(Self { tokenizer, roles, wholes, whole_of, byte_tokens, apart: OnceLock::new() })
    }

    pub(super) fn table(&self) -> &BpeTable {
        self.tokenizer.table()
    }

    pub(super) fn boundaries(&self) -> Option<&Boundaries> {
        self.tokenizer.pretokenizer().boundaries()
    }

    /// Every token that is a prefix of a text, with its length.
    pub(super) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, TokenId)) {
        if let Some(token) = text.first().and_then(|&byte| self.byte_tokens[usize::from(byte)]) {
            found(1, token);
        }
        self.table().prefixes(text, found);
    }

    pub(super) fn role(&self, token: TokenId) -> Role {
        self.roles.get(token.index()).copied().unwrap_or(Role::Never)
    }

    pub(super) fn width(&self) -> usize {
        self.roles.len()
    }

    /// The context at the start of a text, or after a special token.
    pub fn start(&self) -> Context {
        let start = self.boundaries().map(|boundaries| opened(boundaries.start()));
        Context { last: None, hypotheses: start.into_iter().collect(), pending: Pending::default() }
    }

    /// Whether a piece in this state may end here.
    pub(super) fn may_close(&self, whole: Whole) -> bool {
        match whole {
            Whole::Nothing | Whole::Alone => true,
            // A piece with just these bytes is that token, and not several.
            Whole::Node(node) => self.wholes.tokens_at(node).is_empty(),
        }
    }

    /// The context after one more token; `None` if no text's tokenization continues with it.
    pub fn step(&self, context: &Context, token: TokenId) -> Option<Context> {
        let mut hypotheses = Hypotheses::new();
        let pending = self.readings(context, token, |reading| {
            hypotheses.push(reading);
            ControlFlow::Continue(())
        })?;
        settle(token, hypotheses, pending)
    }

    /// Whether some text's tokenization continues with a token: whether it has a [`Self::step`].
    pub fn continues(&self, context: &Context, token: TokenId) -> bool {
        let mut any = false;
        self.readings(context, token, |_| {
            any = true;
            ControlFlow::Break(())
        });
        any
    }

    /// Finds the hypotheses after one more token, in any order, until `found` breaks. Returns the
    /// bytes of a character after it, or `None` if the token cannot follow whatever the hypothesis.
    #[inline(always)]
    fn readings(
        &self,
        context: &Context,
        token: TokenId,
        mut found: impl FnMut(Hypothesis) -> ControlFlow<()>,
    ) -> Option<Pending> {
        let role = self.role(token);
        let text = self.table().text(token);
        let pending = match role {
            Role::Never => return None,
            Role::Byte => self.byte_of_character(context.pending, text)?,
            Role::Merged | Role::WholePiece if context.pending.is_empty() => Pending::default(),
            Role::Merged | Role::WholePiece => return None,
        };
        let goes_on = role != Role::WholePiece
            && context.last.is_some_and(|last| {
                self.role(last) != Role::WholePiece && self.table().pair(last, token)
            });
        let boundaries = self.boundaries()?;
        let mut read = |from, goes_on| {
            let way = Way { from, goes_on };
            self.read_as(boundaries, way, token, role, text)
                .map_or(ControlFlow::Continue(()), &mut found)
        };
        for &from in &context.hypotheses {
            let mut flow = ControlFlow::Continue(());
            if context.last.is_none() {
                flow = read(from, false);
            } else {
                if goes_on && from.whole != Whole::Alone {
                    flow = read(from, true);
                }
                if flow.is_continue() && self.may_close(from.whole) {
                    let mut fresh = boundaries.close(from.boundary).iter();
                    flow = fresh.try_for_each(|&fresh| read(opened(fresh), false));
                }
            }
            if flow.is_break() {
                break;
            }
        }
        Some(pending)
    }

    /// Whether a token may follow another one within a piece.
    pub(super) fn may_go_on(&self, last: TokenId, token: TokenId) -> bool {
        self.role(token) != Role::WholePiece
            && self.role(last) != Role::WholePiece
            && self.table().pair(last, token)
    }

    /// The ways to read a token in a context.
    pub fn ways(&self, context: &Context) -> SmallVec<[Way; 4]> {
        let mut ways = SmallVec::new();
        let Some(boundaries) = self.boundaries() else { return ways };
        for &from in &context.hypotheses {
            if context.last.is_none() {
                ways.push(Way { from, goes_on: false });
                continue;
            }
            if from.whole != Whole::Alone {
                ways.push(Way { from, goes_on: true });
            }
            if self.may_close(from.whole) {
                let fresh = boundaries.close(from.boundary).iter();
                ways.extend(fresh.map(|&fresh| Way { from: opened(fresh), goes_on: false }));
            }
        }
        ways
    }

    /// With which bytes a token may begin that is read in one of some ways.
    pub(super) fn beginnings<'a>(&'a self, ways: &'a [Way]) -> impl Fn(u8) -> bool + 'a {
        let boundaries = self.boundaries();
        move |byte| {
            let reads = |way: &Way| boundaries?.step(way.from.boundary, byte);
            ways.iter().any(|way| reads(way).is_some())
        }
    }

    /// The hypothesis after a token that is read in one way, whatever comes before it.
    pub(super) fn read(&self, way: Way, token: TokenId) -> Option<Hypothesis> {
        self.read_as(self.boundaries()?, way, token, self.role(token), self.table().text(token))
    }

    #[inline(always)]
    fn read_as(
        &self,
        boundaries: &Boundaries,
        way: Way,
        token: TokenId,
        role: Role,
        text: &[u8],
    ) -> Option<Hypothesis> {
        let from = way.from.boundary;
        let boundary = text.iter().try_fold(from, |at, &byte| boundaries.step(at, byte))?;
        let whole = match (role, way.goes_on) {
            (Role::Never, _) | (Role::WholePiece, true) => return None,
            (Role::WholePiece, false) => {
                let ends = boundaries.can_end(boundary) || !boundaries.close(boundary).is_empty();
                return ends.then_some(Hypothesis { boundary, whole: Whole::Alone });
            }
            (Role::Merged | Role::Byte, true) => follow(&self.wholes, way.from.whole, text),
            (Role::Merged | Role::Byte, false) => self.whole_of[token.index()],
        };
        Some(Hypothesis { boundary, whole })
    }

    /// The context after a token that is read in one way, where it may be.
    pub fn enter(&self, way: Way, token: TokenId) -> Option<Context> {
        let pending = match self.role(token) {
            Role::Byte => self.byte_of_character(Pending::default(), self.table().text(token))?,
            _ => Pending::default(),
        };
        let hypotheses = self.read(way, token).into_iter().collect();
        settle(token, hypotheses, pending)
    }

    /// Whether the tokens so far are all the tokens of their text.
    pub fn can_end(&self, context: &Context) -> bool {
        let Some(boundaries) = self.boundaries() else { return false };
        context.pending.is_empty()
            && context.hypotheses.iter().any(|hypothesis| {
                self.may_close(hypothesis.whole) && boundaries.can_end(hypothesis.boundary)
            })
    }

    /// The context after a token that may not be canonical; `false` if the sequence is no longer
    /// canonical. The context then has what its last piece and tokens determine.
    pub(crate) fn follow(&self, context: &Context, token: TokenId) -> (Context, bool) {
        if let Some(next) = self.step(context, token) {
            return (next, true);
        }
        let text = self.table().text(token);
        if text.is_empty() {
            // A special token: text begins anew after it.
            return (self.start(), true);
        }
        (self.recover(context, token, text), false)
    }

    /// Places a token in the text, ignoring where its bytes should have been split.
    fn recover(&self, context: &Context, token: TokenId, text: &[u8]) -> Context {
        let pending = match self.role(token) {
            Role::Byte => self.byte_of_character(context.pending, text).unwrap_or_default(),
            _ => Pending::default(),
        };
        let from = context.hypotheses.iter().map(|hypothesis| hypothesis.boundary).collect();
        let mut places = self.segment(from, text, context.last.is_some());
        if places.is_empty() {
            let start = self.boundaries().map(Boundaries::start).into_iter().collect();
            places = self.segment(start, text, false);
        }
        let hypotheses =
            places.into_iter().map(|boundary| Hypothesis { boundary, whole: Whole::Nothing });
        Context { last: Some(token), hypotheses: hypotheses.collect(), pending }
    }

    /// All hypotheses about the pieces of a text, whatever its tokens.
    fn segment(
        &self,
        from: SmallVec<[HypothesisId; 4]>,
        text: &[u8],
        mut may_close: bool,
    ) -> SmallVec<[HypothesisId; 4]> {
        let Some(boundaries) = self.boundaries() else { return SmallVec::new() };
        let mut places = from;
        for &byte in text {
            let mut next: SmallVec<[HypothesisId; 4]> = SmallVec::new();
            for &place in &places {
                let closed: &[HypothesisId] = if may_close { boundaries.close(place) } else { &[] };
                let starts = std::iter::once(place).chain(closed.iter().copied());
                next.extend(starts.filter_map(|start| boundaries.step(start, byte)));
            }
            next.sort_unstable();
            next.dedup();
            places = next;
            may_close = true;
        }
        places
    }

    /// Whether a byte token may be the first of a character's.
    pub(super) fn begins_character(&self, token: TokenId) -> bool {
        self.byte_of_character(Pending::default(), self.table().text(token)).is_some()
    }

    /// The bytes of a character in byte tokens after one more; `None` where it has, or would
    /// have, a token of its own.
    fn byte_of_character(&self, pending: Pending, text: &[u8]) -> Option<Pending> {
        let &[byte] = text else { return None };
        let count = usize::from(pending.count);
        let mut bytes = [0; 4];
        bytes[..3].copy_from_slice(&pending.bytes);
        bytes[count] = byte;
        match std::str::from_utf8(&bytes[..=count]) {
            Ok(_) => {
                let spelled = self.table().whole_piece(&bytes[..=count]);
                spelled.is_none().then(Pending::default)
            }
            Err(error) if error.error_len().is_none() && count < 3 => {
                let mut pending = Pending { count: pending.count + 1, ..pending };
                pending.bytes[count] = byte;
                Some(pending)
            }
            Err(_) => None,
        }
    }
}

fn settle(token: TokenId, mut hypotheses: Hypotheses, pending: Pending) -> Option<Context> {
    if hypotheses.is_empty() {
        return None;
    }
    hypotheses.sort_unstable();
    hypotheses.dedup();
    Some(Context { last: Some(token), hypotheses, pending })
}

/// A piece without a byte.
pub(super) fn opened(boundary: HypothesisId) -> Hypothesis {
    Hypothesis { boundary, whole: Whole::Node(NodeId::ROOT) }
}

/// The context at the beginning of a piece, whatever came before it.
pub(super) fn at_a_piece(boundary: HypothesisId) -> Context {
    let hypotheses = std::iter::once(opened(boundary)).collect();
    Context { last: None, hypotheses, pending: Pending::default() }
}

/// Returns the target of a piece's next bytes in the trie of whole pieces.
fn follow(wholes: &ByteTrie, from: Whole, text: &[u8]) -> Whole {
    let Whole::Node(node) = from else { return Whole::Nothing };
    let end = text.iter().try_fold(node, |node, &byte| wholes.child(node, byte));
    end.map_or(Whole::Nothing, Whole::Node)
}

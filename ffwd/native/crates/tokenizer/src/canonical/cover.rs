//! Forced tokens: the longest common prefix of all canonical tokenizations of forced text with any
//! allowed continuation.
//!
//! Every tokenization of a text that starts with the forced bytes has exactly one token that
//! crosses their end, or one that ends there. Paths of canonical tokens within the forced bytes,
//! each with one more token, therefore cover all of them.

use smallvec::SmallVec;

use crate::vocabulary::{ByteTrie, NodeId, TokenId};

use super::context::{Canonicality, Context};

/// Which texts may follow.
pub trait Language {
    /// The part of the text so far that determines which texts may follow.
    type State: Clone;
    /// Why a question has no answer, such as a limit that was passed.
    type Error;

    /// The state after one more byte; `None` if no text continues with it.
    fn step(&self, state: &Self::State, byte: u8) -> Result<Option<Self::State>, Self::Error>;

    /// Returns whether some text continues with this byte. It is cheaper than the target state, and
    /// may have false positives.
    fn may_come(&self, state: &Self::State, byte: u8) -> Result<bool, Self::Error> {
        Ok(self.step(state, byte)?.is_some())
    }

    /// Whether a text continues with this byte, as far as this is told without the target state:
    /// `false` says nothing.
    fn goes_on_within(&self, _: &Self::State, _: u8) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Adds the bytes that continue some text; `false` if they are not listed.
    fn list_bytes(&self, _: &Self::State, _: &mut SmallVec<[u8; 16]>) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// Whether the text may end in this state.
    fn may_end(&self, state: &Self::State) -> Result<bool, Self::Error>;
}

/// The language of all texts.
#[derive(Clone, Copy, Debug)]
pub struct Anything;

impl Language for Anything {
    type State = ();
    type Error = std::convert::Infallible;

    fn step(&self, (): &(), _: u8) -> Result<Option<()>, Self::Error> {
        Ok(Some(()))
    }

    fn may_end(&self, (): &()) -> Result<bool, Self::Error> {
        Ok(true)
    }
}

/// How far a search for forced tokens goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForcedOptions {
    /// A token that crosses the end of the forced bytes counts only if it has a canonical
    /// continuation.
    pub look_ahead: bool,
}

/// Bytes that continue many texts; those that rarely merge with earlier ones come first.
pub const LIKELY_BYTES: &[u8] = b"\",}] :[{\nea1t0n";

/// A token on a path of canonical tokens; the root has none.
struct Step {
    parent: u32,
    depth: u32,
    token: TokenId,
}

/// Paths of tokens from one place on, with shared prefixes.
struct Paths {
    steps: Vec<Step>,
}

const ROOT: u32 = 0;

/// After so many nodes of a search, so many tokens below a node are asked about before its state is
/// made. Most searches end sooner.
const FIRST_NODES: usize = 8;
pub(super) const MAX_ASKED: usize = 128;

impl Paths {
    fn new() -> Self {
        Self { steps: vec![Step { parent: ROOT, depth: 0, token: TokenId(0) }] }
    }

    fn push(&mut self, parent: u32, token: TokenId) -> u32 {
        let depth = self.steps[parent as usize].depth + 1;
        self.steps.push(Step { parent, depth, token });
        self.steps.len() as u32 - 1
    }

    fn depth(&self, path: u32) -> u32 {
        self.steps[path as usize].depth
    }

    /// The first `depth` tokens of a path.
    fn prefix(&self, mut path: u32, depth: u32) -> u32 {
        while self.depth(path) > depth {
            path = self.steps[path as usize].parent;
        }
        path
    }

    /// Returns the common prefix of two paths.
    fn common(&self, one: u32, other: u32) -> u32 {
        let depth = self.depth(one).min(self.depth(other));
        let (mut one, mut other) = (self.prefix(one, depth), self.prefix(other, depth));
        while one != other {
            one = self.steps[one as usize].parent;
            other = self.steps[other as usize].parent;
        }
        one
    }

    fn tokens(&self, mut path: u32) -> Vec<TokenId> {
        let mut tokens = Vec::with_capacity(self.depth(path) as usize);
        while path != ROOT {
            let step = &self.steps[path as usize];
            tokens.push(step.token);
            path = step.parent;
        }
        tokens.reverse();
        tokens
    }
}

/// The common prefix of all continuations so far; none before the first one.
struct Common(Option<u32>);

impl Common {
    fn take(&mut self, paths: &Paths, path: u32) {
        self.0 = Some(self.0.map_or(path, |common| paths.common(common, path)));
    }

    /// Whether continuations that start with a path cannot change the result.
    fn covers(&self, paths: &Paths, path: u32) -> bool {
        self.0.is_some_and(|common| paths.prefix(path, paths.depth(common)) == common)
    }
}

/// The tokens that may be chosen at all.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// All of them.
    pub trie: &'a ByteTrie,
    /// Whether a token of the trie may be chosen.
    pub has: &'a dyn Fn(TokenId) -> bool,
}

/// A node to be searched: the state before it, and the byte between the two.
type OpenNode<S> = (NodeId, S, Option<u8>);

/// Takes a token, the context after it, the state before its last byte and this byte; `false` if it
/// has seen enough.
pub(super) type Seen<'a, L> = dyn FnMut(TokenId, Context, &<L as Language>::State, u8) -> bool + 'a;

/// The tokens that may come next canonically.
#[derive(Clone, Copy)]
pub(super) struct Next<'a> {
    /// The context after one.
    pub after: &'a dyn Fn(TokenId) -> Option<Context>,
    /// Whether one may begin with a byte.
    pub begins: &'a dyn Fn(u8) -> bool,
    /// Whether many nodes are searched of which few have one of them below.
    pub are_rare: bool,
}

/// The search for covering tokens.
pub(super) struct Cover<'a, L: Language> {
    pub canonicality: &'a Canonicality,
    pub choice: Choice<'a>,
    pub language: &'a L,
    pub options: ForcedOptions,
}

impl<L: Language> Cover<'_, L> {
    /// Returns the forced tokens after `context`, for texts that continue with `forced` and then as
    /// `after` allows. `None` if no canonical tokens encode such a text.
    fn tokens(
        &self,
        context: &Context,
        forced: &[u8],
        after: &L::State,
    ) -> Result<Option<Vec<TokenId>>, L::Error> {
        if context.is_lost() {
            return Ok(None);
        }
        let mut paths = Paths::new();
        let mut reached: Vec<SmallVec<[(u32, Context); 1]>> = Vec::new();
        reached.resize_with(forced.len() + 1, SmallVec::new);
        reached[0].push((ROOT, context.clone()));
        let mut common = Common(None);
        let ends = self.language.may_end(after)?;
        for at in 0..=forced.len() {
            let here = std::mem::take(&mut reached[at]);
            for (path, context) in here {
                if common.covers(&paths, path) {
                    // Continuations with this prefix do not change the common prefix either.
                    continue;
                }
                if at == forced.len() && ends && self.canonicality.can_end(&context) {
                    common.take(&paths, path);
                } else {
                    self.cross(&context, &forced[at..], after, path, &mut paths, &mut common)?;
                }
                if common.covers(&paths, path) {
                    continue;
                }
                self.steps(&context, &forced[at..], |length, token, next| {
                    reached[at + length].push((paths.push(path, token), next));
                });
            }
        }
        Ok(common.0.map(|path| paths.tokens(path)))
    }

    /// The canonical tokens that are prefixes of a text, with their lengths and the contexts after
    /// them.
    fn steps(
        &self,
        context: &Context,
        text: &[u8],
        mut found: impl FnMut(usize, TokenId, Context),
    ) {
        self.canonicality.prefixes(text, |length, token| {
            if (self.choice.has)(token) {
                if let Some(next) = self.canonicality.step(context, token) {
                    found(length, token, next);
                }
            }
        });
    }

    /// Adds the path with each token that extends past the forced bytes, of which some are left.
    fn cross(
        &self,
        context: &Context,
        left: &[u8],
        after: &L::State,
        path: u32,
        paths: &mut Paths,
        common: &mut Common,
    ) -> Result<(), L::Error> {
        let Some(node) = self.choice.trie.find(left) else { return Ok(()) };
        let ways = self.canonicality.ways(context);
        // Two different tokens have only the path itself in common.
        let step = |token| self.canonicality.step(context, token);
        let begins = self.canonicality.beginnings(&ways);
        let next = Next { after: &step, begins: &begins, are_rare: false };
        self.search(&next, node, after, &mut |token, _, _, _| {
            let longer = paths.push(path, token);
            common.take(paths, longer);
            !common.covers(paths, path)
        })
    }

    /// The canonical allowed tokens below a node, each with the context after it, the state before
    /// its last byte and this byte, until `found` has seen enough.
    pub fn search(
        &self,
        next: &Next<'_>,
        node: NodeId,
        state: &L::State,
        found: &mut Seen<'_, L>,
    ) -> Result<(), L::Error> {
        let mut open: SmallVec<[OpenNode<L::State>; 4]> = SmallVec::new();
        open.push((node, state.clone(), None));
        // Tokens that are looked at again if no others settle the search, for that takes longer.
        let mut unsure = Vec::new();
        let mut nodes = 0;
        while let Some((node, before, byte)) = open.pop() {
            nodes += 1;
            let state = match byte {
                None => before,
                Some(_)
                    if next.are_rare && nodes > FIRST_NODES && !self.may_come_below(next, node) =>
                {
                    continue
                }
                Some(byte) => match self.language.step(&before, byte)? {
                    Some(state) => state,
                    None => continue,
                },
            };
            let mut listed = SmallVec::new();
            let all = self.language.list_bytes(&state, &mut listed)?;
            for (byte, child) in self.likely_first(node, all.then_some(&listed)) {
                if node == NodeId::ROOT && !(next.begins)(byte)
                    || !all && !self.language.may_come(&state, byte)?
                {
                    continue;
                }
                for &token in self.choice.trie.tokens_at(child) {
                    let Some(after) = (next.after)(token) else { continue };
                    if self.options.look_ahead {
                        let Some(then) = self.language.step(&state, byte)? else { continue };
                        if !self.goes_on_at_once(&after, &then)? {
                            unsure.push((token, after, state.clone(), byte, then));
                            continue;
                        }
                    }
                    if !found(token, after, &state, byte) {
                        return Ok(());
                    }
                }
                if !self.choice.trie.is_leaf(child) {
                    open.push((child, state.clone(), Some(byte)));
                }
            }
        }
        for (token, after, state, byte, then) in unsure {
            if self.goes_on(&after, &then)? && !found(token, after, &state, byte) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether some token below a node, not at it, may come next in the pieces of the text. Where
    /// very many are below, one may.
    fn may_come_below(&self, next: &Next<'_>, node: NodeId) -> bool {
        let trie = self.choice.trie;
        let below = &trie.tokens_below(node)[trie.tokens_at(node).len()..];
        let comes = |&token: &TokenId| (next.after)(token).is_some();
        below.iter().take(MAX_ASKED).any(comes) || below.len() > MAX_ASKED
    }

    /// Returns the children of a node, by the allowed bytes if these are listed. At the root, those
    /// that continue many texts come first, because the search usually ends with its first tokens.
    fn likely_first<'s>(
        &'s self,
        node: NodeId,
        listed: Option<&'s SmallVec<[u8; 16]>>,
    ) -> impl Iterator<Item = (u8, NodeId)> + 's {
        let trie = self.choice.trie;
        let first: &[u8] = match listed {
            Some(bytes) => bytes,
            None if node == NodeId::ROOT => LIKELY_BYTES,
            None => &[],
        };
        let others = listed.is_none().then(|| trie.children(node));
        let others = others.into_iter().flatten().filter(move |(byte, _)| !first.contains(byte));
        first.iter().filter_map(move |&byte| Some((byte, trie.child(node, byte)?))).chain(others)
    }

    /// Whether the text may end, or some canonical token of one byte may follow, which usually
    /// suffices.
    fn goes_on_at_once(&self, context: &Context, state: &L::State) -> Result<bool, L::Error> {
        if self.language.may_end(state)? && self.canonicality.can_end(context) {
            return Ok(true);
        }
        let mut listed = SmallVec::new();
        let all = self.language.list_bytes(state, &mut listed)?;
        for (byte, child) in self.likely_first(NodeId::ROOT, all.then_some(&listed)) {
            let tokens = self.choice.trie.tokens_at(child);
            let canonical = |&token: &TokenId| self.canonicality.continues(context, token);
            if (all || self.language.may_come(state, byte)?) && tokens.iter().any(canonical) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether some canonical token may follow.
    fn goes_on(&self, context: &Context, state: &L::State) -> Result<bool, L::Error> {
        let shallow = Cover { options: ForcedOptions { look_ahead: false }, ..*self };
        let mut any = false;
        let step = |token| self.canonicality.step(context, token);
        let ways = self.canonicality.ways(context);
        let begins = self.canonicality.beginnings(&ways);
        let next = Next { after: &step, begins: &begins, are_rare: false };
        shallow.search(&next, NodeId::ROOT, state, &mut |_, _, _, _| {
            any = true;
            false
        })?;
        Ok(any)
    }
}

impl Canonicality {
    /// Returns the forced tokens after `context`: the longest common prefix of the canonical
    /// tokenizations of all texts that continue with `forced` and then as `language` allows from
    /// its state `after`. `None` if there is no tokenization, which is also the case after tokens
    /// that no text has.
    pub fn forced<L: Language>(
        &self,
        choice: Choice<'_>,
        context: &Context,
        forced: &[u8],
        language: &L,
        after: &L::State,
        options: ForcedOptions,
    ) -> Result<Option<Vec<TokenId>>, L::Error> {
        Cover { canonicality: self, choice, language, options }.tokens(context, forced, after)
    }
}

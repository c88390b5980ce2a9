//! The mask of a configuration.

mod keys;
mod parts;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::completion::{Completion, Levels};
use super::doubt::{is_hard_to_compare, Answers, Doubt, Doubts};
use super::groups::Group;
use super::known_steps::walk_known;
use super::lexeme_mask::{ExitGroup, Inner, LexemeMask};
use super::lexeme_mask_store::LexemeMaskStore;
use super::rivalled::SettledRivalled;
use super::ruled::{KnownReadable, KnownRuled};
use super::sharded::Sharded;
use super::slots::Slots;
use super::token_set::{TokenList, TokenMask, TokenMaskBuilder};
use super::two_keys::keys_differ;
use super::walk::View;
use ffwd_automaton::{
    is_in_escape, Automaton, LexemeId, Result, Rivals, StackId, StateId, TextId, Thread,
    ThreadLexeme, Threads,
};
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexState, Lexeme, Verdict};
use ffwd_tokenizer::vocabulary::{ByteTrie, Descent, NodeId, TokenId, Vocabulary};
use parts::{add_compared, add_without};

/// Counters of one compiled grammar, over all generations.
#[derive(Debug, Default)]
pub struct MaskCounters {
    /// Masks that were copied from the memo.
    pub hits: Sharded,
    /// Masks that were computed.
    pub computed: AtomicU64,
    /// Trie nodes that were visited for exits and keys.
    pub nodes_walked: AtomicU64,
    /// Tries of continuations after a lexeme that were walked.
    pub exit_tries: AtomicU64,
    /// Positions in keys with a computed mask.
    pub key_masks: AtomicU64,
    /// Tokens that were read byte by byte, because earlier text decides about them.
    pub doubts: AtomicU64,
    /// How often all cached masks were evicted.
    pub cleared: AtomicU64,
}

/// The mask of a configuration without its recorded texts.
#[derive(Clone, Debug)]
struct AnonymousMask {
    mask: Arc<TokenMask>,
    /// Tokens, sorted, that only the recorded texts decide.
    doubtful: Arc<[Doubt]>,
    /// Tokens that the earlier items may exclude.
    rivalled: SettledRivalled,
}

impl AnonymousMask {
    fn memory_bytes(&self) -> usize {
        let doubtful = std::mem::size_of_val(&*self.doubtful);
        self.mask.memory_bytes() + doubtful + self.rivalled.memory_bytes()
    }
}

/// Most masks have fewer tokens of their own, beside shared ones.
const USUAL_TOKENS: usize = 512;

/// Subtrees with more nodes use the cached masks of lexemes; smaller ones are walked byte by byte.
const WALKED_NODES: u32 = 16;

/// The number of nodes after the end of a lexeme from which on tokens are read byte by byte.
const SCATTERED_NODES: usize = if cfg!(test) { 60 } else { 1 << 14 };

/// The continuations after other keys: by the tokens that end the key, which are the trie of their
/// rests and the grafts, and by the stack.
type AfterKeys = FxHashMap<(u64, SmallVec<[(NodeId, bool); 2]>, StackId), TokenList>;

/// The masks of other keys alone: by the stack, the state of their lexeme, and whether their texts
/// are left out.
type OtherKeys = FxHashMap<(StackId, LexemeId, LexState, bool), Arc<TokenMask>>;

/// Computes the masks of one grammar for one vocabulary, and caches them by state.
#[derive(Debug)]
pub struct Masker {
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) lexeme_masks: Arc<LexemeMaskStore>,
    memo: Slots<TokenMask>,
    /// By states without recorded texts.
    anonymous: Slots<AnonymousMask>,
    after_keys: Mutex<AfterKeys>,
    other_keys: Mutex<OtherKeys>,
    /// The completions of states.
    pub(super) completions: Slots<Arc<Completion>>,
    /// A number of tokens that suffices to end the text after any token, by state.
    pub(super) most_after: Slots<usize>,
    /// By state, tokens by the number of further tokens that they need.
    pub(super) levels: Slots<Arc<Levels>>,
    /// Tokens that the earlier items exclude.
    pub(super) ruled: Mutex<KnownRuled>,
    /// Tokens that lexemes read where items that came may rule them out.
    pub(super) readable: Mutex<KnownReadable>,
    /// By state, tokens by their targets.
    pub(super) groups: Slots<Arc<[Group]>>,
    /// Tokens with a backslash and no quote, by the states of strings that can read them.
    pub(super) in_strings: Mutex<FxHashMap<(LexemeId, LexState), TokenList>>,
    /// Bytes of the cached masks and completions.
    bytes: AtomicU64,
    max_bytes: AtomicU64,
    pub counters: Arc<MaskCounters>,
}

impl Masker {
    /// `max_bytes`: the memory above which cached masks are evicted.
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        lexeme_masks: Arc<LexemeMaskStore>,
        max_bytes: u64,
        counters: Arc<MaskCounters>,
    ) -> Self {
        Self {
            vocabulary,
            lexeme_masks,
            memo: Slots::default(),
            anonymous: Slots::default(),
            after_keys: Mutex::default(),
            other_keys: Mutex::default(),
            completions: Slots::default(),
            most_after: Slots::default(),
            levels: Slots::default(),
            ruled: Mutex::default(),
            readable: Mutex::default(),
            groups: Slots::default(),
            in_strings: Mutex::default(),
            bytes: AtomicU64::new(0),
            max_bytes: AtomicU64::new(max_bytes),
            counters,
        }
    }

    /// Sets the memory above which masks are evicted.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    /// Bytes of the cached masks.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) as usize
    }

    /// Reads the mask of a state, if it is cached.
    #[inline]
    pub fn with_known<R>(&self, state: StateId, read: impl FnOnce(&TokenMask) -> R) -> Option<R> {
        let done = self.memo.with(state.0, read);
        if done.is_some() {
            self.counters.hits.increment();
        }
        done
    }

    /// As [`Self::with_known`], for who may want to keep the mask.
    #[inline]
    pub fn with_shared<R>(
        &self,
        state: StateId,
        read: impl FnOnce(&Arc<TokenMask>) -> R,
    ) -> Option<R> {
        let done = self.memo.with_shared(state.0, read);
        if done.is_some() {
            self.counters.hits.increment();
        }
        done
    }

    /// Whether the mask of a state is cached.
    pub fn is_known(&self, state: StateId) -> bool {
        self.memo.with(state.0, |_| ()).is_some()
    }

    /// Computes the mask of a state, and caches it.
    pub fn compute(&self, automaton: &Automaton, state: StateId) -> Result<Arc<TokenMask>> {
        self.state_mask(automaton, state)
    }

    fn state_mask(&self, automaton: &Automaton, state: StateId) -> Result<Arc<TokenMask>> {
        let threads = automaton.threads(state);
        if is_in_escape(threads) {
            let mask = Arc::new(self.mask_within_escape(automaton, state)?);
            self.make_room(mask.memory_bytes());
            self.keep(automaton, state, &mask);
            return Ok(mask);
        }
        // Recorded texts decide almost nothing: masks are computed once for all texts.
        let texts = |thread: &Thread| match (thread.text, thread.transcript) {
            // Within names, the place among them determines the text.
            (TextId::EMPTY, TextId::NONE) => thread.lexeme != ThreadLexeme::Key,
            (text, transcript) => (text, transcript) != (TextId::NONE, TextId::NONE),
        };
        let has_history = threads.iter().any(|thread| automaton.has_history(thread.stack));
        let shared = has_history || threads.iter().any(texts);
        let AnonymousMask { mut mask, doubtful, rivalled } = if shared {
            let mut anonymous = Threads::new();
            for thread in threads {
                let stack = automaton.items().without_history(thread.stack)?;
                anonymous.push(Thread { stack, ..without_texts(thread) });
            }
            let anonymous = automaton.intern(anonymous)?;
            match self.anonymous.with(anonymous.0, AnonymousMask::clone) {
                Some(known) => known,
                None => {
                    let new = self.collect_all(automaton, anonymous)?;
                    self.make_room(new.memory_bytes());
                    self.anonymous.set(anonymous.0, Arc::new(new.clone()));
                    new
                }
            }
        } else {
            self.collect_all(automaton, state)?
        };
        // Except for the few tokens in which one key ends and a possibly equal one begins, or in
        // which an item ends before one that must differ.
        let mut doubtful = doubtful.to_vec();
        let mut ruled_out = None;
        if has_history && !rivalled.is_empty() {
            let ruled = self.ruled_out(automaton, threads)?;
            let others = rivalled.without(&self.vocabulary, |byte| ruled.has_found(byte));
            if !others.is_empty() {
                let rivals: SmallVec<[Rivals; 2]> = threads
                    .iter()
                    .map(|thread| automaton.items().rivals(thread))
                    .collect::<Result<_, _>>()?;
                let are_marks = threads.iter().all(|thread| automaton.items().is_in_mark(thread));
                let is_cleared = |token: &TokenId| {
                    let text = self.vocabulary.text(*token);
                    // Between values, blanks change nothing of what an item can become.
                    are_marks && is_blank(text)
                        || rivals.iter().all(|rivals| automaton.items().clears(rivals, text))
                };
                let asked = others.into_iter().filter(|token| !is_cleared(token));
                doubtful.extend(asked.map(Doubt::of));
            }
            doubtful.extend(ruled.asked(self, automaton, &rivalled)?.into_iter().map(Doubt::of));
            ruled_out = Some(ruled);
        }
        if automaton.json().is_some() {
            // Additional recorded texts never allow more keys.
            for &token in self.vocabulary.tokens_with_two_keys() {
                let text = self.vocabulary.text(token);
                let differ = |thread| keys_differ(automaton, thread, text);
                if mask.contains(token) && !threads.iter().all(differ) {
                    doubtful.push(Doubt::of(token));
                }
            }
        }
        if threads.iter().any(|thread| is_hard_to_compare(automaton, thread.transcript)) {
            let commas = |token: &TokenId| self.vocabulary.text(*token).contains(&b',');
            let all = (0..self.vocabulary.width() as u32).map(TokenId);
            doubtful.extend(all.filter(commas).map(Doubt::of));
        }
        let ruled_out = ruled_out.filter(|ruled| ruled.count() > 0);
        let doubtful = Doubt::settle(doubtful);
        // Most often it is the mask for all texts, which states then share.
        let mut is_own = ruled_out.is_some();
        let mut allowed: SmallVec<[TokenId; 8]> = SmallVec::new();
        let mut answers = Answers::new(&self.vocabulary, automaton, threads);
        for &doubt in doubtful.iter() {
            let in_some = mask.contains(doubt.token);
            let is_allowed = answers.is_allowed(doubt, in_some)?;
            is_own |= is_allowed != in_some;
            if is_allowed {
                allowed.push(doubt.token);
            }
        }
        if answers.num_read > 0 {
            self.counters.doubts.fetch_add(answers.num_read, Ordering::Relaxed);
        }
        if is_own {
            let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
            builder.add_mask(&mask);
            let tokens: Vec<TokenId> = doubtful.iter().map(|doubt| doubt.token).collect();
            builder.remove(&tokens);
            if let Some(ruled) = ruled_out {
                ruled.remove_from(&mut builder, &self.vocabulary);
            }
            builder.added.extend_from_slice(&allowed);
            mask = Arc::new(builder.build());
            self.make_room(mask.memory_bytes());
        } else if !shared && Arc::strong_count(&mask) == 1 {
            // Masks that a memo holds are counted there.
            self.make_room(mask.memory_bytes());
        }
        if let Some(escaping) = automaton.escaping() {
            mask = self.with_escapes(automaton, escaping, threads, &mask)?;
            self.make_room(mask.memory_bytes());
        }
        self.keep(automaton, state, &mask);
        Ok(mask)
    }

    #[cfg_attr(not(debug_assertions), expect(unused_variables))]
    fn keep(&self, automaton: &Automaton, state: StateId, mask: &Arc<TokenMask>) {
        #[cfg(debug_assertions)]
        super::agreement::check(&self.vocabulary, automaton, automaton.threads(state), mask);
        self.counters.computed.fetch_add(1, Ordering::Relaxed);
        self.memo.set(state.0, mask.clone());
    }

    pub(super) fn count_nodes(&self, nodes: u64) {
        self.counters.nodes_walked.fetch_add(nodes, Ordering::Relaxed);
    }

    /// Counts the bytes of a mask before it is cached.
    pub(super) fn make_room(&self, bytes: usize) {
        let bytes = bytes as u64;
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held > self.max_bytes.load(Ordering::Relaxed) {
            self.memo.clear();
            self.anonymous.clear();
            self.after_keys.lock().clear();
            self.other_keys.lock().clear();
            self.completions.clear();
            self.most_after.clear();
            self.levels.clear();
            self.ruled.lock().clear();
            self.readable.lock().clear();
            self.groups.clear();
            self.in_strings.lock().clear();
            self.bytes.store(bytes, Ordering::Relaxed);
            self.counters.cleared.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn collect_all(&self, automaton: &Automaton, state: StateId) -> Result<AnonymousMask> {
        let mut nodes = 0;
        if let Some(mask) = self.other_keys_alone(automaton, state, &mut nodes)? {
            self.counters.nodes_walked.fetch_add(nodes, Ordering::Relaxed);
            let (doubtful, rivalled) = (Arc::default(), SettledRivalled::default());
            return Ok(AnonymousMask { mask, doubtful, rivalled });
        }
        let mut builder = TokenMaskBuilder::new(self.vocabulary.mask_words());
        builder.added.reserve(USUAL_TOKENS);
        let view = View::of(&self.vocabulary);
        self.collect(automaton, view, automaton.threads(state), &mut builder, &mut nodes)?;
        for (set, _) in automaton.token_exits(automaton.threads(state))? {
            for &(first, last) in automaton.token_set(set) {
                builder.added.extend((first..=last).map(TokenId));
            }
        }
        if automaton.is_accepting(state) {
            builder.added.extend_from_slice(self.vocabulary.eos());
        }
        self.counters.nodes_walked.fetch_add(nodes, Ordering::Relaxed);
        let doubtful = match builder.doubtful.is_empty() {
            true => Arc::default(),
            false => Doubt::settle(std::mem::take(&mut builder.doubtful)).into(),
        };
        let rivalled = std::mem::take(&mut builder.rivalled).settle(&self.vocabulary);
        Ok(AnonymousMask { mask: Arc::new(builder.build()), doubtful, rivalled })
    }

    /// The tokens below a node of a trie that some thread can read.
    pub(super) fn collect(
        &self,
        automaton: &Automaton,
        view: View<'_>,
        threads: &[Thread],
        builder: &mut TokenMaskBuilder,
        nodes: &mut u64,
    ) -> Result<()> {
        let mut scattered = Threads::new();
        for thread in threads {
            let is_endless = automaton.items().stays_endless(thread)?;
            match thread.lexeme {
                // Sets of tokens are for whole tokens, see `collect_all`.
                ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => {}
                ThreadLexeme::Key if is_endless => {
                    self.collect_keys(automaton, view, thread, builder, nodes)?;
                }
                ThreadLexeme::Key => {
                    let mut keys = TokenMaskBuilder::new(self.vocabulary.mask_words());
                    self.collect_keys(automaton, view, thread, &mut keys, nodes)?;
                    builder.add_rivalled(keys);
                }
                ThreadLexeme::Lexeme(index) => {
                    let lexeme = automaton.lexeme(index);
                    let state = thread.lex_state();
                    if automaton.may_dead_end(thread)? {
                        scattered.push(*thread);
                        continue;
                    }
                    let mask = self.thread_mask(automaton, view, thread, lexeme)?;
                    let anywhere = lexeme.spec().ends == Ends::Anywhere;
                    if automaton.program().is_some() && anywhere && self.is_scattered(&mask) {
                        scattered.push(*thread);
                        continue;
                    }
                    *nodes += 1;
                    add_inner(builder, &mask.inner);
                    if !is_endless {
                        builder.rivalled.add_inner(&mask.inner);
                    }
                    let compared = automaton.ends_compared_item(thread)?;
                    let has_history = automaton.has_history(thread.stack);
                    let goes_on = automaton.goes_on_anyhow(thread);
                    let asked = mask.exits.iter().filter(|group| !(goes_on && group.is_end()));
                    automaton.find_exits(thread, asked.map(|group| group.accept))?;
                    for group in &mask.exits {
                        if goes_on && group.is_end() {
                            builder.added.extend_from_slice(group.rests.tokens_at(NodeId::ROOT));
                            continue;
                        }
                        let stack = automaton.exit_thread(thread, group.accept)?;
                        if compared {
                            let spare = automaton.items().spare(stack)?;
                            let mut after = TokenMaskBuilder::new(self.vocabulary.mask_words());
                            self.collect_exits(automaton, group, stack, &mut after, nodes)?;
                            let mut doubts = Doubts::new(&self.vocabulary, spare);
                            doubts.add_exits(group);
                            add_compared(builder, after, spare, doubts, has_history);
                        } else {
                            self.collect_exits(automaton, group, stack, builder, nodes)?;
                        }
                    }
                    if state.accepts() {
                        // The lexeme may have ended already: all that may follow it.
                        let stack = automaton.exit_thread(thread, lexeme.accept(state))?;
                        let starts = anonymous_starts(automaton, stack)?;
                        if compared {
                            let spare = automaton.items().spare(stack)?;
                            let mut after = TokenMaskBuilder::new(self.vocabulary.mask_words());
                            self.collect(automaton, view, &starts, &mut after, nodes)?;
                            let mut doubts = Doubts::new(&self.vocabulary, spare);
                            doubts.add_rests(view);
                            add_compared(builder, after, spare, doubts, has_history);
                        } else if lexeme.spec().ends == Ends::Anywhere {
                            self.collect(automaton, view, &starts, builder, nodes)?;
                        } else {
                            let mut goes_on: SmallVec<[NodeId; 64]> = SmallVec::new();
                            for (byte, child) in view.trie.children(view.root) {
                                if lexeme.next(state, byte)?.is_some() {
                                    goes_on.push(child);
                                }
                            }
                            let mut after = TokenMaskBuilder::new(self.vocabulary.mask_words());
                            self.collect(automaton, view, &starts, &mut after, nodes)?;
                            add_without(builder, after, view.trie, &goes_on, &self.vocabulary);
                        }
                    }
                }
            }
        }
        if !scattered.is_empty() {
            let before = builder.added.len();
            walk_known(automaton, view.trie, view.root, &scattered, &mut builder.added, nodes)?;
            if scattered.iter().any(|thread| automaton.has_history(thread.stack)) {
                builder.rivalled.add(&builder.added[before..]);
            }
        }
        Ok(())
    }

    /// Returns whether too many tokens extend past a lexeme's end to use its mask.
    fn is_scattered(&self, mask: &LexemeMask) -> bool {
        let trie = self.vocabulary.trie();
        let below = |node: NodeId| (trie.after(node).0 - node.0) as usize;
        let of_group = |exit: &ExitGroup| {
            let grafts = exit.grafts.iter().map(|&(node, _)| below(node)).sum::<usize>();
            let everywhere = exit.everywhere.iter().map(|&node| below(node)).sum::<usize>();
            exit.rests.len() + grafts + everywhere
        };
        mask.exits.iter().map(of_group).sum::<usize>() > SCATTERED_NODES
    }

    fn lexeme_mask(
        &self,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>> {
        let vocabulary = &self.vocabulary;
        let mask = if view.trie.id() == vocabulary.trie().id() && view.root == NodeId::ROOT {
            self.lexeme_masks.get(vocabulary, lexeme, state)?
        } else {
            self.lexeme_masks.below(vocabulary, view, lexeme, state)?
        };
        Ok(mask)
    }

    /// Returns the mask of a thread's lexeme. If only a row may follow it, and the row begins again
    /// after some of its lexemes, one walk covers all repetitions. Blanks or signs may repeat any
    /// number of times, and each repetition would need a trie of its own.
    fn thread_mask(
        &self,
        automaton: &Automaton,
        view: View<'_>,
        thread: &Thread,
        lexeme: &Lexeme,
    ) -> Result<Arc<LexemeMask>> {
        let state = thread.lex_state();
        let mask_again = |again: Verdict| match again {
            0 => self.lexeme_mask(view, lexeme, state),
            _ => Ok(self.lexeme_masks.again(&self.vocabulary, view, lexeme, state, again)?),
        };
        let Some(ignored) = automaton.ignored_again(thread)? else { return mask_again(0) };
        let mask = mask_again(ignored)?;
        if view.trie.id() == self.vocabulary.trie().id() {
            // Another walk over all tokens takes longer than the tries.
            return Ok(mask);
        }
        let going_on = || mask.exits.iter().filter(|group| !group.rests.is_leaf(NodeId::ROOT));
        automaton.find_exits(thread, going_on().map(|group| group.accept))?;
        let mut again = ignored;
        for group in going_on() {
            if automaton.begins_again(thread, group.accept)? {
                again |= group.accept;
            }
        }
        if again == ignored {
            return Ok(mask);
        }
        mask_again(again)
    }

    fn collect_exits(
        &self,
        automaton: &Automaton,
        group: &ExitGroup,
        stack: StackId,
        builder: &mut TokenMaskBuilder,
        nodes: &mut u64,
    ) -> Result<()> {
        if automaton.leads_nowhere(stack) {
            return Ok(());
        }
        let starts = &anonymous_starts(automaton, stack)?;
        if automaton.are_dead_ends(starts)? {
            return Ok(());
        }
        builder.added.extend_from_slice(group.rests.tokens_at(NodeId::ROOT));
        let has_history = automaton.has_history(stack);
        let is_rivalled = has_history && !automaton.items().is_endless_at(stack)?;
        if is_rivalled {
            builder.rivalled.add(group.rests.tokens_at(NodeId::ROOT));
        }
        if !group.rests.is_leaf(NodeId::ROOT) {
            self.counters.exit_tries.fetch_add(1, Ordering::Relaxed);
            let view = View { trie: &group.rests, root: NodeId::ROOT };
            self.collect(automaton, view, starts, builder, nodes)?;
        }
        let trie = self.vocabulary.trie();
        for &(root, with_node) in &group.grafts {
            if with_node {
                builder.added.extend_from_slice(trie.tokens_at(root));
                if is_rivalled {
                    builder.rivalled.add(trie.tokens_at(root));
                }
            }
            self.collect(automaton, View { trie, root }, starts, builder, nodes)?;
        }
        for &(root, goes_on) in &group.longest_grafts {
            let mut after = TokenMaskBuilder::new(self.vocabulary.mask_words());
            self.collect(automaton, View { trie, root }, starts, &mut after, nodes)?;
            let children = trie.children(root).filter(|&(byte, _)| goes_on.contains(byte));
            let children: SmallVec<[NodeId; 64]> = children.map(|(_, child)| child).collect();
            add_without(builder, after, trie, &children, &self.vocabulary);
        }
        // Nothing follows the end of the text, so the most common case costs nothing.
        if starts.iter().any(|start| start.lexeme != ThreadLexeme::End) {
            let before = builder.added.len();
            for &top in &group.everywhere {
                for node in top.0..trie.after(top).0 {
                    walk(automaton, trie, NodeId(node), starts, &mut builder.added, nodes)?;
                }
            }
            if has_history {
                builder.rivalled.add(&builder.added[before..]);
            }
        }
        Ok(())
    }

    /// Returns the tokens that encode a prefix of `prefix`, or all of it and then an allowed
    /// continuation of a state.
    pub fn prefixed(
        &self,
        automaton: &Automaton,
        prefix: &[u8],
        state: StateId,
    ) -> Result<Vec<TokenId>> {
        let trie = self.vocabulary.trie();
        let mut tokens = Vec::new();
        let mut node = NodeId::ROOT;
        for &byte in prefix {
            let Some(child) = trie.child(node, byte) else { return Ok(tokens) };
            tokens.extend_from_slice(trie.tokens_at(child));
            node = child;
        }
        let mut nodes = 0;
        walk(automaton, trie, node, automaton.threads(state), &mut tokens, &mut nodes)?;
        self.counters.nodes_walked.fetch_add(nodes, Ordering::Relaxed);
        Ok(tokens)
    }

    /// Whether some token that strictly extends `prefix`, itself the end of the text so far, may
    /// follow when the threads stand after the prefix. With no threads any such token counts.
    pub fn has_extension(
        &self,
        automaton: &Automaton,
        threads: Option<&[Thread]>,
        prefix: &[u8],
    ) -> Result<bool> {
        let trie = self.vocabulary.trie();
        let Some(node) = trie.find(prefix) else { return Ok(false) };
        let Some(threads) = threads else {
            return Ok(trie.tokens_below(node).len() > trie.tokens_at(node).len());
        };
        let mut found = false;
        trie.walk(node, Threads::from_slice(threads), |threads, node, _| {
            let next = automaton.step(threads, trie.byte(node))?;
            if next.is_empty() {
                return Ok(Descent::Skip);
            }
            found = !trie.tokens_at(node).is_empty();
            Ok(if found { Descent::Stop } else { Descent::Below(next) })
        })
        .map(|()| found)
    }
}

/// The thread without its recorded texts.
fn without_texts(thread: &Thread) -> Thread {
    let forget = |text| if text == TextId::NONE { TextId::NONE } else { TextId::ANY };
    Thread { text: forget(thread.text), transcript: forget(thread.transcript), ..*thread }
}

/// Whether a token is white space of JSON.
pub(super) fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| b" \t\n\r".contains(byte))
}

/// Returns the threads that may begin on a stack, whatever is recorded.
fn anonymous_starts(automaton: &Automaton, stack: StackId) -> Result<Cow<'_, [Thread]>> {
    let starts = automaton.starts(stack)?;
    // Usually nothing is recorded there.
    if starts.iter().all(|start| start.transcript == TextId::NONE) {
        return Ok(Cow::Borrowed(starts));
    }
    Ok(Cow::Owned(automaton.following(stack, TextId::ANY)?.into_vec()))
}

fn add_inner(builder: &mut TokenMaskBuilder, inner: &Inner) {
    match inner {
        Inner::Few(tokens) => builder.added.extend_from_slice(tokens),
        Inner::Many(bitmap) => builder.add_bitmap(bitmap),
    }
}

/// Adds every token below a node of a trie that the threads can read.
pub(super) fn walk(
    automaton: &Automaton,
    trie: &ByteTrie,
    root: NodeId,
    threads: &[Thread],
    found: &mut Vec<TokenId>,
    nodes: &mut u64,
) -> Result<()> {
    trie.walk(root, Threads::from_slice(threads), |threads, node, _| {
        let next = automaton.step(threads, trie.byte(node))?;
        *nodes += 1;
        if next.is_empty() {
            return Ok(Descent::Skip);
        }
        found.extend_from_slice(trie.tokens_at(node));
        Ok(Descent::Below(next))
    })
}

//! Walks a trie of tokens along listed texts. Both are sorted, so one pass over both finds their
//! intersection without building states.

use super::lexeme_mask::{Inner, LexemeMask};
use super::rest_tries::RestTries;
use super::walk::{Collected, View};
use ffwd_regular::expr::{LexState, Lexeme, Listed, Span, Spelling, Verdict};
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};

/// Walks a subtree from a state of a lexeme that only these texts can follow.
pub(super) fn compute(
    tries: &RestTries,
    vocabulary: &Vocabulary,
    view: View<'_>,
    lexeme: &Lexeme,
    start: LexState,
    texts: &Listed,
    verdict: Verdict,
) -> LexemeMask {
    let View { trie, root } = view;
    let (table, span) = (texts.table(), texts.span());
    let quoted = lexeme.spec().spelling == Spelling::JsonString;
    let mut inner: Vec<TokenId> = Vec::new();
    let mut exits: Vec<Collected<'_>> = Vec::new();
    let mut pending: Vec<(NodeId, Span)> = Vec::new();
    if quoted && start == LexState::QUOTE {
        if let Some(quote) = trie.child(root, b'"') {
            inner.extend(trie.tokens_at(quote));
            pending.push((quote, span));
        }
    } else {
        pending.push((root, span));
    }
    while let Some((node, span)) = pending.pop() {
        if quoted && table.ends(span) {
            if let Some(quote) = trie.child(node, b'"') {
                Collected::group(&mut exits, verdict).end_at(vocabulary, lexeme, trie, quote, true);
            }
        }
        let mut enter = |child: NodeId, span: Span| {
            let over = !quoted && table.is_over(span);
            if !over {
                inner.extend(trie.tokens_at(child));
            }
            if !quoted && table.ends(span) && (over || !trie.is_leaf(child)) {
                Collected::group(&mut exits, verdict).end_at(vocabulary, lexeme, trie, child, over);
            }
            if !over && !trie.is_leaf(child) {
                pending.push((child, span));
            }
        };
        let Some(mut rest) = table.going_on(span) else { continue };
        if let Some(byte) = table.only_byte(rest) {
            if let (Some(child), (Some(below), _)) =
                (trie.child(node, byte), table.split(rest, byte))
            {
                enter(child, below);
            }
            continue;
        }
        for (byte, child) in trie.children(node) {
            let (found, higher) = table.split(rest, byte);
            if let Some(below) = found {
                enter(child, below);
            }
            let Some(higher) = higher else { break };
            rest = higher;
        }
    }
    let exits = exits.into_iter().map(|group| group.build(tries)).collect();
    LexemeMask { inner: Inner::of(vocabulary, inner), exits }
}

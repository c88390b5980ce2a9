//! `TagDispatch`: free text in which tags begin what follows a rule.
//!
//! Free text contains no tag and no excluded string. After a tag's last character its rule must
//! follow or, if the tag is part of a longer one, the rest of the longer tag.

use std::collections::BTreeMap;

use crate::bnf::text::Cursor;
use crate::{Grammar, GrammarError, GrammarErrorKind, NodeId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::Ast;

/// Tags and excluded strings of one dispatch, and their bytes.
const MAX_TAGS: usize = 256;
const MAX_BYTES: usize = 1 << 14;

pub(super) struct Dispatch<'t> {
    offset: usize,
    excludes: Vec<&'t str>,
    tags: Vec<(&'t str, usize, NodeId)>,
}

impl<'t> Dispatch<'t> {
    pub fn new(offset: usize) -> Self {
        Self { offset, excludes: Vec::new(), tags: Vec::new() }
    }

    pub fn exclude(&mut self, text: &'t str) {
        self.excludes.push(text);
    }

    pub fn add(
        &mut self,
        cursor: &Cursor<'_>,
        tag: &'t str,
        offset: usize,
        rule: NodeId,
    ) -> Result<(), GrammarError> {
        if let Some(excluded) = self.excludes.iter().find(|&&excluded| tag.contains(excluded)) {
            let message = format!(
                "the tag {tag:?} can never come, for {excluded:?} is excluded: leave one out"
            );
            return Err(cursor.error(offset, GrammarErrorKind::Contradiction, message));
        }
        self.tags.push((tag, offset, rule));
        if self.tags.len() + self.excludes.len() > MAX_TAGS {
            return Err(cursor.limit(offset, "dispatch_tags", MAX_TAGS));
        }
        Ok(())
    }

    pub fn finish(
        self,
        grammar: &mut Grammar,
        cursor: &Cursor<'_>,
        repeated: bool,
    ) -> Result<NodeId, GrammarError> {
        if self.excludes.len() > MAX_TAGS {
            return Err(cursor.limit(self.offset, "dispatch_tags", MAX_TAGS));
        }
        let bytes = self.tags.iter().map(|tag| tag.0.len()).sum::<usize>();
        if bytes + self.excludes.iter().map(|text| text.len()).sum::<usize>() > MAX_BYTES {
            return Err(cursor.limit(self.offset, "dispatch_tag_bytes", MAX_BYTES));
        }
        // The tags of each rule, in the order in which the rules come first.
        let mut order: Vec<NodeId> = Vec::new();
        let mut by_rule: BTreeMap<NodeId, Vec<Ast>> = BTreeMap::new();
        for &(tag, _, rule) in &self.tags {
            let begun = Ast::concat([self.before(tag), Ast::literal(tag)]);
            let ways = by_rule.entry(rule).or_default();
            if ways.is_empty() {
                order.push(rule);
            }
            ways.push(begun);
        }
        let mut begun = Vec::with_capacity(order.len());
        for rule in order {
            let ways = by_rule.remove(&rule).unwrap_or_default();
            let text = grammar.text(Ast::alternation(ways))?;
            begun.push(grammar.seq(vec![text, rule])?);
        }
        let free = grammar.text(Ast::complement(self.stopped()))?;
        Ok(ways(grammar, begun, free, repeated)?)
    }

    fn stops(&self) -> impl Iterator<Item = &'t str> + '_ {
        self.tags.iter().map(|tag| tag.0).chain(self.excludes.iter().copied())
    }

    /// The texts that contain a tag or an excluded string.
    fn stopped(&self) -> Ast {
        let stops = Ast::alternation(self.stops().map(Ast::literal));
        Ast::concat([Ast::any_text(), stops, Ast::any_text()])
    }

    /// Returns the text before a tag: free text, no suffix of which forms a tag with the tag's
    /// prefix.
    fn before(&self, tag: &str) -> Ast {
        let ends = self.stops().flat_map(|stop| {
            let excluded = self.excludes.contains(&stop);
            let cuts = stop.char_indices().map(|(cut, _)| cut).skip(1);
            let bad = cuts.filter(move |&cut| {
                let rest = &stop[cut..];
                tag.starts_with(rest) && (excluded || rest.len() < tag.len())
            });
            bad.map(move |cut| Ast::literal(&stop[..cut])).collect::<Vec<_>>()
        });
        let ends = Ast::concat([Ast::any_text(), Ast::alternation(ends)]);
        Ast::complement(Ast::alternation([self.stopped(), ends]))
    }
}

/// Any number of the alternatives, or at most one, and free text after them.
pub(super) fn ways(
    grammar: &mut Grammar,
    mut begun: Vec<NodeId>,
    free: NodeId,
    repeated: bool,
) -> Result<NodeId, LimitExceeded> {
    if repeated {
        let begun = grammar.choice(begun)?;
        let begun = grammar.repeat(begun, 0, None)?;
        grammar.seq(vec![begun, free])
    } else {
        begun.push(free);
        grammar.choice(begun)
    }
}

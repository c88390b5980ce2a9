//! A grammar as front ends write it: an arena of nodes, rules by name, and non-regular parts: JSON
//! Schemas, and sets of tokens.
//!
//! A [`Grammar`] describes texts and is independent of bytes, automata and vocabularies. All front
//! ends produce one, so any may be nested in any: [`Grammar::include`] copies one into another.
//! Errors of a grammar as a whole are found by compilation, with the position in the source of the
//! rule.
//!
//! Start here:
//!
//! * [`lark::parse`], [`gbnf::parse`] and [`ebnf::parse`] read the three notations.
//! * [`Grammar`] builds one node by node: [`Grammar::text`], [`Grammar::seq`], [`Grammar::choice`],
//!   [`Grammar::repeat`], and [`Grammar::declare`] with [`Grammar::define`] for recursion.
//! * [`GrammarError`] says what is wrong, with line, column and a caret.
//!
//! A compiler then uses these: [`fold_regular`] merges lexemes, [`graph::Graph`] resolves rules and
//! parameters, and [`symbols::Symbols`] has no left recursion. [`Live`] adds the symbols for values
//! of parameters while a text is read.
//!
//! The crate does not read JSON Schemas: it keeps their texts. It names tokens by id or by name and
//! does not know whether a vocabulary has them.
//!
//! # Example
//!
//! ```
//! use ffwd_grammar::{gbnf, Grammar, Node};
//! use ffwd_regular::regex::Ast;
//!
//! let grammar = gbnf::parse("root ::= item+\nitem ::= [0-9]\nspare ::= \"x\"\n", "root")?;
//! let unused = grammar.unused_rules(grammar.start.ok_or("no start")?);
//! assert_eq!(&*unused[0].name, "spare");
//! assert_eq!(grammar.positions(&unused), [Some(("GBNF", 3, 1))]);
//!
//! let error = gbnf::parse("root ::= [0-9\n", "root").unwrap_err();
//! assert_eq!(error.line(), 1);
//!
//! let mut by_hand = Grammar::new();
//! let letter = by_hand.text(Ast::literal("a"))?;
//! let pair = by_hand.seq(vec![letter, letter])?;
//! assert_eq!(by_hand.node(pair), &Node::Seq([letter, letter].into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod blame;
mod bnf;
mod described;
pub mod ebnf;
mod error;
mod fold;
pub mod free_text;
pub mod gbnf;
pub mod graph;
mod include;
pub mod lark;
mod left_corner_transform;
mod left_corners;
mod left_recursion;
mod live;
#[cfg(any(test, feature = "testing"))]
pub mod oracle;
mod parameter;
pub mod regular;
mod source;
pub mod symbols;
mod table;
#[cfg(test)]
mod test_fold;
#[cfg(test)]
mod tests;
mod unused;
mod values;
mod whitespace;

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

pub use described::Described;
pub use error::{GrammarError, GrammarErrorKind};
pub use fold::fold_regular;
pub use left_recursion::recursive_marks;
pub use live::Live;
pub use source::{Excerpt, Place, Source, SourceId};
pub use unused::UnusedRule;
pub use whitespace::{Layout, Whitespace, WhitespaceMode};

use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::regex::{Ast, CharClass};

/// An interned node of one grammar.
/// Its place in the arena, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A rule of one grammar.
/// Its place in [`Grammar::rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A JSON value of one grammar.
/// Its place in [`Grammar::json`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonId(pub u32);

/// A span of one grammar.
/// Its place in [`Grammar::spans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub u32);

/// The lexemes of one scope compete for the longest match.
/// Less than [`Grammar::num_scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(pub u32);

/// A part of a grammar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// All of these, one after the other; with none the empty text.
    Seq(Arc<[NodeId]>),
    /// Any of these; with none no text at all.
    Choice(Arc<[NodeId]>),
    /// `min..=max` times; `max` of `None` is unbounded.
    Repeat {
        /// What is repeated.
        inner: NodeId,
        /// How often at least.
        min: u32,
        /// How often at most.
        max: Option<u32>,
    },
    /// A rule; with an argument where the rule has a parameter.
    Rule(RuleId, Argument),
    /// The inner node, if the condition holds for the parameter of the rule around it.
    Guard(Condition, NodeId),
    /// A text of a regular language.
    Lexeme(Lexeme),
    /// One token that the model must write as a whole, usually a special token.
    Tokens(Arc<TokenSet>),
    /// A JSON value.
    Json(JsonId),
    /// The inner node, whose position the matcher reports. It accepts the same texts.
    Span(SpanId, NodeId),
    /// What is inside, in at most so many tokens.
    Limit {
        /// How many tokens the part may have.
        max_tokens: u32,
        /// What is limited.
        inner: NodeId,
    },
}

/// A text of a regular language, and how its end is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lexeme {
    /// Its texts, in UTF-8.
    pub language: Ast,
    /// Where a text of it may end.
    pub lexing: Lexing,
}

/// How the end of a lexeme is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lexing {
    /// Wherever the language allows it: the texts are all of the concatenations.
    Anywhere,
    /// Only at the longest match, as in a lexer: no lexeme of the scope that may begin at the same
    /// place can continue. All lexemes that match up to there are accepted; without one the text is
    /// refused. A lazy lexeme ends as soon as it can, and then only lazy ones that end there are
    /// accepted.
    Longest {
        /// The lexemes with which it competes.
        scope: ScopeId,
        /// How it competes.
        lexing: Longest,
    },
}

/// Tokens by id or by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSet {
    /// The tokens; repeated ones count once.
    pub items: Box<[TokenItem]>,
    /// All tokens but these. Those that end the output never belong to it.
    pub exclude: bool,
    /// Where its source has it, for messages.
    pub place: Option<Place>,
}

/// One token, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenItem {
    /// Ids from the first to the last.
    Ids(u32, u32),
    /// The token with this content, such as `<|im_end|>`.
    Named(Arc<str>),
}

/// The value of a rule's parameter: 64 bits, as in llguidance's parametric grammars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Argument {
    /// The rule has no parameter.
    #[default]
    None,
    /// This value.
    Value(u64),
    /// That of the rule around.
    Same,
    /// That of the rule around, changed.
    Changed(Change),
}

/// A run of bits of the parameter, from the lowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitRange {
    /// The lowest bit, 0 to 63.
    pub start: u8,
    /// How many bits, at most 64.
    pub length: u8,
}

/// The change of a parameter when a rule passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The run counts one more, and stays at its largest value.
    Increment(BitRange),
    /// The run counts one less, and stays at zero.
    Decrement(BitRange),
    /// Sets the bit of this number, 0 to 63.
    SetBit(u8),
    /// Clears the bit of this number, 0 to 63.
    ClearBit(u8),
    /// Keeps the bits that are set here.
    And(u64),
    /// Sets the bits that are set here.
    Or(u64),
}

/// A condition on the parameter of the rule around.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Holds of every parameter.
    True,
    /// The bit of this number, 0 to 63, is set.
    BitSet(u8),
    /// The bit of this number, 0 to 63, is not set.
    BitClear(u8),
    /// A number compares with a constant as said.
    Compare {
        /// The left side.
        of: Operand,
        /// The operator.
        comparison: Comparison,
        /// The right side.
        with: u64,
    },
    /// All of them hold; so with none.
    And(Arc<[Condition]>),
    /// Any of them holds; not so with none.
    Or(Arc<[Condition]>),
    /// The condition does not hold.
    Not(Arc<Condition>),
}

/// A number that the parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The bits of the run as a number.
    Value(BitRange),
    /// How many bits of the run are set.
    Count(BitRange),
}

/// An operator between two unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// How one of several lexemes ends that compete for the longest match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Longest {
    /// At its longest match.
    Greedy,
    /// At its shortest match.
    Lazy,
    /// As a greedy one. It may only come where another lexeme of the scope could, or a token or a
    /// JSON value.
    Ignored,
}

/// A node with a name, which other nodes may use before it is defined.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name in the source.
    pub name: Arc<str>,
    /// Where its source defines it, for messages.
    pub place: Option<Place>,
    /// Its texts; `None` of a rule that is declared and not defined.
    pub body: Option<NodeId>,
}

/// A JSON Schema within a grammar.
#[derive(Clone, Debug)]
pub struct Json {
    /// The text of the schema; it is read when the grammar is compiled.
    pub schema: Arc<str>,
    /// Where the source of the grammar has it.
    pub place: Option<Place>,
    /// Its white space; `None` for that of the grammar's options.
    pub whitespace: Option<Whitespace>,
}

/// A piece of text that the matcher reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// What the text is for.
    pub kind: SpanKind,
    /// The name of a capture, or of the tool, where it is known beforehand.
    pub name: Arc<str>,
    /// How much of it is reported.
    pub part: SpanPart,
}

/// How much of the text is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpanPart {
    /// All of it.
    #[default]
    Whole,
    /// The text before its ending. The ending is the shortest suffix in its language that follows a
    /// text of the body's language.
    Body {
        /// What may come before the ending.
        body: Ast,
        /// What ends it.
        ending: Ast,
    },
    /// Only that ending.
    Ending {
        /// What may come before the ending.
        body: Ast,
        /// What ends it.
        ending: Ast,
    },
}

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A named part that the caller asked for.
    Capture,
    /// Text before the answer.
    Reasoning,
    /// Free text of an answer.
    Content,
    /// A whole call of a tool.
    ToolCall,
    /// The name within a call.
    ToolName,
    /// The arguments within a call.
    ToolArguments,
    /// A JSON value that is reported by pointers.
    Json,
}

/// A grammar. Nodes are interned: equal ones have equal ids.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    nodes: Vec<Node>,
    /// Ids by the hashes of their nodes. A language may be large, so it is hashed once and not copied.
    ids: HashTable<(u64, NodeId)>,
    /// By [`RuleId`].
    pub rules: Vec<Rule>,
    /// JSON values by [`JsonId`]. A function of this name adds one.
    pub json: Vec<Json>,
    /// By [`SpanId`].
    pub spans: Vec<Span>,
    /// The texts that it was read from, by [`SourceId`].
    pub sources: Vec<Source>,
    /// Rules of the sources that are not among `rules`, as nothing needs them.
    pub(crate) unused: Vec<UnusedRule>,
    num_scopes: u32,
    /// The start of a text.
    pub start: Option<NodeId>,
}

/// How many nodes and rules a grammar may have.
pub(crate) const MAX_NODES: usize = 4_000_000;

impl Grammar {
    /// A grammar without nodes, rules and start.
    pub fn new() -> Self {
        Self::default()
    }

    /// The node of an id of this grammar.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// How many distinct nodes there are; ids are less than that.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many scopes there are; ids are less than that.
    pub fn num_scopes(&self) -> u32 {
        self.num_scopes
    }

    /// Interns a node whose children are of this grammar.
    pub fn add(&mut self, node: Node) -> Result<NodeId, LimitExceeded> {
        let hash = FxBuildHasher.hash_one(&node);
        let is_it = |&(other, id): &(u64, NodeId)| other == hash && *self.node(id) == node;
        if let Some(&(_, known)) = self.ids.find(hash, is_it) {
            return Ok(known);
        }
        meter::charge(1)?;
        if self.nodes.len() >= MAX_NODES {
            return Err(LimitExceeded::new("grammar_nodes", MAX_NODES));
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.ids.insert_unique(hash, (hash, id), |&(hash, _)| hash);
        Ok(id)
    }

    /// Puts a text that no lexeme can consume after some of the longest-match lexemes, wherever
    /// they occur. Nothing may be added to the grammar after that.
    ///
    /// # Errors
    /// The grammar has too many nodes.
    pub fn separate(&mut self, lexemes: &[NodeId]) -> Result<(), LimitExceeded> {
        let separator = CharClass::single(char::MAX);
        let others = Ast::repeat(Ast::Class(separator.negate()), 0, None);
        for node in &mut self.nodes {
            if let Node::Lexeme(Lexeme { language, lexing: Lexing::Longest { .. } }) = node {
                *language = Ast::intersection([language.clone(), others.clone()]);
            }
        }
        for &id in lexemes {
            let Node::Lexeme(lexeme) = self.node(id).clone() else { continue };
            let Lexing::Longest { scope, .. } = lexeme.lexing else { continue };
            let (language, lexing) = (Ast::Class(separator.clone()), Longest::Greedy);
            let lexing = Lexing::Longest { scope, lexing };
            let end = self.add(Node::Lexeme(Lexeme { language, lexing }))?;
            let copy = NodeId(self.nodes.len() as u32);
            self.nodes.push(Node::Lexeme(lexeme));
            self.nodes[id.0 as usize] = Node::Seq([copy, end].into());
        }
        Ok(())
    }

    /// The nodes one after the other; a single one is returned as it is.
    pub fn seq(&mut self, parts: Vec<NodeId>) -> Result<NodeId, LimitExceeded> {
        match parts[..] {
            [one] => Ok(one),
            _ => self.add(Node::Seq(parts.into())),
        }
    }

    /// Any of the nodes; repeated ones count once, and a single one is returned as it is.
    pub fn choice(&mut self, mut parts: Vec<NodeId>) -> Result<NodeId, LimitExceeded> {
        let mut seen = rustc_hash::FxHashSet::default();
        parts.retain(|&part| seen.insert(part));
        match parts[..] {
            [one] => Ok(one),
            _ => self.add(Node::Choice(parts.into())),
        }
    }

    /// `min..=max` times; `max` of `None` is unbounded.
    pub fn repeat(
        &mut self,
        inner: NodeId,
        min: u32,
        max: Option<u32>,
    ) -> Result<NodeId, LimitExceeded> {
        match (min, max) {
            (1, Some(1)) => Ok(inner),
            (_, Some(0)) => self.seq(Vec::new()),
            _ => self.add(Node::Repeat { inner, min, max }),
        }
    }

    /// A regular language whose texts may end wherever it allows it.
    pub fn text(&mut self, language: Ast) -> Result<NodeId, LimitExceeded> {
        match language {
            Ast::Epsilon => self.seq(Vec::new()),
            Ast::Empty => self.choice(Vec::new()),
            _ => self.add(Node::Lexeme(Lexeme { language, lexing: Lexing::Anywhere })),
        }
    }

    /// A lexeme of a scope, see [`Lexing::Longest`].
    pub fn terminal(
        &mut self,
        language: Ast,
        scope: ScopeId,
        lazy: bool,
    ) -> Result<NodeId, LimitExceeded> {
        let lexing = if lazy { Longest::Lazy } else { Longest::Greedy };
        self.longest(language, scope, lexing)
    }

    /// Sets the language between the lexemes of a scope.
    pub fn ignored(&mut self, language: Ast, scope: ScopeId) -> Result<NodeId, LimitExceeded> {
        self.longest(language, scope, Longest::Ignored)
    }

    fn longest(
        &mut self,
        language: Ast,
        scope: ScopeId,
        lexing: Longest,
    ) -> Result<NodeId, LimitExceeded> {
        self.add(Node::Lexeme(Lexeme { language, lexing: Lexing::Longest { scope, lexing } }))
    }

    /// A scope without lexemes.
    pub fn add_scope(&mut self) -> ScopeId {
        self.num_scopes += 1;
        ScopeId(self.num_scopes - 1)
    }

    /// A rule whose body is still to be given.
    pub fn declare(&mut self, name: &str, place: Option<Place>) -> Result<RuleId, LimitExceeded> {
        if self.rules.len() >= MAX_NODES {
            return Err(LimitExceeded::new("grammar_rules", MAX_NODES));
        }
        self.rules.push(Rule { name: name.into(), place, body: None });
        Ok(RuleId(self.rules.len() as u32 - 1))
    }

    /// Gives a declared rule its body, in place of one that it may have.
    pub fn define(&mut self, rule: RuleId, body: NodeId) {
        self.rules[rule.0 as usize].body = Some(body);
    }

    /// The texts of a rule, which may still be without body. It must have no parameter.
    pub fn rule(&mut self, rule: RuleId) -> Result<NodeId, LimitExceeded> {
        self.add(Node::Rule(rule, Argument::None))
    }

    /// JSON values by [`JsonId`]. A function of this name adds one.
    pub fn json(&mut self, schema: &str, place: Option<Place>) -> Result<NodeId, LimitExceeded> {
        self.json_with(schema, place, None)
    }

    /// As [`Self::json`], with its own white space.
    pub fn json_with(
        &mut self,
        schema: &str,
        place: Option<Place>,
        whitespace: Option<Whitespace>,
    ) -> Result<NodeId, LimitExceeded> {
        self.json.push(Json { schema: schema.into(), place, whitespace });
        self.add(Node::Json(JsonId(self.json.len() as u32 - 1)))
    }

    /// The inner node as a span: the matcher reports all of its text.
    pub fn span(
        &mut self,
        kind: SpanKind,
        name: &str,
        inner: NodeId,
    ) -> Result<NodeId, LimitExceeded> {
        self.span_part(kind, name, SpanPart::Whole, inner)
    }

    pub(crate) fn span_part(
        &mut self,
        kind: SpanKind,
        name: &str,
        part: SpanPart,
        inner: NodeId,
    ) -> Result<NodeId, LimitExceeded> {
        self.spans.push(Span { kind, name: name.into(), part });
        self.add(Node::Span(SpanId(self.spans.len() as u32 - 1), inner))
    }

    /// What is inside, in at most so many tokens.
    pub fn limit(&mut self, max_tokens: u32, inner: NodeId) -> Result<NodeId, LimitExceeded> {
        self.add(Node::Limit { max_tokens, inner })
    }

    /// A text that nodes are read from; `kind` is what messages call its language.
    pub fn add_source(&mut self, kind: &'static str, text: &str) -> SourceId {
        self.sources.push(Source { kind, text: text.into() });
        SourceId(self.sources.len() as u32 - 1)
    }
}

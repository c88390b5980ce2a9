//! A grammar as front ends write it: an arena of nodes, rules by name, and non-regular parts: JSON
//! Schemas, and sets of tokens.
//!
//! A [`Grammar`] describes texts and is independent of bytes, automata and vocabularies. All front
//! ends produce one, so any may be nested in any: [`Grammar::include`] copies one into another.
//! Errors of a grammar as a whole are found by compilation, with the position in the source of the
//! rule.

mod blame;
mod described;
pub mod ebnf;
pub mod error;
pub mod fold;
pub mod free_text;
pub mod gbnf;
pub mod graph;
mod include;
pub mod lark;
mod left_corners;
pub mod left_recursion;
pub mod live;
#[cfg(any(test, feature = "testing"))]
pub mod oracle;
mod parameter;
pub mod regular;
pub mod source;
pub mod symbols;
mod table;
#[cfg(test)]
mod test_fold;
#[cfg(test)]
mod tests;
pub mod unused;
pub mod values;
pub mod whitespace;

use std::sync::Arc;

pub use described::Described;
pub use error::{GrammarError, GrammarErrorKind};
pub use source::{Place, Source, SourceId};
pub use unused::UnusedRule;

use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::regex::{Ast, CharClass};
use whitespace::Whitespace;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub u32);

/// The lexemes of one scope compete for the longest match.
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
    Repeat { inner: NodeId, min: u32, max: Option<u32> },
    /// A rule; with an argument where the rule has a parameter.
    Rule(RuleId, Argument),
    /// The inner node, if the condition holds for the parameter of the rule around it.
    Guard(Condition, NodeId),
    /// A text of a regular language.
    Lexeme(Lexeme),
    /// One token that the model must write as a whole, mostly one that is no text.
    Tokens(Arc<TokenSet>),
    /// A JSON value.
    Json(JsonId),
    /// The inner node, whose position the matcher reports. It accepts the same texts.
    Span(SpanId, NodeId),
    /// The inner node, in at most this many tokens.
    Limit { max_tokens: u32, inner: NodeId },
}

/// A text of a regular language, and how its end is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lexeme {
    pub language: Ast,
    pub lexing: Lexing,
}

/// How the end of a lexeme is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lexing {
    /// Wherever the language allows it: the texts are all of the concatenations.
    Anywhere,
    /// A lexeme of a lexer: it ends where no lexeme of the scope that may begin at its start can
    /// continue. All that match up to there are accepted, and if none does, there is no
    /// continuation. A lazy one ends as soon as it can, and only lazy ones that end there as well
    /// are accepted with it.
    Longest { scope: ScopeId, lexing: Longest },
}

/// Tokens by id or by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSet {
    pub items: Box<[TokenItem]>,
    /// All tokens but these. Those that end the output never belong to it.
    pub exclude: bool,
    pub place: Option<Place>,
}

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
    Value(u64),
    /// That of the rule around.
    Same,
    /// That of the rule around, changed.
    Changed(Change),
}

/// A run of bits of the parameter, from the lowest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitRange {
    pub start: u8,
    pub length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The run counts one more, and stays at its largest value.
    Increment(BitRange),
    /// The run counts one less, and stays at zero.
    Decrement(BitRange),
    SetBit(u8),
    ClearBit(u8),
    And(u64),
    Or(u64),
}

/// A condition on the parameter of the rule around.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    True,
    BitSet(u8),
    BitClear(u8),
    Compare { of: Operand, comparison: Comparison, with: u64 },
    And(Arc<[Condition]>),
    Or(Arc<[Condition]>),
    Not(Arc<Condition>),
}

/// A number that the parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    Value(BitRange),
    /// How many bits of the run are set.
    Count(BitRange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How one of several lexemes ends that compete for the longest match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Longest {
    Greedy,
    Lazy,
    /// As a greedy one. It may only come where another lexeme of the scope could, or a token or a
    /// JSON value.
    Ignored,
}

#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name in the source.
    pub name: Arc<str>,
    pub place: Option<Place>,
    pub body: Option<NodeId>,
}

/// A JSON Schema within a grammar.
#[derive(Clone, Debug)]
pub struct Json {
    pub schema: Arc<str>,
    pub place: Option<Place>,
    /// As the options of the grammar say where it says nothing.
    pub whitespace: Option<Whitespace>,
}

/// A piece of text that the matcher reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub kind: SpanKind,
    /// The name of a capture, or of the tool, where it is known beforehand.
    pub name: Arc<str>,
    pub part: SpanPart,
}

/// How much of the text is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpanPart {
    #[default]
    Whole,
    /// The part before its ending. The ending is the shortest text of its language that ends the
    /// whole and follows a text of the body's language.
    Body { body: Ast, ending: Ast },
    /// Only that ending.
    Ending { body: Ast, ending: Ast },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    Capture,
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
    ids: rustc_hash::FxHashMap<Node, NodeId>,
    pub rules: Vec<Rule>,
    pub json: Vec<Json>,
    pub spans: Vec<Span>,
    pub sources: Vec<Source>,
    /// Rules of the sources that are not among `rules`, as nothing needs them.
    pub unused: Vec<UnusedRule>,
    num_scopes: u32,
    /// The start of a text.
    pub start: Option<NodeId>,
}

/// How many nodes and rules a grammar may have.
pub const MAX_NODES: usize = 4_000_000;

impl Grammar {
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn num_scopes(&self) -> u32 {
        self.num_scopes
    }

    /// Interns a node whose children are of this grammar.
    pub fn add(&mut self, node: Node) -> Result<NodeId, LimitExceeded> {
        if let Some(&known) = self.ids.get(&node) {
            return Ok(known);
        }
        meter::charge(1)?;
        if self.nodes.len() >= MAX_NODES {
            return Err(LimitExceeded::new("grammar_nodes", MAX_NODES));
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        Ok(id)
    }

    /// Puts a text that no lexeme can take behind some of those that end at their longest match,
    /// wherever they stand. Nothing is added to the grammar after that.
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

    /// One after the other; one alone is itself.
    pub fn seq(&mut self, parts: Vec<NodeId>) -> Result<NodeId, LimitExceeded> {
        match parts[..] {
            [one] => Ok(one),
            _ => self.add(Node::Seq(parts.into())),
        }
    }

    /// Any of these; repeated ones count once, and one alone is itself.
    pub fn choice(&mut self, mut parts: Vec<NodeId>) -> Result<NodeId, LimitExceeded> {
        let mut seen = rustc_hash::FxHashSet::default();
        parts.retain(|&part| seen.insert(part));
        match parts[..] {
            [one] => Ok(one),
            _ => self.add(Node::Choice(parts.into())),
        }
    }

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

    pub fn define(&mut self, rule: RuleId, body: NodeId) {
        self.rules[rule.0 as usize].body = Some(body);
    }

    pub fn rule(&mut self, rule: RuleId) -> Result<NodeId, LimitExceeded> {
        self.add(Node::Rule(rule, Argument::None))
    }

    pub fn json(&mut self, schema: &str, place: Option<Place>) -> Result<NodeId, LimitExceeded> {
        self.json_with(schema, place, None)
    }

    /// With white space of its own.
    pub fn json_with(
        &mut self,
        schema: &str,
        place: Option<Place>,
        whitespace: Option<Whitespace>,
    ) -> Result<NodeId, LimitExceeded> {
        self.json.push(Json { schema: schema.into(), place, whitespace });
        self.add(Node::Json(JsonId(self.json.len() as u32 - 1)))
    }

    pub fn span(
        &mut self,
        kind: SpanKind,
        name: &str,
        inner: NodeId,
    ) -> Result<NodeId, LimitExceeded> {
        self.span_part(kind, name, SpanPart::Whole, inner)
    }

    pub fn span_part(
        &mut self,
        kind: SpanKind,
        name: &str,
        part: SpanPart,
        inner: NodeId,
    ) -> Result<NodeId, LimitExceeded> {
        self.spans.push(Span { kind, name: name.into(), part });
        self.add(Node::Span(SpanId(self.spans.len() as u32 - 1), inner))
    }

    pub fn limit(&mut self, max_tokens: u32, inner: NodeId) -> Result<NodeId, LimitExceeded> {
        self.add(Node::Limit { max_tokens, inner })
    }

    pub fn add_source(&mut self, kind: &'static str, text: &str) -> SourceId {
        self.sources.push(Source { kind, text: text.into() });
        SourceId(self.sources.len() as u32 - 1)
    }
}

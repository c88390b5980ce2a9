//! `GrammarBuilder`: grammars that Python assembles node by node.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use super::limits::PyCompileMeter;
use super::released::Released;
use super::writing::WritingArgument;
use super::{errors, pattern};
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::Node;
use ffwd_grammar::{ebnf, gbnf, lark};
use ffwd_grammar::{
    free_text, regular, Grammar, GrammarError, NodeId, RuleId, SpanKind, TokenItem, TokenSet,
    UnusedRule,
};
use ffwd_json_schema::formats;
use ffwd_regular::regex::{ecma, substring_of, Ast};

/// A token: an id, an inclusive range of ids, or a name.
#[derive(FromPyObject)]
enum TokenArgument {
    Id(u32),
    Ids(u32, u32),
    Name(String),
}

impl From<TokenArgument> for TokenItem {
    fn from(token: TokenArgument) -> Self {
        match token {
            TokenArgument::Id(id) => Self::Ids(id, id),
            TokenArgument::Ids(first, last) => Self::Ids(first, last),
            TokenArgument::Name(name) => Self::Named(name.into()),
        }
    }
}

/// The name of a rule, its notation, and the line and column of its definition; the last is missing
/// for a rule assembled in Python.
type Unused = (String, &'static str, Option<(usize, usize)>);

/// A grammar under construction.
///
/// Each method adds a node and returns its number; equal nodes have equal numbers.
#[pyclass(name = "GrammarBuilder", module = "ffwd._native")]
pub struct PyGrammarBuilder {
    pub grammar: Grammar,
    /// The budget of the whole compilation.
    meter: Py<PyCompileMeter>,
}

impl PyGrammarBuilder {
    fn node(&self, id: u32) -> PyResult<NodeId> {
        if (id as usize) < self.grammar.num_nodes() {
            return Ok(NodeId(id));
        }
        Err(PyIndexError::new_err(format!("the grammar has no node {id}")))
    }

    fn nodes(&self, ids: Vec<u32>) -> PyResult<Vec<NodeId>> {
        ids.into_iter().map(|id| self.node(id)).collect()
    }

    /// Returns the language of a node, which must be regular.
    pub fn language(&self, py: Python<'_>, id: u32) -> PyResult<Ast> {
        let id = self.node(id)?;
        let meter = self.meter.get();
        let language = py.released(|| meter.run(|| regular::language(&self.grammar, id)));
        language.map_err(|error| errors::grammar(py, &error))
    }

    /// Counts the bytes of a text before it is read.
    fn read(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        self.meter.get().read(py, bytes)
    }

    fn known_rule(&self, id: u32) -> PyResult<RuleId> {
        if (id as usize) < self.grammar.rules.len() {
            return Ok(RuleId(id));
        }
        Err(PyIndexError::new_err(format!("the grammar has no rule {id}")))
    }
}

impl PyGrammarBuilder {
    /// Returns the grammar with a node as its start.
    pub fn starting(&self, node: u32) -> PyResult<Grammar> {
        let mut grammar = self.grammar.clone();
        grammar.start = Some(self.node(node)?);
        Ok(grammar)
    }

    /// Copies the nodes of a grammar that was parsed from a text.
    fn included(
        &mut self,
        py: Python<'_>,
        parse: impl FnOnce() -> Result<Grammar, GrammarError> + Send,
    ) -> PyResult<u32> {
        let grammar = &mut self.grammar;
        let meter = self.meter.get();
        let node = py.released(|| {
            meter.run(|| {
                let read = parse()?;
                Ok(match grammar.include(&read)? {
                    Some(node) => node,
                    // A grammar without a start accepts no text.
                    None => grammar.choice(Vec::new())?,
                })
            })
        });
        node.map(|node| node.0).map_err(|error| errors::grammar(py, &error))
    }
}

fn added(py: Python<'_>, node: Result<NodeId, LimitExceeded>) -> PyResult<u32> {
    node.map(|node| node.0).map_err(|limit| errors::limit(py, &limit))
}

#[pymethods]
impl PyGrammarBuilder {
    #[new]
    #[pyo3(signature = (meter=None))]
    fn new(py: Python<'_>, meter: Option<Py<PyCompileMeter>>) -> PyResult<Self> {
        let meter = meter.map_or_else(|| Py::new(py, PyCompileMeter::default()), Ok)?;
        Ok(Self { grammar: Grammar::default(), meter })
    }

    /// Add a verbatim text.
    fn text(&mut self, py: Python<'_>, text: &str) -> PyResult<u32> {
        self.read(py, text.len())?;
        added(py, self.grammar.text(Ast::literal(text)))
    }

    /// Add a choice between texts.
    fn texts(&mut self, py: Python<'_>, texts: Vec<String>) -> PyResult<u32> {
        self.read(py, texts.iter().map(String::len).sum())?;
        let language = Ast::alternation(texts.iter().map(|text| Ast::literal(text)));
        added(py, self.grammar.text(language))
    }

    /// Add the texts that a pattern matches; see [`pattern::read`].
    #[pyo3(signature = (pattern, *, dialect="rust", flags="", search=false, characters=Vec::new()))]
    fn regex(
        &mut self,
        py: Python<'_>,
        pattern: &str,
        dialect: &str,
        flags: &str,
        search: bool,
        characters: Vec<(String, char)>,
    ) -> PyResult<u32> {
        self.read(py, pattern.len())?;
        let language = pattern::read(py, pattern, dialect, flags, search, characters)?;
        added(py, self.grammar.text(language))
    }

    /// Add any run of adjacent chunks of a text.
    fn substring(&mut self, py: Python<'_>, chunks: Vec<String>) -> PyResult<u32> {
        self.read(py, chunks.iter().map(String::len).sum())?;
        let language = py.released(|| substring_of(&chunks));
        added(py, self.grammar.text(language))
    }

    /// Add the intersection of the languages of nodes.
    fn intersection(&mut self, py: Python<'_>, parts: Vec<u32>) -> PyResult<u32> {
        let languages: Vec<Ast> =
            parts.into_iter().map(|part| self.language(py, part)).collect::<PyResult<_>>()?;
        added(py, self.grammar.text(Ast::intersection(languages)))
    }

    /// Add the complement of a node's language.
    fn complement(&mut self, py: Python<'_>, inner: u32) -> PyResult<u32> {
        let language = self.language(py, inner)?;
        added(py, self.grammar.text(Ast::complement(language)))
    }

    /// Add any text with this ending that contains none of the excluded texts.
    #[pyo3(signature = (excluding, *, ending="", max_chars=None))]
    fn any_text(
        &mut self,
        py: Python<'_>,
        excluding: Vec<String>,
        ending: &str,
        max_chars: Option<u32>,
    ) -> PyResult<u32> {
        added(py, self.grammar.text(free_text::any_text(&excluding, ending, max_chars)))
    }

    /// Add any text up to the first end of a stop.
    #[pyo3(signature = (stops, excluding, *, max_chars=None))]
    fn text_until(
        &mut self,
        py: Python<'_>,
        stops: Vec<String>,
        excluding: Vec<String>,
        max_chars: Option<u32>,
    ) -> PyResult<u32> {
        added(py, self.grammar.text(free_text::text_until(&stops, &excluding, max_chars)))
    }

    /// Add any text up to a trigger that comes before the other triggers.
    fn up_to_trigger(
        &mut self,
        py: Python<'_>,
        trigger: &str,
        triggers: Vec<String>,
        excluding: Vec<String>,
    ) -> PyResult<u32> {
        added(py, self.grammar.text(free_text::up_to_trigger(trigger, &triggers, &excluding)))
    }

    /// Add a grammar in Lark's notation.
    fn lark(&mut self, py: Python<'_>, text: &str) -> PyResult<u32> {
        self.read(py, text.len())?;
        self.included(py, || lark::parse(text))
    }

    /// Add a grammar in llama.cpp's notation (GBNF).
    #[pyo3(signature = (text, root="root"))]
    fn gbnf(&mut self, py: Python<'_>, text: &str, root: &str) -> PyResult<u32> {
        self.read(py, text.len())?;
        self.included(py, || gbnf::parse(text, root))
    }

    /// Add a grammar in XGrammar's dialect of EBNF.
    #[pyo3(signature = (text, root="root"))]
    fn ebnf(&mut self, py: Python<'_>, text: &str, root: &str) -> PyResult<u32> {
        self.read(py, text.len())?;
        self.included(py, || ebnf::parse(text, root))
    }

    /// Add a verbatim text with JSON Schema's constraints on strings.
    ///
    /// These are bounds on its characters, patterns, formats, excluded substrings and excluded
    /// texts.
    #[pyo3(signature = (*, excluding, other_than, patterns, formats, min_chars=0, max_chars=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn string(
        &mut self,
        py: Python<'_>,
        excluding: Vec<String>,
        other_than: Vec<String>,
        patterns: Vec<String>,
        formats: Vec<String>,
        min_chars: u32,
        max_chars: Option<u32>,
    ) -> PyResult<u32> {
        let texts = excluding.iter().chain(&other_than).chain(&patterns).map(String::len);
        self.read(py, texts.sum())?;
        let mut parts = vec![free_text::any_text(&excluding, "", None)];
        for pattern in &patterns {
            let language = py.released(|| ecma::search(pattern));
            parts.push(language.map_err(|error| errors::pattern(py, pattern, &error))?);
        }
        // JSON Schema ignores unknown formats.
        parts.extend(formats.iter().filter_map(|name| formats::format(name)));
        parts.push(free_text::characters(min_chars, max_chars));
        let others = other_than.iter().map(|text| Ast::literal(text));
        parts.push(Ast::complement(Ast::alternation(others)));
        added(py, self.grammar.text(Ast::intersection(parts)))
    }

    /// Add the JSON values that are valid against a schema, given as JSON text.
    ///
    /// They have the white space of `writing`; all other options are those of the whole grammar.
    #[pyo3(signature = (schema, *, writing))]
    fn json_schema(
        &mut self,
        py: Python<'_>,
        schema: &str,
        writing: WritingArgument,
    ) -> PyResult<u32> {
        self.read(py, schema.len())?;
        let WritingArgument(options) = writing;
        added(py, self.grammar.json_with(schema, None, Some(options.writing.whitespace)))
    }

    /// Add one of these tokens, or, with `exclude`, any other token.
    #[pyo3(signature = (items, *, exclude=false))]
    fn tokens(
        &mut self,
        py: Python<'_>,
        items: Vec<TokenArgument>,
        exclude: bool,
    ) -> PyResult<u32> {
        let items = items.into_iter().map(TokenItem::from).collect();
        let tokens = TokenSet { items, exclude, place: None };
        added(py, self.grammar.add(Node::Tokens(tokens.into())))
    }

    /// Add a sequence of nodes.
    fn seq(&mut self, py: Python<'_>, parts: Vec<u32>) -> PyResult<u32> {
        let parts = self.nodes(parts)?;
        added(py, self.grammar.seq(parts))
    }

    /// Add a choice between nodes.
    fn choice(&mut self, py: Python<'_>, parts: Vec<u32>) -> PyResult<u32> {
        let parts = self.nodes(parts)?;
        added(py, self.grammar.choice(parts))
    }

    /// Add a repetition of at least `min` and at most `max` times, or without an upper bound.
    #[pyo3(signature = (inner, min, max=None))]
    fn repeat(&mut self, py: Python<'_>, inner: u32, min: u32, max: Option<u32>) -> PyResult<u32> {
        if max.is_some_and(|max| max < min) {
            return Err(PyValueError::new_err("max must not be less than min"));
        }
        let inner = self.node(inner)?;
        added(py, self.grammar.repeat(inner, min, max))
    }

    /// Declare a rule and return its number; `define` sets its body.
    fn declare(&mut self, py: Python<'_>, name: &str) -> PyResult<u32> {
        let rule = self.grammar.declare(name, None);
        rule.map(|rule| rule.0).map_err(|limit| errors::limit(py, &limit))
    }

    /// Set the body of a declared rule.
    fn define(&mut self, rule: u32, body: u32) -> PyResult<()> {
        let (rule, body) = (self.known_rule(rule)?, self.node(body)?);
        self.grammar.define(rule, body);
        Ok(())
    }

    /// Add a reference to a rule.
    fn rule(&mut self, py: Python<'_>, rule: u32) -> PyResult<u32> {
        let rule = self.known_rule(rule)?;
        added(py, self.grammar.rule(rule))
    }

    /// Add a span around a node, reported as `kind` under a name.
    fn span(&mut self, py: Python<'_>, kind: &str, name: &str, inner: u32) -> PyResult<u32> {
        let kind = match kind {
            "capture" => SpanKind::Capture,
            "reasoning" => SpanKind::Reasoning,
            "content" => SpanKind::Content,
            "tool_call" => SpanKind::ToolCall,
            "tool_name" => SpanKind::ToolName,
            "tool_arguments" => SpanKind::ToolArguments,
            "json" => SpanKind::Json,
            other => return Err(PyValueError::new_err(format!("no kind of span is {other:?}"))),
        };
        let inner = self.node(inner)?;
        added(py, self.grammar.span(kind, name, inner))
    }

    /// Add a limit on the tokens of a node.
    fn limit(&mut self, py: Python<'_>, inner: u32, max_tokens: u32) -> PyResult<u32> {
        let inner = self.node(inner)?;
        added(py, self.grammar.limit(max_tokens, inner))
    }

    fn __repr__(&self) -> String {
        format!("GrammarBuilder(nodes={})", self.grammar.num_nodes())
    }

    /// Return the rules that a node does not need.
    fn unused_rules(&self, py: Python<'_>, node: u32) -> PyResult<Vec<Unused>> {
        let node = self.node(node)?;
        let grammar = &self.grammar;
        Ok(py.released(|| {
            let unused = grammar.unused_rules(node);
            let positions = grammar.positions(&unused);
            let described = |(rule, position): (UnusedRule, Option<_>)| match position {
                Some((notation, line, column)) => {
                    (rule.name.to_string(), notation, Some((line, column)))
                }
                None => (rule.name.to_string(), "Python", None),
            };
            unused.into_iter().zip(positions).map(described).collect()
        }))
    }
}

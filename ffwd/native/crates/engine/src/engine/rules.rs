//! Compilation of grammars of rules.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{culprit, CompileError, Compiled, Engine, Recipe};
use ffwd_automaton::{after_values, Swallowing};
use ffwd_automaton::{
    Grammar as AutomatonGrammar, Leaf, Program, RuleSchemas, Whitespace, Writing,
};
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::graph::{Expansion, Graph, LeafFacts};
use ffwd_grammar::symbols::Symbols;
use ffwd_grammar::{
    fold_regular, recursive_marks, Described, Grammar, GrammarError, GrammarErrorKind, JsonId,
    Live, Node, NodeId, Span, TokenItem, TokenSet,
};
use ffwd_json_schema::{Parsing, SchemaError, SchemaSet};
use ffwd_regular::expr::Outline;
use ffwd_regular::regex::Ast;

/// All options of the JSON values of a grammar. Each is a field of one of the two, with its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrammarOptions {
    /// How values are written.
    pub writing: Writing,
    /// How schemas are parsed.
    pub parsing: Parsing,
}

impl From<Writing> for GrammarOptions {
    fn from(writing: Writing) -> Self {
        Self { writing, ..Self::default() }
    }
}

impl From<Whitespace> for GrammarOptions {
    fn from(whitespace: Whitespace) -> Self {
        Writing::from(whitespace).into()
    }
}

impl Engine {
    /// A text of a grammar of rules.
    ///
    /// # Errors
    /// A rule is not defined or has no text, a token is not known, a schema is not supported, or a
    /// limit is passed.
    pub fn compile_grammar(
        self: &Arc<Self>,
        grammar: &Grammar,
        options: GrammarOptions,
    ) -> Result<Compiled, CompileError> {
        let mut folded = grammar.clone();
        fold_regular(&mut folded).map_err(GrammarError::from)?;
        self.compile_folded(&folded, options)
    }

    /// Compiles a grammar whose lexemes are folded. Folding them once more may give another grammar,
    /// because rules are used less often then.
    pub(super) fn compile_folded(
        self: &Arc<Self>,
        grammar: &Grammar,
        options: GrammarOptions,
    ) -> Result<Compiled, CompileError> {
        let known = options.clone();
        let compiled = self.compile_as_it_is(grammar, options, false, Expansion::AsNeeded);
        match compiled {
            Err(CompileError::Grammar(error)) if error.kind == GrammarErrorKind::Swallowed => {
                let culprit = culprit::find(self, grammar, &known);
                Err(culprit.map_or(error, |node| culprit::error(grammar, node)).into())
            }
            compiled => compiled,
        }
    }

    /// Compiles a grammar without folding its lexemes. `eager_rows`: see [`Program`].
    pub(super) fn compile_as_it_is(
        self: &Arc<Self>,
        grammar: &Grammar,
        options: GrammarOptions,
        eager_rows: bool,
        expansion: Expansion,
    ) -> Result<Compiled, CompileError> {
        let mut leaves: FxHashMap<NodeId, Leaf> = FxHashMap::default();
        let mut schemas: Vec<JsonId> = Vec::new();
        let shared = Arc::new(grammar.clone());
        let at = |node: NodeId| {
            move |limit: LimitExceeded| {
                let Described { rule, place } = grammar.described(node);
                let rule = rule.map_or_else(String::new, |rule| format!(" (in the rule `{rule}`)"));
                let message = format!("{limit}{rule}");
                GrammarError { kind: GrammarErrorKind::Limit(limit), message, place }
            }
        };
        let expanded = Graph::expanded(&shared, expansion, |node| match grammar.node(node) {
            Node::Lexeme(lexeme) => {
                let Outline { mut alive, nullable, .. } =
                    self.lexemes.outline(&lexeme.language).map_err(at(node))?;
                let language = match nullable {
                    true => without_empty(&lexeme.language),
                    false => lexeme.language.clone(),
                };
                if nullable {
                    alive = self.lexemes.outline(&language).map_err(at(node))?.alive;
                }
                leaves.insert(node, Leaf::Lexeme { language, lexing: lexeme.lexing });
                Ok(LeafFacts { alive, nullable })
            }
            Node::Tokens(set) => {
                let ranges = self.token_ranges(grammar, set)?;
                let alive = !ranges.is_empty();
                leaves.insert(node, Leaf::Tokens(ranges.into()));
                Ok(LeafFacts { alive, nullable: false })
            }
            &Node::Json(json) => {
                // With parameters a leaf may be requested twice.
                leaves.entry(node).or_insert_with(|| {
                    schemas.push(json);
                    Leaf::Json(schemas.len() - 1)
                });
                Ok(LeafFacts { alive: true, nullable: false })
            }
            _ => Ok(LeafFacts { alive: false, nullable: false }),
        })?;
        let limits = (0..grammar.num_nodes() as u32).map(NodeId).filter_map(|node| match *grammar
            .node(node)
        {
            Node::Limit { max_tokens, .. } => Some((node, max_tokens)),
            _ => None,
        });
        let limits: FxHashMap<NodeId, u32> = limits.collect();
        if !limits.is_empty() {
            if let Some(node) =
                recursive_marks(&expanded.graph).iter().find(|&node| limits.contains_key(node))
            {
                let what = "a limit of tokens on a part that can begin with itself";
                let kind = GrammarErrorKind::Unsupported(what);
                let place = grammar.described(*node);
                let message = format!("{what} is not supported: {place}");
                return Err(GrammarError { kind, message, place: place.place }.into());
            }
        }
        let symbols = Arc::new(Symbols::of_expanded(&expanded).map_err(GrammarError::from)?);
        Live::new(symbols.clone()).check()?;
        let recipe = Recipe::Rules { grammar: shared.clone(), options: options.clone() };
        let json = if schemas.is_empty() {
            None
        } else {
            let texts: Vec<&str> =
                schemas.iter().map(|id| &*grammar.json[id.0 as usize].schema).collect();
            let (schema, roots) = SchemaSet::parse_all(&texts, self.schema_options(&options))
                .map_err(|error| schema_error(grammar, &schemas, error))?;
            let writing = options.writing;
            let own = |id: &JsonId| grammar.json[id.0 as usize].whitespace.clone();
            let whitespaces =
                schemas.iter().map(|id| own(id).unwrap_or_else(|| writing.whitespace.clone()));
            let roots = roots.into_iter().zip(whitespaces).collect();
            Some(RuleSchemas { schema: Box::new(schema), roots, writing })
        };
        // The search for reported parts uses rows, so they must exist.
        let eager_rows = eager_rows || !limits.is_empty() || symbols.has_values();
        let spans = spans_of(grammar, &expanded.graph);
        let after_values =
            after_values(&symbols, &leaves, &self.lexemes).map_err(GrammarError::from)?;
        let swallowing = Swallowing::of(&symbols, &leaves, &self.lexemes);
        let swallowing = swallowing.map_err(GrammarError::from)?;
        let program =
            Program { symbols, leaves, spans, limits, eager_rows, swallowing, after_values };
        let program = Arc::new(program);
        self.compile(AutomatonGrammar::Rules { program, json }, recipe, "the grammar")
    }

    /// The ids of a set of tokens, without those that end the output.
    fn token_ranges(
        &self,
        grammar: &Grammar,
        set: &TokenSet,
    ) -> Result<Vec<(u32, u32)>, GrammarError> {
        let vocabulary = &self.vocabulary;
        let width = vocabulary.width() as u32;
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let unknown = |message: String| {
            GrammarError::of(grammar, set.place, GrammarErrorKind::UnknownToken, message)
        };
        for item in &set.items {
            match item {
                &TokenItem::Ids(first, last) => {
                    if first > last || last >= width {
                        return Err(unknown(format!(
                            "the tokens {first} to {last} are not all in the vocabulary of {width}"
                        )));
                    }
                    ranges.push((first, last));
                }
                TokenItem::Named(name) => match vocabulary.named(name) {
                    Some(token) => ranges.push((token.0, token.0)),
                    None => {
                        return Err(unknown(format!(
                            "the vocabulary has no token {name:?}: name a special token of the \
                             tokenizer, or give its id as <[id]>"
                        )))
                    }
                },
            }
        }
        ranges.extend(vocabulary.eos().iter().filter(|_| set.exclude).map(|eos| (eos.0, eos.0)));
        ranges.sort_unstable();
        let mut taken: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match taken.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                _ => taken.push((first, last)),
            }
        }
        if !set.exclude {
            let mut kept = Vec::with_capacity(taken.len());
            for (first, last) in taken {
                let mut from = first;
                let ends = vocabulary.eos().iter().map(|eos| eos.0);
                let mut ends: Vec<u32> = ends.filter(|eos| (first..=last).contains(eos)).collect();
                ends.sort_unstable();
                for eos in ends {
                    if eos > from {
                        kept.push((from, eos - 1));
                    }
                    from = eos + 1;
                }
                if from <= last {
                    kept.push((from, last));
                }
            }
            return Ok(kept);
        }
        let mut left = Vec::with_capacity(taken.len() + 1);
        let mut from = 0;
        for (first, last) in taken {
            if first > from {
                left.push((from, first - 1));
            }
            from = last + 1;
        }
        if from < width {
            left.push((from, width - 1));
        }
        Ok(left)
    }
}

/// The error of one of the schemas of a grammar, with the place of the schema if it is known.
fn schema_error(grammar: &Grammar, schemas: &[JsonId], error: SchemaError) -> CompileError {
    let index = error.part().map_or(0, |number| number.saturating_sub(1));
    let place = schemas.get(index).and_then(|id| grammar.json[id.0 as usize].place);
    match place.and_then(|place| grammar.excerpt(place)) {
        Some((source_kind, excerpt)) => {
            CompileError::Schema { error: Box::new(error), source_kind, excerpt }
        }
        None => error.into(),
    }
}

/// The parts of a grammar that are reported, by their nodes.
fn spans_of(grammar: &Grammar, graph: &Graph) -> FxHashMap<NodeId, Span> {
    let spans = graph.marked.iter().copied().filter_map(|node| match grammar.node(node) {
        Node::Span(span, _) => Some((node, grammar.spans.get(span.0 as usize)?.clone())),
        _ => None,
    });
    spans.collect()
}

/// The texts of a language that are not empty.
fn without_empty(language: &Ast) -> Ast {
    match language {
        Ast::Epsilon => Ast::Empty,
        Ast::Alternation(parts) => Ast::alternation(parts.iter().map(without_empty)),
        Ast::Class(_) | Ast::Literal(_) | Ast::Empty => language.clone(),
        Ast::Repeat { inner, min: 0, max }
            if matches!(**inner, Ast::Class(_) | Ast::Literal(_)) =>
        {
            Ast::repeat(Ast::clone(inner), 1, *max)
        }
        _ => {
            let some = Ast::repeat(Ast::Class(ffwd_regular::regex::CharClass::any()), 1, None);
            Ast::intersection([language.clone(), some])
        }
    }
}

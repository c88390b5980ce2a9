//! Translates a syntax tree to the grammar that is compiled.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ast::{Atom, Definition, Item, Value};
use super::definitions::{Definitions, Named};
use super::fault::{Fault, SOURCE};
use super::language::{Language, Languages};
use super::terminals::Terminals;
use super::Grammars;
use crate::{
    Grammar, GrammarErrorKind, NodeId, Place, RuleId, ScopeId, SourceId, SpanKind, SpanPart,
    UnusedRule,
};
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::Ast;

/// How many elements of rules are read; those of templates count for each use.
const MAX_ELEMENTS: usize = 4_000_000;
/// How many uses of templates with different values there may be.
const MAX_INSTANCES: usize = 100_000;

/// The shared state of a grammar and those that are nested in it.
pub(super) struct Lowering<'t, 'o> {
    pub grammar: Grammar,
    pub languages: Languages<'t>,
    source: SourceId,
    /// Grammars that ignore the same share their lexemes.
    scopes: FxHashMap<Option<Ast>, ScopeId>,
    pub others: &'o Grammars<'o>,
    pub included: FxHashMap<&'t str, NodeId>,
    elements: usize,
    instances: usize,
}

/// One grammar, or one that is nested.
pub(super) struct Scope<'g, 't> {
    pub definitions: Definitions<'g, 't>,
    pub terminals: Terminals<'t>,
    id: ScopeId,
    /// The ignored part between two terminals.
    skip: Option<NodeId>,
    /// The nodes of terminals that rules use.
    lexemes: FxHashMap<&'t str, NodeId>,
    /// The nodes of patterns that stand in rules, by pattern and flags.
    pub patterns: FxHashMap<(&'t str, &'t str), NodeId>,
    rules: FxHashMap<&'t str, RuleId>,
    /// Instances of templates by the arguments of their placeholders.
    instances: FxHashMap<(&'t str, Vec<NodeId>), RuleId>,
    pending: VecDeque<Pending<'g, 't>>,
}

/// A rule that is used and whose body is still to be read.
struct Pending<'g, 't> {
    rule: RuleId,
    definition: &'g Definition<'t>,
    values: Vec<NodeId>,
}

/// The rule around a place.
pub(super) struct Around<'a, 't> {
    pub definition: &'a Definition<'t>,
    /// The arguments of its placeholders.
    pub values: &'a [NodeId],
}

impl<'g, 't: 'g, 'o> Lowering<'t, 'o> {
    pub fn new(text: &str, others: &'o Grammars<'o>) -> Self {
        let mut grammar = Grammar::new();
        let source = grammar.add_source(SOURCE, text);
        Self {
            grammar,
            languages: Languages::default(),
            source,
            scopes: FxHashMap::default(),
            others,
            included: FxHashMap::default(),
            elements: 0,
            instances: 0,
        }
    }

    pub fn place(&self, at: usize) -> Place {
        Place { source: self.source, offset: at as u32 }
    }

    /// Counts one more element.
    pub fn count(&mut self, at: usize) -> Result<(), Fault> {
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            let limit = LimitExceeded::new("lark_elements", MAX_ELEMENTS);
            return Err(Fault::limit(at, limit));
        }
        Ok(())
    }

    /// The start of the grammar of these items, which begins at a byte.
    pub fn items(&mut self, at: usize, items: &'g [Item<'t>]) -> Result<NodeId, Fault> {
        let definitions = Definitions::new(items)?;
        let mut terminals = Terminals::default();
        let mut ignored = Vec::with_capacity(definitions.ignored.len());
        for choice in &definitions.ignored {
            ignored.push(terminals.inline(&definitions, &mut self.languages, choice)?);
        }
        let ignored = match ignored.len() {
            0 => None,
            _ => Some(self.languages.choice(at, ignored)?.ast),
        };
        let limit = |limit| Fault::limit(at, limit);
        let id = match self.scopes.get(&ignored) {
            Some(&known) => known,
            None => {
                let id = self.grammar.add_scope();
                self.scopes.insert(ignored.clone(), id);
                id
            }
        };
        let mut skip = None;
        if let Some(language) = ignored {
            let most = if definitions.options.skip_once { Some(1) } else { None };
            let one = self.grammar.ignored(language, id).map_err(limit)?;
            skip = Some(self.grammar.repeat(one, 0, most).map_err(limit)?);
        }
        let initial = skip.filter(|_| definitions.options.initial_skip);
        let mut scope = Scope {
            definitions,
            terminals,
            id,
            skip,
            lexemes: FxHashMap::default(),
            patterns: FxHashMap::default(),
            rules: FxHashMap::default(),
            instances: FxHashMap::default(),
            pending: VecDeque::new(),
        };
        let start = self.start(&mut scope, at)?;
        while let Some(pending) = scope.pending.pop_front() {
            let body = self.body(&mut scope, &pending)?;
            self.grammar.define(pending.rule, body);
        }
        for (name, at) in scope.unused() {
            let place = Some(self.place(at));
            self.grammar.unused.push(UnusedRule { name: name.into(), place });
        }
        match initial {
            Some(skip) => self.grammar.seq(vec![skip, start]).map_err(limit),
            None => Ok(start),
        }
    }

    fn start(&mut self, scope: &mut Scope<'g, 't>, at: usize) -> Result<NodeId, Fault> {
        match scope.definitions.names.get("start") {
            Some(&Named::Rule(rule)) if rule.parametric || !rule.placeholders.is_empty() => {
                let message = "the rule `start` can neither have a parameter nor be a template";
                Err(Fault::syntax(rule.at, message))
            }
            Some(&Named::Rule(rule)) => {
                let start = self.rule(scope, rule, Vec::new())?;
                self.grammar.rule(start).map_err(|limit| Fault::limit(at, limit))
            }
            _ => {
                let message = "there is no rule `start`, which says what the whole text is";
                Err(Fault::new(at, GrammarErrorKind::UnknownRule, message))
            }
        }
    }

    /// Returns the rule of a definition, with the arguments of its placeholders.
    pub fn rule(
        &mut self,
        scope: &mut Scope<'g, 't>,
        definition: &'g Definition<'t>,
        values: Vec<NodeId>,
    ) -> Result<RuleId, Fault> {
        let template = !definition.placeholders.is_empty();
        let known = if template {
            scope.instances.get(&(definition.name, values.clone()))
        } else {
            scope.rules.get(definition.name)
        };
        if let Some(&known) = known {
            return Ok(known);
        }
        let limit = |limit| Fault::limit(definition.at, limit);
        let place = self.place(definition.at);
        let rule = self.grammar.declare(definition.name, Some(place)).map_err(limit)?;
        if template {
            self.instances += 1;
            if self.instances > MAX_INSTANCES {
                return Err(limit(LimitExceeded::new("template_uses", MAX_INSTANCES)));
            }
            scope.instances.insert((definition.name, values.clone()), rule);
        } else {
            scope.rules.insert(definition.name, rule);
        }
        scope.pending.push_back(Pending { rule, definition, values });
        Ok(rule)
    }

    /// A lexeme and the ignored text that may follow it.
    pub fn lexeme(
        &mut self,
        scope: &Scope<'g, 't>,
        at: usize,
        language: Language,
    ) -> Result<NodeId, Fault> {
        let lexeme = self.grammar.terminal(language.ast, scope.id, false);
        self.skipping(scope, at, lexeme.map_err(|limit| Fault::limit(at, limit))?)
    }

    /// A node, and the ignored text that may follow it.
    pub fn skipping(
        &mut self,
        scope: &Scope<'g, 't>,
        at: usize,
        node: NodeId,
    ) -> Result<NodeId, Fault> {
        match scope.skip {
            Some(skip) => {
                self.grammar.seq(vec![node, skip]).map_err(|limit| Fault::limit(at, limit))
            }
            None => Ok(node),
        }
    }

    pub fn ignores(scope: &Scope<'g, 't>) -> bool {
        scope.skip.is_some()
    }

    /// Returns a terminal that a rule uses: a rule of the terminal's name, for messages.
    pub fn terminal(
        &mut self,
        scope: &mut Scope<'g, 't>,
        at: usize,
        name: &'t str,
    ) -> Result<NodeId, Fault> {
        if let Some(&known) = scope.lexemes.get(name) {
            return Ok(known);
        }
        let Scope { definitions, terminals, .. } = scope;
        let language = terminals.language(definitions, &mut self.languages, at, name)?;
        let defined = match definitions.names.get(name) {
            Some(Named::Terminal(definition)) => definition.at,
            Some(&Named::Imported(_, imported)) => imported,
            _ => at,
        };
        let body = self.lexeme(scope, at, language)?;
        let limit = |limit| Fault::limit(at, limit);
        let rule = self.grammar.declare(name, Some(self.place(defined))).map_err(limit)?;
        self.grammar.define(rule, body);
        let node = self.grammar.rule(rule).map_err(limit)?;
        scope.lexemes.insert(name, node);
        Ok(node)
    }

    fn body(
        &mut self,
        scope: &mut Scope<'g, 't>,
        pending: &Pending<'g, 't>,
    ) -> Result<NodeId, Fault> {
        let definition = pending.definition;
        let attributes = &definition.attributes;
        let around = Around { definition, values: &pending.values };
        let at = definition.at;
        let limit = |limit| Fault::limit(at, limit);
        if attributes.max_tokens == Some(0) {
            return self.grammar.seq(Vec::new()).map_err(limit);
        }
        if let Some(characters) = attributes.max_chars {
            return self.shortened(scope, definition, characters);
        }
        if attributes.lazy || attributes.ending.is_some() {
            return self.ending(scope, definition);
        }
        let bounded = attributes.max_tokens.is_some() || attributes.temperature;
        let (node, lexeme) = match definition.body.only_value() {
            Some(Value::Json(_) | Value::Nested(_) | Value::Reference(_)) => {
                (self.choice(scope, &around, &definition.body)?, false)
            }
            // As in llguidance, such a body is one lexeme where it can be.
            _ if bounded && scope.is_terminal(&definition.body) => {
                let Scope { definitions, terminals, .. } = scope;
                let language =
                    terminals.inline(definitions, &mut self.languages, &definition.body)?;
                (self.grammar.terminal(language.ast, scope.id, false).map_err(limit)?, true)
            }
            _ => (self.choice(scope, &around, &definition.body)?, false),
        };
        let node = self.limited(definition, node)?;
        let node = self.captured(definition, node, SpanPart::Whole)?;
        if lexeme {
            self.skipping(scope, at, node)
        } else {
            Ok(node)
        }
    }

    /// Returns the body of a rule that ends after this many characters if it can: one lexeme.
    fn shortened(
        &mut self,
        scope: &mut Scope<'g, 't>,
        definition: &'g Definition<'t>,
        characters: u32,
    ) -> Result<NodeId, Fault> {
        let at = definition.at;
        if !scope.is_terminal(&definition.body) {
            let feature = "a limit of characters of a rule that is not regular";
            let message = format!(
                "`max_chars`: the rule `{}` can be made of strings, patterns and terminals only",
                definition.name
            );
            return Err(Fault::unsupported(at, feature, message));
        }
        let Scope { definitions, terminals, .. } = scope;
        let body = terminals.inline(definitions, &mut self.languages, &definition.body)?;
        let language = body.ast.earliest(characters);
        let lazy = definition.attributes.lazy;
        let node = self
            .grammar
            .terminal(language, scope.id, lazy)
            .map_err(|limit| Fault::limit(at, limit))?;
        let node = self.limited(definition, node)?;
        let node = self.captured(definition, node, SpanPart::Whole)?;
        self.skipping(scope, at, node)
    }

    /// The body of a rule that ends as soon as it can, or with an ending: one lexeme.
    fn ending(
        &mut self,
        scope: &mut Scope<'g, 't>,
        definition: &'g Definition<'t>,
    ) -> Result<NodeId, Fault> {
        let at = definition.at;
        let attributes = &definition.attributes;
        let Scope { definitions, terminals, .. } = scope;
        let body = terminals.inline(definitions, &mut self.languages, &definition.body)?;
        let empty =
            |value: &Value<'_>| matches!(value, Value::Text { text, .. } if text.is_empty());
        let (mut language, mut lazy, mut parts) = (body, attributes.lazy, None);
        if let Some(given) = attributes.ending.as_ref().filter(|given| !empty(&given.value)) {
            let ending = match &given.value {
                Value::Name(name) => {
                    terminals.language(definitions, &mut self.languages, given.at, name)?
                }
                value => terminals.value(&mut self.languages, given.at, value)?,
            };
            parts = Some((language.ast.clone(), ending.ast.clone()));
            language = self.languages.concat(given.at, vec![language, ending])?;
            lazy = true;
        }
        let limit = |limit| Fault::limit(at, limit);
        let node = self.grammar.terminal(language.ast, scope.id, lazy).map_err(limit)?;
        let mut node = self.limited(definition, node)?;
        let mut part = SpanPart::Whole;
        if let Some((body, ending)) = parts {
            part = SpanPart::Body { body: body.clone(), ending: ending.clone() };
            if let Some(name) = &attributes.stop_capture {
                let part = SpanPart::Ending { body, ending };
                node =
                    self.grammar.span_part(SpanKind::Capture, name, part, node).map_err(limit)?;
            }
        }
        let node = self.captured(definition, node, part)?;
        self.skipping(scope, at, node)
    }

    fn limited(&mut self, definition: &Definition<'t>, node: NodeId) -> Result<NodeId, Fault> {
        // A text has fewer tokens than the largest number.
        match definition.attributes.max_tokens.and_then(|tokens| u32::try_from(tokens).ok()) {
            None => Ok(node),
            Some(tokens) => {
                let at = definition.at;
                self.grammar.limit(tokens, node).map_err(|limit| Fault::limit(at, limit))
            }
        }
    }

    fn captured(
        &mut self,
        definition: &Definition<'t>,
        node: NodeId,
        part: SpanPart,
    ) -> Result<NodeId, Fault> {
        match &definition.attributes.capture {
            None => Ok(node),
            Some(name) => self
                .grammar
                .span_part(SpanKind::Capture, name, part, node)
                .map_err(|limit| Fault::limit(definition.at, limit)),
        }
    }
}

impl<'g, 't> Scope<'g, 't> {
    /// The unused rules and terminals by name, with their positions.
    fn unused(&self) -> Vec<(&'t str, usize)> {
        let templates: FxHashSet<&str> = self.instances.keys().map(|&(name, _)| name).collect();
        let names = self.definitions.names.iter();
        let mut unused: Vec<(&'t str, usize)> = names
            .filter_map(|(&name, named)| match named {
                Named::Rule(rule) => {
                    let used = self.rules.contains_key(name) || templates.contains(name);
                    (!used).then_some((name, rule.at))
                }
                Named::Terminal(terminal) => {
                    (!self.terminals.is_known(name)).then_some((name, terminal.at))
                }
                // Unused imports and declarations are no part of the grammar.
                Named::Imported(..) | Named::Declared => None,
            })
            .collect();
        unused.sort_unstable_by_key(|&(_, at)| at);
        unused
    }

    /// Whether a body could be that of a terminal.
    fn is_terminal(&self, choice: &super::ast::Choice<'t>) -> bool {
        choice.alternatives.iter().all(|alternative| {
            let elements = alternative.conjuncts.iter().flatten();
            alternative.condition.is_none()
                && elements.into_iter().all(|element| self.is_terminal_atom(&element.atom))
        })
    }

    fn is_terminal_atom(&self, atom: &Atom<'t>) -> bool {
        match atom {
            Atom::Group(choice) | Atom::Optional(choice) => self.is_terminal(choice),
            Atom::Not(_) => true,
            Atom::Value(Value::Name(name)) => matches!(
                self.definitions.names.get(name),
                Some(Named::Terminal(_) | Named::Imported(..)) | None
            ),
            Atom::Value(value) => matches!(
                value,
                Value::Text { .. } | Value::Range(..) | Value::Regex { .. } | Value::Substring(_)
            ),
        }
    }
}

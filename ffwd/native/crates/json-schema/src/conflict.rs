//! Why no value satisfies a schema: a smallest part of it that no value satisfies.
//!
//! Keywords are dropped, and subschemas replaced by `true`, as long as no value satisfies the rest.
//! Only changes are tried that can add values and remove none, so the remaining part contradicts
//! itself whatever stands beside it. `conflict_words` describes it.
//!
//! The search runs after the verdict, which it cannot change, with its own budget.

use rustc_hash::FxHashSet;

use super::dialect::Keyword;
use super::document::{Document, NodeId, Value};
use super::emptiness::Emptiness;
use super::error::{shortened, Result, SchemaError, SchemaErrorKind};
use super::expand::Expander;
use super::options::SchemaOptions;
use super::program::Program;
use super::reader::Features;
use super::reference::resolve;
use super::resources::Resources;
use super::satisfy::{Context, Solver};

/// The search may spend this fraction of a schema's steps.
const SHARE: u64 = 8;
/// One question may take this fraction of these.
const SHARE_OF_ONE: u64 = 2;

/// A change with which a schema accepts more.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Removes the child of a container: a keyword, a required name, a dependency.
    Drop(NodeId, NodeId),
    /// Makes a subschema accept every value.
    AcceptAll(NodeId),
}

impl Change {
    /// The node that is removed or that accepts every value.
    pub(super) fn node(self) -> NodeId {
        match self {
            Self::Drop(_, node) | Self::AcceptAll(node) => node,
        }
    }
}

/// A search for a smallest part that no value satisfies.
pub struct Conflict {
    options: SchemaOptions,
    /// The original schema, for the places of its nodes.
    pub(super) whole: Document,
    /// The remaining part of it.
    pub(super) document: Document,
    pub(super) resources: Resources,
    /// The innermost schema on the path into the document that has no value, and the value on that
    /// path that must satisfy it.
    pub(super) root: NodeId,
    pub(super) step: Option<String>,
    /// Subschemas that, by accepting less, may make the whole accept more: for example under `not`.
    tied: FxHashSet<NodeId>,
    /// Subschemas that a reference leads to, which must not be removed.
    referenced: FxHashSet<NodeId>,
    /// Lists of `required` whose names are all needed.
    settled: FxHashSet<NodeId>,
    /// Whether `unevaluatedProperties` or `unevaluatedItems` asks what others evaluate.
    evaluates: bool,
    left: u64,
    /// Whether some question is unanswered, so that the rest may not be minimal.
    pub(super) unclear: bool,
}

impl Conflict {
    /// A smallest part of a schema that no value satisfies; `None` where that takes too long.
    pub fn find(program: &Program, options: &SchemaOptions) -> Option<Self> {
        let mut whole = program.document.clone();
        whole.remove_aliases();
        let mut options = options.clone();
        options.languages = options.languages.apart();
        let left = options.limits.steps / SHARE;
        options.limits.steps = left / SHARE_OF_ONE;
        options.limits.pattern_steps = options.limits.pattern_steps.min(options.limits.steps);
        let mut conflict = Self {
            document: whole.clone(),
            resources: Resources::new(&whole, program.rules),
            whole,
            options,
            root: NodeId::ROOT,
            step: None,
            tied: FxHashSet::default(),
            referenced: FxHashSet::default(),
            settled: FxHashSet::default(),
            evaluates: false,
            left,
            unclear: false,
        };
        if !Features::of(&conflict.whole).dynamic_references {
            conflict.descend(program);
        }
        let found = conflict.survey() && conflict.is_unsatisfiable(conflict.document.clone());
        if !found {
            return None;
        }
        conflict.reduce();
        (!conflict.unclear).then_some(conflict)
    }

    /// Descends to the innermost part that must have a value and has none.
    fn descend(&mut self, program: &Program) {
        let options = &self.options;
        let mut solver = Solver::new(Expander::new(options));
        let emptiness = Emptiness { options, witnesses: &program.witnesses };
        let context = Context { program, emptiness };
        let mut has_none = |part: NodeId| {
            let id = solver.expander.id_of(program, part);
            id.is_ok_and(|id| matches!(solver.is_satisfiable(context, id), Ok(false)))
        };
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let (mut root, mut step) = (self.root, None);
        while seen.insert(root) {
            let keywords = self.keywords(root);
            let value_of = |keyword| {
                keywords.iter().find(|(other, _)| *other == keyword).map(|&(_, value)| value)
            };
            let in_place = keywords
                .iter()
                .filter(|(keyword, _)| matches!(keyword, Keyword::Reference | Keyword::AllOf));
            let mut in_place = in_place.flat_map(|&(keyword, value)| self.parts(keyword, value));
            if let Some(part) = in_place.find(|&part| has_none(part)) {
                root = part;
                continue;
            }
            let (Some(required), Some(properties)) =
                (value_of(Keyword::Required), value_of(Keyword::Properties))
            else {
                break;
            };
            let declared = self.document.members(properties);
            let members = self.document.items(required).iter().filter_map(|&name| {
                let Value::String(name) = self.document.value(name) else { return None };
                Some((name, declared.get(name)?))
            });
            let Some((name, part)) = members.into_iter().find(|&(_, part)| has_none(part)) else {
                break;
            };
            step = Some(format!("required property `{}` has no valid value", shortened(name)));
            root = part;
        }
        (self.root, self.step) = (root, step);
    }

    /// The keywords of a subschema with their values, as far as they count.
    pub(super) fn keywords(&self, schema: NodeId) -> Vec<(Keyword, NodeId)> {
        let members = self.document.members(schema);
        let resource = self.resources.around(&self.document, schema);
        let rules = self.resources.rules_of(resource);
        let known = members.iter();
        let known = known.filter_map(|(key, value)| Some((rules.keyword(key)?, value)));
        let mut known: Vec<_> = known.collect();
        if rules.dialect.reference_hides_siblings() {
            if let Some(&reference) = known.iter().find(|(word, _)| *word == Keyword::Reference) {
                known = vec![reference];
            }
        }
        known
    }

    /// The subschemas of a keyword, and what a reference leads to.
    pub(super) fn parts(&self, keyword: Keyword, value: NodeId) -> Vec<NodeId> {
        let document = &self.document;
        match (keyword, document.value(value)) {
            (Keyword::Reference, Value::String(text)) => {
                let target = resolve(document, &self.resources, keyword.name(), value, text);
                target.iter().map(|target| target.node).collect()
            }
            (
                Keyword::Dependencies
                | Keyword::DependentSchemas
                | Keyword::Properties
                | Keyword::PatternProperties,
                Value::Object(members),
            ) => {
                members.iter().map(|(_, node)| node).filter(|&node| self.is_schema(node)).collect()
            }
            (
                Keyword::AllOf
                | Keyword::AnyOf
                | Keyword::OneOf
                | Keyword::PrefixItems
                | Keyword::Items,
                Value::Array(items),
            ) => items.to_vec(),
            (
                Keyword::Not
                | Keyword::If
                | Keyword::Then
                | Keyword::Else
                | Keyword::AdditionalProperties
                | Keyword::PropertyNames
                | Keyword::UnevaluatedProperties
                | Keyword::Items
                | Keyword::AdditionalItems
                | Keyword::Contains
                | Keyword::UnevaluatedItems,
                _,
            ) => vec![value],
            _ => Vec::new(),
        }
    }

    fn is_schema(&self, node: NodeId) -> bool {
        matches!(self.document.value(node), Value::Object(_) | Value::Boolean(_))
    }

    pub(super) fn accepts_all(&self, schema: NodeId) -> bool {
        match self.document.value(schema) {
            Value::Boolean(accepts) => accepts,
            _ => self.keywords(schema).is_empty(),
        }
    }

    /// Examines the schemas that the root reaches. Returns whether the targets of references are
    /// known where they matter.
    fn survey(&mut self) -> bool {
        self.tied.clear();
        self.referenced.clear();
        let mut seen: FxHashSet<(NodeId, bool)> = FxHashSet::default();
        let mut pending = vec![(self.root, false)];
        while let Some((schema, tied)) = pending.pop() {
            if !seen.insert((schema, tied)) {
                continue;
            }
            if tied {
                self.tied.insert(schema);
            }
            let keywords = self.keywords(schema);
            let bounded = keywords.iter().any(|(word, _)| *word == Keyword::MaxContains);
            for &(keyword, value) in &keywords {
                let parts = self.parts(keyword, value);
                if keyword == Keyword::Reference {
                    self.referenced.extend(&parts);
                }
                let tied = tied
                    || match keyword {
                        Keyword::Not | Keyword::If => true,
                        Keyword::OneOf => parts.len() > 1,
                        Keyword::Contains => bounded,
                        Keyword::DynamicReference | Keyword::RecursiveReference if tied => {
                            return false;
                        }
                        Keyword::UnevaluatedProperties | Keyword::UnevaluatedItems => {
                            self.evaluates = true;
                            false
                        }
                        _ => false,
                    };
                pending.extend(parts.into_iter().map(|part| (part, tied)));
            }
        }
        true
    }

    /// Whether dropping a keyword removes no values.
    fn is_free(&self, keyword: Keyword, value: NodeId) -> bool {
        match keyword {
            // Without them, the keywords beside them would apply to more members.
            Keyword::Properties | Keyword::PatternProperties | Keyword::PrefixItems => false,
            Keyword::Items => !matches!(self.document.value(value), Value::Array(_)),
            Keyword::MinContains => {
                !matches!(self.document.value(value), Value::Number(text) if text.starts_with('0'))
            }
            _ => true,
        }
    }

    /// Whether no other keyword depends on what this one evaluates.
    fn is_apart(&self, keyword: Keyword) -> bool {
        !self.evaluates
            || !(keyword.applies_in_place()
                || matches!(
                    keyword,
                    Keyword::Then
                        | Keyword::Else
                        | Keyword::AdditionalProperties
                        | Keyword::Items
                        | Keyword::AdditionalItems
                        | Keyword::Contains
                ))
    }

    pub(super) fn whole_keywords(&self, schema: NodeId, changes: &mut Vec<Change>) {
        let keywords = self.keywords(schema);
        if matches!(keywords[..], [(Keyword::Reference, _)]) {
            // It may hide what stands beside it.
            return;
        }
        let free =
            |&&(word, value): &&(Keyword, NodeId)| self.is_free(word, value) && self.is_apart(word);
        let free = keywords.iter().filter(free);
        changes.extend(free.map(|&(_, value)| Change::Drop(schema, value)));
    }

    pub(super) fn parts_of_keywords(&self, schema: NodeId, changes: &mut Vec<Change>) {
        let keywords = self.keywords(schema);
        // Unless other names have a schema, a property that accepts every value adds nothing.
        let open = !self.evaluates
            && !keywords.iter().any(|(word, _)| *word == Keyword::AdditionalProperties);
        for (keyword, value) in keywords {
            match keyword {
                Keyword::Required if self.settled.contains(&value) => {}
                Keyword::Required => {
                    let names = self.document.items(value).iter();
                    changes.extend(names.map(|&name| Change::Drop(value, name)));
                }
                Keyword::Dependencies | Keyword::DependentRequired | Keyword::DependentSchemas
                    if self.is_apart(keyword) =>
                {
                    for (_, member) in self.document.members(value).iter() {
                        changes.push(Change::Drop(value, member));
                    }
                }
                Keyword::AllOf if !self.is_apart(keyword) => {}
                Keyword::AllOf
                | Keyword::Properties
                | Keyword::PatternProperties
                | Keyword::PrefixItems
                | Keyword::Items => {
                    let parts = self.parts(keyword, value).into_iter();
                    let parts = parts.filter(|part| !self.tied.contains(part));
                    let removable = open && keyword == Keyword::Properties;
                    changes.extend(parts.filter_map(|part| {
                        if removable && !self.referenced.contains(&part) {
                            return Some(Change::Drop(value, part));
                        }
                        (!self.accepts_all(part)).then_some(Change::AcceptAll(part))
                    }));
                }
                _ => {}
            }
        }
    }

    /// Drops what can be dropped, from the root downwards.
    pub(super) fn reduce(&mut self) {
        if self.evaluates {
            self.drop_unevaluated();
        }
        let mut level = vec![self.root];
        let mut seen: FxHashSet<NodeId> = level.iter().copied().collect();
        while !level.is_empty() && !self.unclear {
            for &schema in &level {
                if !self.is_tied(schema) {
                    self.reduce_names(schema);
                }
            }
            for collect in [Self::whole_keywords, Self::parts_of_keywords] {
                let mut changes = Vec::new();
                for &schema in level.iter().filter(|&&schema| !self.is_tied(schema)) {
                    collect(self, schema, &mut changes);
                }
                self.drop_most(&changes);
            }
            let mut next = Vec::new();
            for schema in level {
                for (keyword, value) in self.keywords(schema) {
                    let parts = self.parts(keyword, value).into_iter();
                    // Branches are explained later, each alone.
                    let alone = keyword != Keyword::AnyOf || parts.len() == 1;
                    let parts = parts.filter(|part| alone && !self.tied.contains(part));
                    next.extend(parts.filter(|&part| seen.insert(part)));
                }
            }
            level = next;
        }
    }

    pub(super) fn is_tied(&self, schema: NodeId) -> bool {
        self.tied.contains(&schema)
    }

    /// Keeps all names of a list of `required`.
    pub(super) fn settle(&mut self, names: NodeId) {
        self.settled.insert(names);
    }

    pub(super) fn charge(&mut self, effort: u64) {
        self.left = self.left.saturating_sub(effort);
    }

    /// Drops the keywords that ask what others evaluate, if these are not the reason.
    fn drop_unevaluated(&mut self) {
        let mut changes = Vec::new();
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut pending = vec![self.root];
        while let Some(schema) = pending.pop() {
            if !seen.insert(schema) || self.tied.contains(&schema) {
                continue;
            }
            for (keyword, value) in self.keywords(schema) {
                if matches!(keyword, Keyword::UnevaluatedProperties | Keyword::UnevaluatedItems) {
                    changes.push(Change::Drop(schema, value));
                }
                pending.extend(self.parts(keyword, value));
            }
        }
        self.evaluates = !self.try_without(&changes);
    }

    /// Makes as many of the changes as can be made, in halves. The first are kept back rather than
    /// the last.
    fn drop_most(&mut self, changes: &[Change]) {
        let mut pending = vec![changes];
        while let Some(changes) = pending.pop() {
            if changes.is_empty() || self.unclear || self.try_without(changes) {
                continue;
            }
            if changes.len() > 1 {
                let (first, last) = changes.split_at(changes.len() / 2);
                pending.extend([first, last]);
            }
        }
    }

    pub(super) fn try_without(&mut self, changes: &[Change]) -> bool {
        let changed = changed(self.document.clone(), changes);
        let done = self.is_unsatisfiable(changed.clone());
        if done {
            self.document = changed;
        }
        done
    }

    /// Continues with one branch of a list. Returns whether that has no value either.
    pub(super) fn choose(&mut self, branches: NodeId, branch: NodeId) -> bool {
        let mut chosen = self.document.clone();
        chosen.retain(branches, |node| node == branch);
        let done = self.is_unsatisfiable(chosen.clone());
        if done {
            self.document = chosen;
            self.survey();
        }
        done
    }

    /// Goes back to an earlier state of the document.
    pub(super) fn restore(&mut self, document: Document) {
        self.document = document;
        self.unclear = false;
        self.survey();
    }

    /// Whether no value satisfies a document; `false` if that is not decided.
    fn is_unsatisfiable(&mut self, document: Document) -> bool {
        if self.left == 0 {
            self.unclear = true;
            return false;
        }
        let mut effort = document.len() as u64 / 8 + 1;
        self.options.languages.begin();
        let verdict = self.verdict(document, &mut effort);
        effort = effort.saturating_add(self.options.languages.spent());
        self.charge(effort);
        match verdict {
            Ok(satisfiable) => !satisfiable,
            Err(SchemaError { kind: SchemaErrorKind::Limit { .. }, .. }) => {
                self.unclear = true;
                false
            }
            // The rest is not a valid schema: an exclusive bound without the bound, in draft 4.
            Err(_) => false,
        }
    }

    fn verdict(&self, document: Document, effort: &mut u64) -> Result<bool> {
        let options = &self.options;
        let program = Program::of_document(document, self.root, options)?;
        *effort += 4 * program.schemas.len() as u64;
        let mut solver = Solver::new(Expander::new(options));
        let root = solver.expander.id_of(&program, self.root)?;
        let emptiness = Emptiness { options, witnesses: &program.witnesses };
        let context = Context { program: &program, emptiness };
        let verdict = solver.is_satisfiable(context, root);
        *effort += options.limits.steps - solver.expander.steps_left;
        verdict
    }
}

fn changed(mut document: Document, changes: &[Change]) -> Document {
    let mut dropped: FxHashSet<NodeId> = FxHashSet::default();
    let mut containers: Vec<NodeId> = Vec::new();
    for &change in changes {
        match change {
            Change::AcceptAll(schema) => document.accept_all(schema),
            Change::Drop(container, child) => {
                dropped.insert(child);
                containers.push(container);
            }
        }
    }
    containers.dedup();
    for container in containers {
        document.retain(container, |node| !dropped.contains(&node));
    }
    document
}

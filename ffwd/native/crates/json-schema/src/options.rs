//! The options of reading a schema.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::document::DocumentLimits;
use super::error::LimitExceeded;
use super::registry::Registry;
use ffwd_regular::regex::Ast;

/// Decides whether a language has no string, and returns the work that took. Called while the
/// schema's lock is held, so it must not use the schema.
type LanguageIsEmpty = dyn Fn(&Ast) -> Result<(bool, u64), LimitExceeded> + Send + Sync;

/// Lists a language's strings, up to a number of them. The signature follows [`LanguageIsEmpty`].
type ListLanguage = dyn Fn(&Ast, u64) -> Result<Option<Vec<String>>, LimitExceeded> + Send + Sync;

/// Asks about languages under a budget for each call of a schema's methods.
#[derive(Clone)]
pub struct Oracle {
    is_empty: Arc<LanguageIsEmpty>,
    list: Option<Arc<ListLanguage>>,
    spent: Arc<AtomicU64>,
}

impl Oracle {
    /// The same with a separate budget.
    pub(super) fn apart(&self) -> Self {
        Self { is_empty: self.is_empty.clone(), list: self.list.clone(), spent: Arc::default() }
    }

    /// Returns the work that the current call has spent.
    pub(super) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Returns all strings of a language, up to a number of them. An undecided language counts as
    /// larger.
    pub(super) fn list(
        &self,
        language: &Ast,
        most: u64,
    ) -> Result<Option<Vec<String>>, LimitExceeded> {
        self.list.as_ref().map_or(Ok(None), |list| list(language, most))
    }

    pub(super) fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Whether a language has no string.
    pub(super) fn is_empty(&self, language: &Ast, limits: Limits) -> Result<bool, LimitExceeded> {
        let maximum = limits.pattern_steps;
        if self.spent.load(Ordering::Relaxed) > maximum {
            return Err(LimitExceeded { limit: "pattern_steps", maximum });
        }
        let (empty, work) = (self.is_empty)(language)?;
        self.spent.fetch_add(work, Ordering::Relaxed);
        Ok(empty)
    }
}

/// How schemas are parsed, as callers choose it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsing {
    /// The treatment of a keyword that cannot be enforced.
    pub policy: Policy,
    /// The documents that `$ref` may name, beside the schema itself.
    pub registry: Arc<Registry>,
}

/// Options of [`SchemaSet::parse`](super::SchemaSet::parse).
#[derive(Clone)]
pub struct SchemaOptions {
    /// The budgets of reading and of each later call.
    pub limits: Limits,
    /// How schemas are parsed.
    pub parsing: Parsing,
    /// Which spellings of numbers are written.
    pub numbers: Numbers,
    /// Called only for languages whose syntax does not show whether they are empty.
    pub languages: Oracle,
}

impl SchemaOptions {
    /// The default limits.
    pub fn new(
        is_empty: impl Fn(&Ast) -> Result<(bool, u64), LimitExceeded> + Send + Sync + 'static,
    ) -> Self {
        Self {
            limits: Limits::default(),
            parsing: Parsing::default(),
            numbers: Numbers::Any,
            languages: Oracle { is_empty: Arc::new(is_empty), list: None, spent: Arc::default() },
        }
    }

    /// With a way to list languages that are not plainly finite by their syntax.
    #[must_use]
    pub fn listing(
        mut self,
        list: impl Fn(&Ast, u64) -> Result<Option<Vec<String>>, LimitExceeded> + Send + Sync + 'static,
    ) -> Self {
        self.languages.list = Some(Arc::new(list));
        self
    }
}

impl fmt::Debug for SchemaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaOptions")
            .field("limits", &self.limits)
            .field("policy", &self.parsing.policy)
            .finish_non_exhaustive()
    }
}

/// The treatment of a keyword that cannot be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The schema is refused.
    #[default]
    Strict,
    /// The keyword is left out, and the fidelity report says so.
    Lenient,
}

/// Which spellings of numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Integers as digits alone where nothing else is allowed, and only numbers that are finite in
    /// double precision.
    #[default]
    Plain,
    /// All that are valid.
    Any,
}

/// Budgets. Passing one is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the documents.
    pub schema_bytes: u64,
    /// JSON values in the documents.
    pub schema_nodes: u64,
    /// Containers in containers.
    pub schema_nesting: u64,
    /// Dynamic scopes, and schemas that are reached in several of them.
    pub dynamic_scopes: u64,
    /// Alternatives of one JSON type in one normal form.
    pub alternatives: u64,
    /// Distinct conjunctions of subschemas.
    pub schemas: u64,
    /// Steps of automata that look for a string of a language, in one call.
    pub pattern_steps: u64,
    /// Elementary steps (properties merged, pairs compared, values tried) of one call.
    pub steps: u64,
}

impl Limits {
    pub(super) fn document(&self) -> DocumentLimits {
        DocumentLimits {
            bytes: self.schema_bytes,
            // Two bits of an atom are spent on what it is, and one on aliases, which are nodes too.
            nodes: self.schema_nodes.min(1 << 29),
            nesting: self.schema_nesting,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes: 1 << 30,
            schema_nodes: 2_000_000,
            schema_nesting: 512,
            dynamic_scopes: 200_000,
            alternatives: 4096,
            schemas: 1_000_000,
            pattern_steps: 1_000_000,
            steps: 20_000_000,
        }
    }
}

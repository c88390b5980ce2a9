//! `oneOf` is read as `anyOf`, which is exact where no value satisfies two branches. Where that
//! cannot be shown, the schema is refused.
//!
//! The proof itself reads every `oneOf` as `anyOf`, so it is about more values than there are: what
//! it shows holds.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::alternatives::Alternatives;
use super::document::NodeId;
use super::error::SchemaError;
use super::merge::Merger;
use super::satisfy::{Context, Solver};
use super::schema::{InPlace, Schema};
use super::StringSpec;

/// Checks every `oneOf` of the document.
pub fn check(solver: &mut Solver, context: Context<'_>) -> Result<(), SchemaError> {
    for schema in &context.program.schemas {
        for (place, kind) in schema.in_place.iter().enumerate() {
            if let InPlace::OneOf(list) = *kind {
                if context.program.document.items(list).len() > 1 {
                    check_branches(solver, context, schema, place, list)?;
                }
            }
        }
    }
    Ok(())
}

fn check_branches(
    solver: &mut Solver,
    context: Context<'_>,
    schema: &Schema,
    place: usize,
    list: NodeId,
) -> Result<(), SchemaError> {
    let program = context.program;
    let exceeded = |error| SchemaError::limit(error, program.document.pointer(list));
    let id = solver.expander.id_of(program, schema.node).map_err(exceeded)?;
    // Also expands the branches.
    solver.expander.alternatives(program, id)?;
    let beside = solver.expander.expand_schema(program, id, schema, |other| other != place)?;
    let mut branches: Vec<Arc<Alternatives>> = Vec::new();
    for &branch in program.document.items(list) {
        let id = solver.expander.id_of(program, branch).map_err(exceeded)?;
        let branch = solver.expander.alternatives(program, id)?;
        let merger = &mut solver.expander.merger;
        branches.push(merger.conjunction(&[beside.clone(), branch]).map_err(exceeded)?);
    }
    let listed = ListedStrings::new(&branches, &mut solver.expander.merger).map_err(exceeded)?;
    if let Some((first, second)) = listed.shared {
        return Err(overlap(context, list, first, second));
    }
    for second in 1..branches.len() {
        for first in 0..second {
            solver.expander.merger.charge(1).map_err(exceeded)?;
            if listed.only[first] && listed.only[second] {
                continue;
            }
            if !solver.are_disjoint(context, &branches[first], &branches[second])? {
                return Err(overlap(context, list, first, second));
            }
        }
    }
    Ok(())
}

/// The branches that list strings, which are compared all at once.
struct ListedStrings {
    /// Whether a branch is nothing but a list of strings.
    only: Vec<bool>,
    /// Two of them that share a string.
    shared: Option<(usize, usize)>,
}

impl ListedStrings {
    fn new(
        branches: &[Arc<Alternatives>],
        merger: &mut Merger,
    ) -> Result<Self, super::error::LimitExceeded> {
        let mut owners: FxHashMap<&str, usize> = FxHashMap::default();
        let mut listed = Self { only: Vec::with_capacity(branches.len()), shared: None };
        for (place, branch) in branches.iter().enumerate() {
            let empty = Alternatives { strings: branch.strings.clone(), ..Alternatives::default() };
            let list = |spec: &StringSpec| spec.one_of.is_some() && spec.languages.is_empty();
            let only = **branch == empty && branch.strings.iter().all(list);
            listed.only.push(only);
            let values = branch.strings.iter().flat_map(|spec| spec.one_of.iter());
            for value in values.flat_map(|values| values.iter()).filter(|_| only) {
                merger.charge(1)?;
                let owner = *owners.entry(value).or_insert(place);
                if owner != place {
                    listed.shared.get_or_insert((owner, place));
                }
            }
        }
        Ok(listed)
    }
}

fn overlap(context: Context<'_>, list: NodeId, first: usize, second: usize) -> SchemaError {
    SchemaError::unsupported(
        "oneOf",
        context.program.document.pointer(list),
        format!(
            "the branches {first} and {second} of `oneOf` are not known to exclude each other; use \
             `anyOf`, or give them a required property with different `const` values"
        ),
    )
}

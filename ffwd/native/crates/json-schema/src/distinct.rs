//! Arrays whose items must differ: whether they can be completed, and which values the next item
//! must avoid.

use super::counting::Source;
use super::error::Result;
use super::filling::Filling;
use super::intern::Demand;
use super::satisfy::{Context, Solver};
use super::values::ValueId;
use super::{ArraySpec, SchemaId};

/// How many values are listed that an array may miss.
const MAX_CONTESTED: u64 = 1 << 10;

impl ArraySpec {
    /// Whether no further item is required.
    pub fn asks_for_nothing(&self) -> bool {
        self.min_items == 0 && self.contains.iter().all(|contains| contains.min == 0)
    }
}

impl Solver {
    /// Whether an array has items that differ from the earlier ones.
    pub(super) fn array_is_possible(
        &mut self,
        context: Context<'_>,
        spec: &ArraySpec,
        came: &[ValueId],
    ) -> Result<bool> {
        if spec.asks_for_nothing() {
            return Ok(true);
        }
        let mut source = Source::Known;
        let filling = Filling::new(self, context, &mut source, spec, came.len() as u64)?;
        let start = filling.begin(came);
        let possible = filling.can_be_filled(&mut self.expander, &start, None);
        possible.map_err(|e| self.exceeded(context, SchemaId::ANY, e))
    }

    /// The values with these results of `tests` that an array must not already have, if its further
    /// items are to differ from all of them and from the earlier items. `None` if no such array
    /// exists in any case.
    pub(super) fn essential_values(
        &mut self,
        context: Context<'_>,
        spec: &ArraySpec,
        came: &[ValueId],
        tests: &[(SchemaId, bool)],
    ) -> Result<Option<Vec<ValueId>>> {
        if spec.asks_for_nothing() {
            return Ok(Some(Vec::new()));
        }
        // One more than the earlier items: the item itself.
        let mut source = Source::Known;
        let filling = Filling::new(self, context, &mut source, spec, came.len() as u64 + 1)?;
        let start = filling.begin(came);
        let values = filling.essential(&mut self.expander, &start, came);
        let values = values.map_err(|e| self.exceeded(context, SchemaId::ANY, e))?;
        let Some(values) = values else { return Ok(None) };
        let mut own = Vec::with_capacity(values.len());
        'values: for value in values {
            for &(schema, outcome) in tests {
                if self.holds(context, schema, value)? != outcome {
                    continue 'values;
                }
            }
            own.push(value);
        }
        Ok(Some(own))
    }

    /// The values that an array may miss once others have come; `None` if these may be any, or are not
    /// found soon.
    pub(super) fn contested_values(
        &mut self,
        context: Context<'_>,
        spec: &ArraySpec,
    ) -> Result<Option<Vec<ValueId>>> {
        let mut source = Source::Soon { gave_up: false };
        let filling = Filling::new(self, context, &mut source, spec, MAX_CONTESTED)?;
        Ok(match source {
            Source::Soon { gave_up: true } => None,
            _ => filling.contested(),
        })
    }

    /// The values of schemas that are equal to one value, sorted.
    pub(super) fn equalled(&self, schemas: &[SchemaId]) -> Vec<ValueId> {
        let value = |&schema: &SchemaId| match *self.expander.interner.atoms(schema) {
            [atom] => match atom.demand() {
                Demand::Equal(value) => Some(value),
                _ => None,
            },
            _ => None,
        };
        let mut values: Vec<ValueId> = schemas.iter().filter_map(value).collect();
        values.sort_unstable();
        values
    }
}

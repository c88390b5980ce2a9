//! Estimates of the bytes that the frames of a stack still need, which guide the search for a
//! completion.
//!
//! The estimate for a schema is the length of a shortest value as far as its keywords show it: the
//! required parts of its alternatives, each in its shortest form. It is a least fixpoint, so
//! recursion is no special case. Exclusions of objects and distinct items are ignored, so an
//! estimate can be too small. The search still finds completions then, but more slowly.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::completion::search::Completing;
use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::lengths::{array_length, name_length, Lengths, UNKNOWN};
use crate::json::object_state::LEAST_MEMBER;
use crate::json::query::Schemas;
use crate::json::tables::Json;
use crate::rules::leaf::Leaf;
use crate::rules::program::Program;
use crate::rules::tables::Rules;
use crate::run::automaton::Automaton;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_json_schema::{ArraySpec, ObjectSpec, SchemaId};
use ffwd_regular::expr::Verdict;

/// How many nested unions of stacks are examined.
const MAX_UNIONS: usize = 64;
/// How many symbols have estimates.
const MAX_SYMBOLS: usize = 1 << 20;
/// How many passes over the symbols compute them.
const MAX_ROUNDS: usize = 64;

/// Schemas whose estimates depend on each other.
struct Fixpoint<'a> {
    automaton: &'a Automaton,
    json: &'a Json,
    known: &'a mut FxHashMap<SchemaId, u32>,
    /// The length of the shortest text of a scalar, by schema, and the schemas in the order of
    /// their requests.
    scalars: FxHashMap<SchemaId, u32>,
    order: Vec<SchemaId>,
    asked: FxHashSet<SchemaId>,
}

impl Completing<'_> {
    /// About how many bytes must follow on a stack until the text is complete.
    pub(crate) fn estimate(&self, stack: StackId) -> Result<u32> {
        self.estimate_within(stack, MAX_UNIONS)
    }

    /// `depth`: how many nested unions of stacks it examines.
    fn estimate_within(&self, stack: StackId, depth: usize) -> Result<u32> {
        let mut above = Vec::new();
        let mut at = stack;
        let mut sum = loop {
            if at == StackId::END {
                break 0;
            }
            if let Some(&known) = self.automaton.completions.estimates.lock().stacks.get(&at) {
                break known;
            }
            above.push(at);
            at = self.automaton.cell(at).parent;
        };
        for stack in above.into_iter().rev() {
            sum = u32::saturating_add(sum, self.estimate_frame(stack, depth)?).min(UNKNOWN);
            sum = sum.max(self.estimate_member(stack)?.min(UNKNOWN));
            self.automaton.completions.held.add(map_entry::<StackId, u32>());
            self.automaton.completions.estimates.lock().stacks.insert(stack, sum);
        }
        Ok(sum)
    }

    /// The estimate of a stack with an object's member on top, or of a frame above one. The
    /// shortest value may belong to an alternative that needs much more, so value and object are
    /// examined together. 0 for other stacks.
    fn estimate_member(&self, stack: StackId) -> Result<u32> {
        let &Cell { frame, parent, .. } = self.automaton.cell(stack);
        let (Some(json), Frame::AwaitMember(_)) =
            (self.automaton.json(), self.automaton.cell(parent).frame)
        else {
            return Ok(0);
        };
        let of = |schema: SchemaId| self.estimate_schema(json, schema);
        let ways = match frame {
            Frame::Value(query) => {
                let mut ways = Vec::new();
                for (bit, &schema) in
                    json.queries.get(query.0).required_schemas().iter().enumerate()
                {
                    ways.push((of(schema)?, 1 << bit));
                }
                ways
            }
            Frame::ObjectOpen(state) | Frame::ObjectKey(state) | Frame::ObjectAfter(state) => {
                json.object_ways(state, matches!(frame, Frame::ObjectAfter(_)), of)?
            }
            Frame::AwaitMember(_) => return self.estimate_after(json, stack, Verdict::MAX),
            _ => return Ok(0),
        };
        self.least_after(json, parent, ways)
    }

    /// About how many bytes follow a member's value that satisfies one of some schemas of its
    /// query. The estimates of the stacks below already cover their own alternatives, so this does
    /// not recurse deeply.
    fn estimate_after(&self, json: &Json, stack: StackId, holds: Verdict) -> Result<u32> {
        let &Cell { frame, parent, .. } = self.automaton.cell(stack);
        let Frame::AwaitMember(pending) = frame else { return self.estimate(stack) };
        if let Some(&known) = self.automaton.completions.estimates.lock().after.get(&(stack, holds))
        {
            return Ok(known);
        }
        let of = |schema: SchemaId| self.estimate_schema(json, schema);
        let ways = json.object_ways_after(pending, holds, of)?;
        let least = self.least_after(json, parent, ways)?;
        self.automaton.completions.held.add(map_entry::<(StackId, Verdict), u32>());
        self.automaton.completions.estimates.lock().after.insert((stack, holds), least);
        Ok(least)
    }

    /// The shortest of some ways to end the part on top of a stack, each with the schemas that then
    /// hold.
    fn least_after(&self, json: &Json, stack: StackId, ways: Vec<(u32, Verdict)>) -> Result<u32> {
        meter::charge(1 + ways.len())?;
        let mut least = UNKNOWN;
        for (length, holds) in ways {
            let rest = self.estimate_after(json, stack, holds)?;
            least = least.min(length.saturating_add(rest));
        }
        Ok(least)
    }

    /// The estimate of the top frame alone. A frame that waits for a value counts the bytes after
    /// the value.
    fn estimate_frame(&self, stack: StackId, depth: usize) -> Result<u32> {
        let &Cell { frame, .. } = self.automaton.cell(stack);
        if let Frame::Lexeme(lexeme) = frame {
            let lexeme = self.automaton.lexeme(lexeme);
            let endings = lexeme.endings(lexeme.start())?;
            return Ok(endings.iter().map(|ending| ending.text.len() as u32).min().unwrap_or(0));
        }
        if frame.is_rule() {
            return self.estimate_rule(frame, depth);
        }
        let Some(json) = self.automaton.json() else { return Ok(0) };
        let of = |schema: SchemaId| self.estimate_schema(json, schema);
        match frame {
            Frame::End | Frame::Lexeme(_) | Frame::Row(_) | Frame::Tokens(_) => Ok(0),
            Frame::Begun | Frame::Limit(_) | Frame::Layout(_) => Ok(0),
            Frame::Colon => Ok(1),
            Frame::Symbol(_) | Frame::Count(_) | Frame::Union(_) | Frame::Mark(_) => Ok(0),
            Frame::Value(query) => {
                let mut least = UNKNOWN;
                for &schema in json.queries.get(query.0).required_schemas() {
                    least = least.min(of(schema)?);
                }
                Ok(least)
            }
            Frame::Part(group) => {
                let state = json.object_start(self.automaton, group)?;
                Ok(1 + json.object_left(state, false, of)?)
            }
            Frame::ObjectOpen(state) => json.object_left(state, false, of),
            Frame::ObjectAfter(state) => json.object_left(state, true, of),
            Frame::ObjectKey(state) => Ok(json.object_left(state, false, of)?.max(LEAST_MEMBER)),
            Frame::AwaitMember(pending) => json.object_left_after(pending, of),
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => {
                json.arrays.array_left(state, 0, of)
            }
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                json.arrays.array_left(json.arrays.item_of(pending), 1, of)
            }
        }
    }

    /// Estimates a frame of rules.
    fn estimate_rule(&self, frame: Frame, depth: usize) -> Result<u32> {
        let Some(rules) = self.automaton.rules() else { return Ok(0) };
        let symbols = &rules.symbols;
        let of = |symbol: SymbolId| match symbols.is_nullable(symbol) {
            true => 0,
            false => self.shortest_symbols(rules).get(symbol.0 as usize).copied().unwrap_or(0),
        };
        Ok(match frame {
            Frame::Symbol(symbol) => of(symbol),
            Frame::Count(count) => {
                let count = rules.counts.get(count);
                of(count.inner).saturating_mul(count.min).min(UNKNOWN)
            }
            Frame::Union(union) if depth > 0 => {
                let mut least = UNKNOWN;
                for &member in &rules.unions.get(union).members {
                    least = least.min(self.estimate_within(member, depth - 1)?);
                }
                least
            }
            _ => 0,
        })
    }

    /// The estimated length of a shortest non-empty text of each symbol; none for grammars with too
    /// many symbols.
    fn shortest_symbols(&self, rules: &Rules) -> &[u32] {
        let Program { symbols, leaves, .. } = &*rules.program;
        self.automaton.completions.symbols.get_or_init(|| {
            if symbols.len() > MAX_SYMBOLS {
                return Box::default();
            }
            let mut shortest = vec![UNKNOWN; symbols.len()];
            let mut changed = true;
            let mut round = 0;
            // Dependencies downwards settle in one pass direction, those upwards in the other; an
            // estimate need not be exact for the rest.
            while std::mem::take(&mut changed) && round < MAX_ROUNDS {
                round += 1;
                for place in 0..symbols.len() as u32 {
                    let downwards = symbols.len() as u32 - 1 - place;
                    let symbol = SymbolId(if round % 2 == 1 { downwards } else { place });
                    let of = |id: SymbolId| shortest[id.0 as usize];
                    let length = symbols.shortest(symbol, of, |leaf| match leaf {
                        Symbol::Leaf(node) if matches!(leaves.get(node), Some(Leaf::Json(_))) => 2,
                        _ => 1,
                    });
                    if length.min(UNKNOWN) < of(symbol) {
                        shortest[symbol.0 as usize] = length;
                        changed = true;
                    }
                }
            }
            self.automaton.completions.held.add(shortest.len() * 4);
            shortest.into()
        })
    }

    /// About the length of a shortest value that satisfies a schema.
    pub(crate) fn estimate_schema(&self, json: &Json, schema: SchemaId) -> Result<u32> {
        let mut estimates = self.automaton.completions.estimates.lock();
        if let Some(&known) = estimates.schemas.get(&schema) {
            return Ok(known);
        }
        let mut fixpoint = Fixpoint {
            automaton: self.automaton,
            json,
            known: &mut estimates.schemas,
            scalars: FxHashMap::default(),
            order: Vec::new(),
            asked: FxHashSet::default(),
        };
        let found = fixpoint.of(schema);
        let (order, failed) = (fixpoint.order, found.is_err());
        if failed {
            // Unsettled estimates are unknown.
            for schema in &order {
                estimates.schemas.remove(schema);
            }
        }
        self.automaton.completions.held.add(order.len() * map_entry::<SchemaId, u32>());
        found
    }
}

impl Fixpoint<'_> {
    fn of(&mut self, schema: SchemaId) -> Result<u32> {
        self.ask(schema);
        loop {
            let mut changed = false;
            let mut at = 0;
            // Schemas requested by others come last, and their own requests later still.
            while at < self.order.len() {
                meter::charge(4)?;
                at += 1;
                changed |= self.improve(self.order[self.order.len() - at])?;
            }
            if !changed {
                return Ok(self.known.get(&schema).copied().unwrap_or(UNKNOWN));
            }
        }
    }

    fn ask(&mut self, schema: SchemaId) -> u32 {
        if let Some(&known) = self.known.get(&schema) {
            return known;
        }
        if self.asked.insert(schema) {
            self.order.push(schema);
        }
        UNKNOWN
    }

    fn improve(&mut self, schema: SchemaId) -> Result<bool> {
        let before = self.order.len();
        let length = self.length(schema)?;
        let known = self.known.get(&schema).copied();
        let better = length < known.unwrap_or(UNKNOWN);
        if better {
            self.known.insert(schema, length);
        }
        Ok(better || self.order.len() > before)
    }

    fn length(&mut self, schema: SchemaId) -> Result<u32> {
        let normal = self.json.schema.normal(schema)?;
        let mut least = self.scalar(schema)?;
        for spec in &normal.objects {
            meter::charge(1 + spec.properties.len())?;
            least = least.min(self.object(spec));
        }
        for spec in &normal.arrays {
            meter::charge(1 + spec.prefix.len())?;
            least = least.min(self.array(spec));
        }
        Ok(least)
    }

    /// The shortest literal, number or string.
    fn scalar(&mut self, schema: SchemaId) -> Result<u32> {
        if let Some(&known) = self.scalars.get(&schema) {
            return Ok(known);
        }
        let mut schemas = Schemas::new(self.json.narrows);
        schemas.require(schema);
        let query = self.json.query(schemas)?;
        let starts = self.json.value_starts(self.automaton, query)?;
        let mut least = UNKNOWN;
        for scalar in &starts.scalars {
            let lexeme = self.automaton.lexeme(scalar.lexeme);
            for ending in lexeme.endings(lexeme.start())?.iter() {
                least = least.min(ending.text.len() as u32);
            }
        }
        self.scalars.insert(schema, least);
        Ok(least)
    }

    fn object(&mut self, spec: &ObjectSpec) -> u32 {
        let mut members = Lengths::default();
        for property in spec.properties.iter().filter(|property| property.required) {
            members.add(name_length(&property.name), self.ask(property.schema));
        }
        let missing = spec.min_properties.saturating_sub(members.count);
        if missing > 0 {
            let mut cheapest = UNKNOWN;
            for class in &spec.others {
                cheapest = cheapest.min(self.ask(class.schema).saturating_add(3));
            }
            for property in spec.properties.iter().filter(|property| !property.required) {
                let value = self.ask(property.schema);
                cheapest = cheapest.min(value.saturating_add(name_length(&property.name)));
            }
            members.add_more(missing, cheapest);
        }
        members.length().saturating_add(2).min(UNKNOWN)
    }

    fn array(&mut self, spec: &ArraySpec) -> u32 {
        array_length(spec, 0, |schema| self.ask(schema)).saturating_add(2).min(UNKNOWN)
    }
}

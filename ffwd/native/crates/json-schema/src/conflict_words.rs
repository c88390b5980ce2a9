//! Says which keywords of a schema contradict each other.

use rustc_hash::FxHashSet;

use super::conflict::Conflict;
use super::dialect::Keyword;
use super::document::{Document, NodeId, Value};
use super::error::shortened;
use super::read_scalars::decimal;
use ffwd_regular::regex::Decimal;

/// The most characters of a value that are shown.
const MAX_VALUE: usize = 40;
/// The most keywords that one message names.
const MAX_KEYWORDS: usize = 6;
/// How many branches of `anyOf` are explained, and how deeply nested ones.
const MAX_BRANCHES: usize = 3;
const MAX_DEPTH: usize = 2;

/// A keyword of one of a value's schemas; none for the schema `false`.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) keyword: Option<Keyword>,
    pub(super) value: NodeId,
    pub(super) schema: NodeId,
}

/// Why no value satisfies some keywords.
enum Why {
    /// The schema is `false`.
    False,
    Said(String),
    /// A part of the value has no valid value: its schemas, and which part it is.
    Within(Vec<NodeId>, String),
}

/// A lower bound, an upper bound, and whether they may be equal.
const BOUNDS: [(Keyword, Keyword, bool); 9] = [
    (Keyword::MinItems, Keyword::MaxItems, true),
    (Keyword::MinLength, Keyword::MaxLength, true),
    (Keyword::MinProperties, Keyword::MaxProperties, true),
    (Keyword::MinContains, Keyword::MaxContains, true),
    (Keyword::MinContains, Keyword::MaxItems, true),
    (Keyword::Minimum, Keyword::Maximum, true),
    (Keyword::Minimum, Keyword::ExclusiveMaximum, false),
    (Keyword::ExclusiveMinimum, Keyword::Maximum, false),
    (Keyword::ExclusiveMinimum, Keyword::ExclusiveMaximum, false),
];

impl Conflict {
    /// Why no value satisfies the schema, and the JSON pointer of where.
    pub fn explained(mut self) -> (String, String) {
        let (root, step) = (self.root, self.step.take());
        let (said, place) = self.told(vec![root], step, 0);
        (said, self.whole.pointer(place))
    }

    fn told(
        &mut self,
        mut group: Vec<NodeId>,
        mut step: Option<String>,
        depth: usize,
    ) -> (String, NodeId) {
        let mut seen: FxHashSet<Vec<NodeId>> = FxHashSet::default();
        loop {
            let items = self.items(&group);
            let place = place_of(&items, &group);
            let said = match self.why(&items, place, depth) {
                Why::False if step.is_some() => "its schema is `false`".to_owned(),
                Why::False => "it is `false`".to_owned(),
                Why::Said(said) => said,
                Why::Within(within, next) => {
                    let mut key = group.clone();
                    key.sort_unstable();
                    if !seen.insert(key) {
                        let said = format!("{next}: its schema leads back to itself without end");
                        return (said, place);
                    }
                    (group, step) = (within, Some(next));
                    continue;
                }
            };
            return (step.map_or(said.clone(), |step| format!("{step}: {said}")), place);
        }
    }

    /// The keywords that apply to one value, through references and `allOf`, without those that
    /// have no effect any more.
    pub(super) fn items(&self, group: &[NodeId]) -> Vec<Item> {
        let mut items = Vec::new();
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut pending: Vec<NodeId> = group.iter().rev().copied().collect();
        while let Some(schema) = pending.pop() {
            if !seen.insert(schema) {
                continue;
            }
            if matches!(self.document.value(schema), Value::Boolean(false)) {
                items.push(Item { keyword: None, value: schema, schema });
                continue;
            }
            let keywords = self.keywords(schema);
            let has = |keyword| keywords.iter().any(|&(other, _)| other == keyword);
            let closed = has(Keyword::AdditionalProperties)
                || has(Keyword::UnevaluatedProperties)
                || has(Keyword::Items)
                || has(Keyword::AdditionalItems)
                || has(Keyword::UnevaluatedItems);
            let mut inner = Vec::new();
            for &(keyword, value) in &keywords {
                let parts = self.parts(keyword, value);
                let all_any = parts.iter().all(|&part| self.accepts_all(part));
                match keyword {
                    Keyword::Reference if !parts.is_empty() => inner.extend(parts),
                    Keyword::AllOf => inner.extend(parts),
                    Keyword::AnyOf | Keyword::OneOf if parts.len() == 1 => inner.extend(parts),
                    Keyword::DependentSchemas | Keyword::Dependencies
                        if parts.len() == self.document.members(value).len()
                            && !parts.iter().any(|&part| self.is_false(part)) =>
                    {
                        inner.extend(parts);
                    }
                    Keyword::Then | Keyword::Else if !has(Keyword::If) => {}
                    Keyword::MinContains | Keyword::MaxContains if !has(Keyword::Contains) => {}
                    Keyword::Properties | Keyword::PatternProperties | Keyword::PrefixItems
                        if all_any && !closed => {}
                    Keyword::Required if self.document.items(value).is_empty() => {}
                    _ => items.push(Item { keyword: Some(keyword), value, schema }),
                }
            }
            pending.extend(inner.into_iter().rev());
        }
        items
    }

    pub(super) fn is_false(&self, schema: NodeId) -> bool {
        matches!(self.document.value(schema), Value::Boolean(false))
    }

    fn why(&mut self, items: &[Item], place: NodeId, depth: usize) -> Why {
        let (types, others): (Vec<Item>, Vec<Item>) =
            items.iter().partition(|item| item.keyword == Some(Keyword::Type));
        if others.iter().any(|item| item.keyword.is_none()) {
            return Why::False;
        }
        let choice = others
            .iter()
            .find(|item| matches!(item.keyword, Some(Keyword::AnyOf | Keyword::OneOf)));
        if let Some(&choice) = choice.filter(|_| depth < MAX_DEPTH) {
            if let Some(said) = self.branches(choice, items, depth) {
                return Why::Said(said);
            }
        }
        let within = self.property(&others).or_else(|| self.item(&others));
        if let Some(within) = within.or_else(|| self.contained(&others)) {
            return within;
        }
        Why::Said(match &others[..] {
            [] => self.types(&types, place),
            _ => {
                match self.bounds(&others, place).or_else(|| self.listed(&types, &others, place)) {
                    Some(said) => said,
                    None => self.all(&types, &others, place),
                }
            }
        })
    }

    /// Nothing but types.
    fn types(&self, types: &[Item], place: NodeId) -> String {
        match types {
            [first, second] => format!(
                "{} and {} exclude each other",
                self.named(first, place),
                self.named(second, place)
            ),
            _ => "its types exclude each other".to_owned(),
        }
    }

    /// Why each branch of an `anyOf` or `oneOf` has no value; `None` if that takes too long.
    fn branches(&mut self, choice: Item, items: &[Item], depth: usize) -> Option<String> {
        let name = choice.keyword?.name();
        let branches = self.parts(choice.keyword?, choice.value);
        let before = self.document.clone();
        let group: Vec<NodeId> = items.iter().map(|item| item.schema).collect();
        let mut said = Vec::new();
        for (number, &branch) in branches.iter().enumerate().take(MAX_BRANCHES) {
            let mut alone = self.choose(choice.value, branch);
            if alone {
                self.reduce();
                alone = !self.unclear;
            }
            if alone {
                let why = self.told(group.clone(), None, depth + 1).0;
                said.push(format!("branch {number}: {why}"));
            }
            let unclear = self.unclear;
            self.restore(before.clone());
            if unclear {
                return None;
            }
            if !alone {
                return Some(format!("no value fits exactly one branch of `{name}`"));
            }
        }
        let more = branches.len() - said.len();
        if more > 0 {
            said.push(format!("and {more} more"));
        }
        Some(format!("no branch of `{name}` has a valid value ({})", said.join("; ")))
    }

    /// A required property that has no valid value.
    fn property(&self, items: &[Item]) -> Option<Why> {
        let (mut names, mut names_differ) = (Vec::new(), None);
        for item in items {
            match item.keyword? {
                Keyword::Required => names.extend(self.strings(item.value)),
                Keyword::DependentRequired | Keyword::Dependencies => {
                    for (_, list) in self.document.members(item.value).iter() {
                        names.extend(self.strings(list));
                    }
                }
                Keyword::PropertyNames => names_differ = Some(item),
                Keyword::Properties
                | Keyword::PatternProperties
                | Keyword::AdditionalProperties
                | Keyword::UnevaluatedProperties => {}
                _ => return None,
            }
        }
        let patterns = items.iter().filter(|item| item.keyword == Some(Keyword::PatternProperties));
        let patterns: Vec<NodeId> = patterns.flat_map(|item| self.demanding(item)).collect();
        let mut culprit: Option<(&str, Vec<NodeId>, bool)> = None;
        for &name in &names {
            let mut schemas = Vec::new();
            let mut other = false;
            for item in items {
                let members = self.document.members(item.value);
                match item.keyword? {
                    Keyword::Properties => schemas.extend(members.get(name)),
                    Keyword::AdditionalProperties | Keyword::UnevaluatedProperties => {
                        let beside = self.document.members(item.schema).get("properties");
                        let declared = beside.map(|beside| self.document.members(beside));
                        if declared.is_none_or(|declared| declared.get(name).is_none()) {
                            schemas.push(item.value);
                            other = true;
                        }
                    }
                    _ => {}
                }
            }
            schemas.retain(|&schema| !self.accepts_all(schema));
            if names.len() == 1 {
                schemas.extend(&patterns);
                other &= patterns.is_empty();
            }
            if schemas.is_empty() {
                continue;
            }
            if culprit.replace((name, schemas, other)).is_some() {
                return None;
            }
        }
        let required = |name: &str| format!("required property `{}`", shortened(name));
        match (culprit, names_differ) {
            (None, Some(item)) if names.len() == 1 => Some(Why::Said(format!(
                "{} is not allowed by {}",
                required(names[0]),
                self.named(item, item.schema)
            ))),
            (Some((name, schemas, other)), None) => {
                let closed = items.iter().find(|item| item.value == schemas[0]);
                match closed {
                    Some(closed) if other && schemas.len() == 1 && self.is_false(schemas[0]) => {
                        Some(Why::Said(format!(
                            "{} is not in `properties`, and `{}` is false",
                            required(name),
                            closed.keyword?.name()
                        )))
                    }
                    _ => {
                        Some(Why::Within(schemas, format!("{} has no valid value", required(name))))
                    }
                }
            }
            _ => None,
        }
    }

    /// The subschemas of a keyword that do not accept every value.
    fn demanding(&self, item: &Item) -> Vec<NodeId> {
        let parts = item.keyword.map_or_else(Vec::new, |keyword| self.parts(keyword, item.value));
        parts.into_iter().filter(|&part| !self.accepts_all(part)).collect()
    }

    pub(super) fn strings(&self, list: NodeId) -> Vec<&str> {
        let names = self.document.items(list).iter();
        let names = names.filter_map(|&name| match self.document.value(name) {
            Value::String(name) => Some(name),
            _ => None,
        });
        names.collect()
    }

    /// A required item that has no valid value.
    fn item(&self, items: &[Item]) -> Option<Why> {
        let (mut least, mut first, mut rest) = (None, Vec::new(), Vec::new());
        let (mut declared, mut closing) = (None, None);
        for item in items {
            let is_list = matches!(self.document.value(item.value), Value::Array(_));
            match item.keyword? {
                Keyword::MinItems => least = Some(item),
                Keyword::PrefixItems | Keyword::Items if is_list => {
                    let parts = self.parts(item.keyword?, item.value);
                    declared = Some((item.keyword?.name(), parts.len()));
                    let asks = parts.into_iter().enumerate();
                    first.extend(asks.filter(|&(_, part)| !self.accepts_all(part)));
                }
                Keyword::Items | Keyword::AdditionalItems | Keyword::UnevaluatedItems => {
                    closing = item.keyword;
                    rest.push(item.value);
                }
                _ => return None,
            }
        }
        let least = least?;
        let least = self.named(least, least.schema);
        match (&first[..], &rest[..]) {
            (&[(place, part)], []) => {
                Some(Why::Within(vec![part], format!("item {place} has no valid value")))
            }
            ([], &[rest]) => Some(match (declared, closing) {
                (Some((name, count)), Some(closing)) if self.is_false(rest) => Why::Said(format!(
                    "{least} is greater than the length of `{name}` ({count}), and `{}` is false",
                    closing.name()
                )),
                (None, Some(closing)) if self.is_false(rest) => {
                    Why::Said(format!("{least} asks for items, and `{}` is false", closing.name()))
                }
                _ => Why::Within(
                    vec![rest],
                    format!("{least} asks for an item, which has no valid value"),
                ),
            }),
            _ => None,
        }
    }

    /// An item that `contains` asks for.
    fn contained(&self, items: &[Item]) -> Option<Why> {
        let mut schemas = Vec::new();
        let mut contains = 0;
        for item in items {
            match item.keyword? {
                Keyword::Contains => {
                    contains += 1;
                    schemas.push(item.value);
                }
                Keyword::MinContains => {}
                Keyword::Items if self.parts(Keyword::Items, item.value) == [item.value] => {
                    schemas.push(item.value);
                }
                _ => return None,
            }
        }
        let said = "no item satisfies `contains`".to_owned();
        (contains == 1).then_some(Why::Within(schemas, said))
    }

    /// A lower bound that is greater than the upper one, or too many required names.
    fn bounds(&self, items: &[Item], place: NodeId) -> Option<String> {
        if let Some(said) = self.closed_count(items, place) {
            return Some(said);
        }
        let counts = |item: &&Item| item.keyword != Some(Keyword::Contains);
        let items: Vec<Item> = items.iter().filter(counts).copied().collect();
        let &[a, b] = &items[..] else { return None };
        let of = |keyword| [a, b].into_iter().find(|item| item.keyword == Some(keyword));
        if let (Some(names), Some(most)) = (of(Keyword::Required), of(Keyword::MaxProperties)) {
            let count = self.document.items(names.value).len();
            let most = self.named(&most, place);
            return Some(format!("`required` has {count} names, more than {most}"));
        }
        for (least, most, may_be_equal) in BOUNDS {
            let (Some(least), Some(most)) = (of(least), of(most)) else { continue };
            let (low, high) = (self.number(least.value)?, self.number(most.value)?);
            let (least, most) = (self.named(&least, place), self.named(&most, place));
            if low > high {
                return Some(format!("{least} is greater than {most}"));
            }
            if low == high && !may_be_equal {
                return Some(format!("{least} is not less than {most}"));
            }
        }
        None
    }

    /// More properties asked for than are declared, where there may be no others.
    fn closed_count(&self, items: &[Item], place: NodeId) -> Option<String> {
        let of = |keyword| items.iter().find(|item| item.keyword == Some(keyword));
        let (least, declared) = (of(Keyword::MinProperties)?, of(Keyword::Properties)?);
        let closed = of(Keyword::AdditionalProperties)?;
        let count = self.document.members(declared.value).len();
        let beside = items.len() == 3 && declared.schema == closed.schema;
        let more = self.number(least.value)? > (count as u64).into();
        (beside && more && self.is_false(closed.value)).then(|| {
            let least = self.named(least, place);
            format!(
                "{least} is greater than the number of `properties` ({count}), \
                 and `additionalProperties` is false"
            )
        })
    }

    pub(super) fn number(&self, node: NodeId) -> Option<Decimal> {
        match self.document.value(node) {
            Value::Number(text) => decimal(&self.document, node, text).ok(),
            _ => None,
        }
    }

    /// Values of `const` or `enum`, none of which satisfies the other keywords.
    fn listed(&self, types: &[Item], others: &[Item], place: NodeId) -> Option<String> {
        let lists = [Keyword::Const, Keyword::Enum];
        let list = lists
            .iter()
            .find_map(|&keyword| others.iter().position(|item| item.keyword == Some(keyword)))?;
        let mut rest = others.to_vec();
        let list = rest.remove(list);
        let of_type = match types {
            [] => None,
            [only] => Some(self.type_names(only)),
            _ => return None,
        };
        let name = self.named(&list, place);
        let rest = self.list(&rest, place);
        let is_const = list.keyword == Some(Keyword::Const);
        Some(match (is_const, rest, of_type) {
            (true, None, Some(of_type)) => format!("{name} is not of type {of_type}"),
            (true, Some(rest), None) => format!("{name} does not fit {rest}"),
            (true, Some(rest), Some(of_type)) => {
                format!("{name} is not of type {of_type}, or does not fit {rest}")
            }
            (true, None, None) => format!("{name} has no valid value"),
            (false, None, None) if self.document.items(list.value).is_empty() => {
                "`enum` is empty".to_owned()
            }
            (false, None, Some(of_type)) => format!("{name} has no value of type {of_type}"),
            (false, Some(rest), None) => format!("{name} has no value that fits {rest}"),
            (false, Some(rest), Some(of_type)) => {
                format!("{name} has no value of type {of_type} that fits {rest}")
            }
            (false, None, None) => format!("{name} has no valid value"),
        })
    }

    /// All keywords together.
    fn all(&self, types: &[Item], others: &[Item], place: NodeId) -> String {
        let subject = match types {
            [only] => match self.document.value(only.value) {
                Value::String(name) => format!("no {name}"),
                _ => format!("no value of type {}", self.type_names(only)),
            },
            _ => "no value".to_owned(),
        };
        if let [Item { keyword: Some(Keyword::Not), .. }] = others {
            return format!("`not` excludes every {}", subject.trim_start_matches("no "));
        }
        let negated = others.iter().position(|item| item.keyword == Some(Keyword::Not));
        if let Some(negated) = negated {
            let mut rest = others.to_vec();
            let negated = self.named(&rest.remove(negated), place);
            if let Some(rest) = self.list(&rest, place) {
                let subject = subject.trim_start_matches("no ");
                return format!("{negated} excludes every {subject} that fits {rest}");
            }
        }
        let mut all = others.to_vec();
        if types.len() > 1 {
            all.extend(types);
        }
        let all = self.list(&all, place).unwrap_or_else(|| "the schema".to_owned());
        format!("{subject} fits {all}")
    }

    /// Keywords with their values; `None` for none.
    fn list(&self, items: &[Item], place: NodeId) -> Option<String> {
        let shown = items.iter().take(MAX_KEYWORDS);
        let mut shown: Vec<String> = shown.map(|item| self.named(item, place)).collect();
        if items.len() > shown.len() {
            shown.push(format!("{} more keywords", items.len() - shown.len()));
        }
        let last = shown.pop()?;
        Some(match shown.is_empty() {
            true => last,
            false => format!("{} and {last}", shown.join(", ")),
        })
    }

    /// A keyword with its value, and with its place unless it is at `place`.
    fn named(&self, item: &Item, place: NodeId) -> String {
        let name = item.keyword.map_or("false", Keyword::name);
        let value = value_of(&self.document, item.value);
        let pointer = match item.schema == place {
            true => None,
            false => Some(format!("at {}", shortened(&self.whole.pointer(item.schema)))),
        };
        let known: Vec<String> = value.into_iter().chain(pointer).collect();
        match known.is_empty() {
            true => format!("`{name}`"),
            false => format!("`{name}` ({})", known.join(", ")),
        }
    }

    fn type_names(&self, item: &Item) -> String {
        match self.document.value(item.value) {
            Value::String(name) => name.to_owned(),
            _ => self.strings(item.value).join(" or "),
        }
    }
}

/// The schema that has all of the keywords, or else where the value's schema stands.
fn place_of(items: &[Item], group: &[NodeId]) -> NodeId {
    let first = items.first().map(|item| item.schema);
    let one = first.filter(|&first| items.iter().all(|item| item.schema == first));
    one.or(group.first().copied()).unwrap_or(NodeId::ROOT)
}

/// A value as JSON; `None` if it is long.
fn value_of(document: &Document, node: NodeId) -> Option<String> {
    let mut text = String::new();
    write(document, node, &mut text)?;
    Some(text)
}

/// Each level writes a character, so that the length bounds the depth.
fn write(document: &Document, node: NodeId, text: &mut String) -> Option<()> {
    match document.value(node) {
        Value::Null => text.push_str("null"),
        Value::Boolean(value) => text.push_str(if value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(number),
        Value::String(string) if string.len() > MAX_VALUE => return None,
        Value::String(string) => text.push_str(&serde_json::Value::from(string).to_string()),
        Value::Array(items) => {
            text.push('[');
            for (place, &item) in items.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                write(document, item, text)?;
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                text.push_str(if place > 0 { ", " } else { "" });
                text.push_str(&serde_json::Value::from(key).to_string());
                text.push_str(": ");
                write(document, value, text)?;
            }
            text.push('}');
        }
    }
    (text.chars().count() <= MAX_VALUE).then_some(())
}

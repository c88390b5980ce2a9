//! Conflicts that the names of an object show: too many of them, one that is not declared, or some
//! with a schema in several places.
//!
//! Such a conflict may need all names of a list, or be one among thousands, and the search for a
//! smallest one would ask too many questions. So everything else is left out at once, and one
//! question confirms the guess.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::conflict::{Change, Conflict};
use super::conflict_words::Item;
use super::dialect::Keyword;
use super::document::{NodeId, Value};

/// The parts of a schema that may contradict each other.
#[derive(Default)]
struct Guess {
    /// Values of keywords.
    keywords: FxHashSet<NodeId>,
    /// Names in lists of `required`; `None` for all of them.
    names: Option<FxHashSet<NodeId>>,
    /// Schemas of properties.
    properties: FxHashSet<NodeId>,
}

impl Conflict {
    /// Leaves out everything but some keywords, if the names of an object show that these
    /// contradict each other.
    pub(super) fn reduce_names(&mut self, schema: NodeId) {
        let items = self.items(&[schema]);
        self.charge(items.len() as u64);
        for guess in [Self::too_many_names, Self::undeclared_name, Self::repeated_names] {
            let Some(guess) = guess(self, &items) else { continue };
            let changes = self.changes_beside(&items, &guess);
            if changes.is_empty() || self.try_without(&changes) {
                if guess.names.is_none() {
                    guess.keywords.iter().for_each(|&list| self.settle(list));
                }
                return;
            }
        }
    }

    /// The changes that leave only what a guess names. The search decides about `type` and the
    /// keywords that lead to other schemas.
    fn changes_beside(&self, items: &[Item], guess: &Guess) -> Vec<Change> {
        let mut own: FxHashMap<NodeId, Keyword> = FxHashMap::default();
        let mut schemas: FxHashSet<NodeId> = FxHashSet::default();
        for item in items {
            own.extend(item.keyword.map(|keyword| (item.value, keyword)));
            schemas.insert(item.schema);
        }
        let (mut changes, mut inner) = (Vec::new(), Vec::new());
        for &schema in schemas.iter().filter(|&&schema| !self.is_tied(schema)) {
            self.whole_keywords(schema, &mut changes);
            self.parts_of_keywords(schema, &mut inner);
        }
        changes.retain(|change| {
            let keyword = own.get(&change.node());
            let is_left = keyword.is_none_or(|&keyword| keyword == Keyword::Type);
            !is_left && !guess.keywords.contains(&change.node())
        });
        changes.extend(inner.into_iter().filter(|change| match *change {
            Change::Drop(list, name) if own.get(&list) == Some(&Keyword::Required) => {
                let others = guess.names.as_ref().is_some_and(|names| !names.contains(&name));
                guess.keywords.contains(&list) && others
            }
            _ => !guess.properties.contains(&change.node()),
        }));
        changes
    }

    /// A list of required names that is longer than `maxProperties`.
    fn too_many_names(&self, items: &[Item]) -> Option<Guess> {
        let most = of(items, Keyword::MaxProperties)
            .filter_map(|item| Some((self.number(item.value)?, item.value)));
        let (most, limit) = most.min_by(|(a, _), (b, _)| a.cmp(b))?;
        let counts = of(items, Keyword::Required).map(|item| {
            let names: FxHashSet<&str> = self.strings(item.value).into_iter().collect();
            (names.len() as u64, item.value)
        });
        let (count, names) = counts.max_by_key(|&(count, _)| count)?;
        let keywords = [names, limit].into_iter().collect();
        (most < count.into()).then(|| Guess { keywords, ..Guess::default() })
    }

    /// A required name that is not in the `properties` beside an `additionalProperties` of `false`.
    fn undeclared_name(&self, items: &[Item]) -> Option<Guess> {
        let closing = [Keyword::AdditionalProperties, Keyword::UnevaluatedProperties];
        let closing = closing.into_iter().flat_map(|keyword| of(items, keyword));
        for closed in closing.filter(|item| self.is_false(item.value)) {
            let beside = self.keywords(closed.schema);
            let has = |keyword| beside.iter().find(|(other, _)| *other == keyword);
            if has(Keyword::PatternProperties).is_some() {
                continue;
            }
            let mut declared: FxHashSet<&str> = FxHashSet::default();
            if let Some(&(_, properties)) = has(Keyword::Properties) {
                declared.extend(self.document.members(properties).iter().map(|(name, _)| name));
            }
            for list in of(items, Keyword::Required) {
                let mut names = self.names(list);
                if let Some((node, _)) = names.find(|(_, name)| !declared.contains(name)) {
                    return Some(Guess {
                        keywords: [list.value, closed.value].into_iter().collect(),
                        names: Some([node].into_iter().collect()),
                        properties: FxHashSet::default(),
                    });
                }
            }
        }
        None
    }

    /// Required names with a schema in several lists of `properties`.
    fn repeated_names(&self, items: &[Item]) -> Option<Guess> {
        let mut schemas: FxHashMap<&str, SmallVec<[NodeId; 2]>> = FxHashMap::default();
        for item in of(items, Keyword::Properties) {
            for (name, schema) in self.document.members(item.value).iter() {
                if !self.accepts_all(schema) {
                    schemas.entry(name).or_default().push(schema);
                }
            }
        }
        schemas.retain(|_, schemas| schemas.len() > 1);
        let mut guess = Guess { names: Some(FxHashSet::default()), ..Guess::default() };
        for list in of(items, Keyword::Required) {
            for (node, name) in self.names(list) {
                let Some(schemas) = schemas.get(name) else { continue };
                guess.keywords.insert(list.value);
                guess.names.get_or_insert_default().insert(node);
                guess.properties.extend(schemas);
            }
        }
        (!guess.keywords.is_empty()).then_some(guess)
    }

    /// The names of a list of `required`, with their nodes.
    fn names<'a>(&'a self, list: &Item) -> impl Iterator<Item = (NodeId, &'a str)> {
        let nodes = self.document.items(list.value).iter();
        nodes.filter_map(|&node| match self.document.value(node) {
            Value::String(name) => Some((node, name)),
            _ => None,
        })
    }
}

/// The items of a keyword.
fn of(items: &[Item], keyword: Keyword) -> impl Iterator<Item = &Item> {
    items.iter().filter(move |item| item.keyword == Some(keyword))
}

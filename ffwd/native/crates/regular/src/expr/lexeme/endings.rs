//! Short texts that complete a lexeme from a state.
//!
//! There is one for each required language, and if other languages matter, one for each outcome
//! that is found. They are shortest texts, by a search that the least length of the rest guides, so
//! most searches never backtrack.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Builder, LexState, Lexeme, Residuals, StateKey};
use crate::expr::derivative::{ByteClasses, Derivatives, MANY_OPERANDS, MAX_ALTERNATIVES};
use crate::expr::lower::Spelling;
use crate::expr::store::{Expr, ExprId, ExprStore};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// A text that leads from a state to one in which the lexeme may end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The bytes to append, quotes and escapes included.
    pub text: Arc<[u8]>,
    /// The state after them.
    pub end: LexState,
}

/// How many expressions one search may look at.
const MAX_STEPS: usize = 100_000;
/// The most outcomes of a state.
const MAX_OUTCOMES: usize = 64;
/// The number of expressions that one search for a lexeme's other outcomes examines: those that are
/// not one required language alone. To show that there is none may need the product of large
/// languages, such as multiples and bounds.
const MAX_VISITS: usize = 1 << 13;
/// The same for the text of such an outcome from one state. The first applies if the lexeme has the
/// outcome, the second, for all such outcomes together, if that is unknown.
const MAX_VISITS_OF_STATE: usize = 1 << 9;
const MAX_VISITS_UNSURE: usize = 1 << 6;
/// The number of expressions that the search for a string of an intersection of many examines, and
/// the same for a shortest one.
const MAX_MET: usize = 1 << 12;
/// For shorter strings, to look at what is alive costs less.
const LONG: u32 = 16;
const MAX_VISITS_OF_MANY: usize = 1 << 12;
/// How many states are cached at once, and how many bytes of each.
const MAX_REMEMBERED: usize = 1 << 14;
const MAX_REMEMBERED_BYTES: usize = 1 << 10;
/// Above this many repetitions, the search skips some.
const MANY: u32 = 64;
/// How many nested or adjacent counted repetitions are written at once: each is a search within the
/// one before.
const MAX_WITHIN: usize = 16;
/// How often one search tries to write many repetitions at once.
const MAX_TRIES: usize = 8;
/// How many parts of a union may be examined separately, and how deeply nested.
const MAX_PARTS: usize = 8;
const MAX_PARTS_DEPTH: usize = 6;
/// How many bytes a text may have.
const MAX_TEXT: usize = 1 << 18;

/// The preferred bytes among those that a lexeme does not distinguish: most tokenizers have long
/// runs of the first.
const WRITTEN: &[u8] = b" a0-_.,:/A";

/// The endings of states.
pub(super) type Endings = FxHashMap<LexState, Arc<[Ending]>>;

/// Whether a lexeme has an outcome; outcomes that are missing here are unknown.
pub(super) type Possible = Option<Arc<FxHashMap<Asked, bool>>>;

/// The demand on an outcome, by the numbers of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    Required(u8),
    /// A required language, and that one, or without that one.
    Both(u8, u8),
    Without(u8, u8),
    /// All that are left.
    All,
}

/// The effort of a search that shows that an expression is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// Whatever it takes: what is empty is not searched.
    Endless,
    /// This many expressions in all, without asking whether they are empty.
    Visits(usize),
}

impl Patience {
    /// Whether there is enough for one more expression.
    fn has_one_more(&mut self) -> bool {
        match self {
            Self::Endless => true,
            Self::Visits(0) => false,
            Self::Visits(left) => {
                *left -= 1;
                true
            }
        }
    }
}

impl Lexeme {
    /// Short texts that end the lexeme from a state. None only if the search takes too long.
    ///
    /// # Errors
    /// A limit of the lexeme is passed.
    pub fn endings(&self, state: LexState) -> Result<Arc<[Ending]>, LimitExceeded> {
        if let Some(known) = self.builder.lock().endings.get(&state) {
            return Ok(known.clone());
        }
        let mut found: Vec<Ending> = Vec::new();
        for text in self.texts_to_end(state)? {
            let mut end = Some(state);
            for &byte in &text {
                end = match end {
                    // A lexeme may have ended before its text did.
                    Some(end) if !end.is_final() => self.next(end, byte)?,
                    _ => None,
                };
            }
            let Some(end) = end.filter(|end| end.accepts()) else { continue };
            match found.iter_mut().find(|known| self.accept(known.end) == self.accept(end)) {
                Some(known) if known.text.len() <= text.len() => {}
                Some(known) => *known = Ending { text: text.into(), end },
                None => found.push(Ending { text: text.into(), end }),
            }
        }
        let found: Arc<[Ending]> = found.into();
        // Long ones are found again as fast.
        if found.iter().map(|ending| ending.text.len()).sum::<usize>() > MAX_REMEMBERED_BYTES {
            return Ok(found);
        }
        let mut builder = self.builder.lock();
        if builder.endings.len() >= MAX_REMEMBERED {
            builder.endings.clear();
        }
        builder.endings.insert(state, found.clone());
        Ok(found)
    }

    fn texts_to_end(&self, state: LexState) -> Result<Vec<Vec<u8>>, LimitExceeded> {
        let (before, residuals) = match &self.data(state).key {
            StateKey::Closed(_) => return Ok(vec![Vec::new()]),
            StateKey::Inside(residuals) => (None, residuals),
            StateKey::Quote => match &self.data(self.inside()).key {
                StateKey::Inside(residuals) => (Some(b'"'), residuals),
                _ => return Ok(Vec::new()),
            },
        };
        let closes = self.spec.spelling == Spelling::JsonString;
        let mut builder = self.builder.lock();
        let outcomes = self.outcomes(&mut builder.store, residuals)?;
        let possible = match outcomes.iter().all(|(asked, _)| matches!(asked, Asked::Required(_))) {
            true => Arc::default(),
            false => self.possible(&mut builder)?,
        };
        let Builder { store, derivatives, .. } = &mut *builder;
        let mut unsure = MAX_VISITS_UNSURE;
        let mut texts = Vec::new();
        for (asked, id) in outcomes {
            let mut patience = match (asked, possible.get(&asked)) {
                (Asked::Required(_), _) => Patience::Endless,
                (_, Some(false)) => continue,
                (_, Some(true)) => Patience::Visits(straight(store, id) + MAX_VISITS_OF_STATE),
                (_, None) => Patience::Visits(unsure),
            };
            let text = shortest(store, derivatives, &self.classes, id, 0, &mut patience)?;
            if let (None, Patience::Visits(left)) = (possible.get(&asked), patience) {
                unsure = left;
            }
            if let Some(text) = text {
                texts.push(before.into_iter().chain(text).chain(closes.then_some(b'"')).collect());
            }
        }
        Ok(texts)
    }

    /// Which outcomes the lexeme has. An outcome that the lexeme lacks is missing in all of its
    /// states, so this search may take longer than that of a state.
    fn possible(
        &self,
        builder: &mut Builder,
    ) -> Result<Arc<FxHashMap<Asked, bool>>, LimitExceeded> {
        if let Some(known) = &builder.possible {
            return Ok(known.clone());
        }
        let mut possible = FxHashMap::default();
        if let StateKey::Inside(residuals) = &self.data(self.inside()).key {
            let Builder { store, derivatives, .. } = builder;
            let mut left = MAX_VISITS;
            for (asked, id) in self.outcomes(store, residuals)? {
                if matches!(asked, Asked::Required(_)) {
                    continue;
                }
                let most = left + straight(store, id);
                let mut patience = Patience::Visits(most);
                let text = shortest(store, derivatives, &self.classes, id, 0, &mut patience)?;
                let Patience::Visits(rest) = patience else { continue };
                if text.is_some() || rest > 0 {
                    possible.insert(asked, text.is_some());
                }
                left = left.saturating_sub(most - rest);
            }
        }
        let possible = Arc::new(possible);
        builder.possible = Some(possible.clone());
        Ok(possible)
    }

    /// Languages of what may follow, so that each outcome that is wanted is one of them.
    fn outcomes(
        &self,
        store: &mut ExprStore,
        residuals: &Residuals,
    ) -> Result<Vec<(Asked, ExprId)>, LimitExceeded> {
        let is_required = |language: u8| self.spec.required >> language & 1 == 1;
        let alive = || residuals.iter().copied();
        let alone: Vec<(u8, ExprId)> =
            alive().filter(|&(language, _)| is_required(language)).collect();
        let mut outcomes: Vec<(Asked, ExprId)> =
            alone.iter().map(|&(language, id)| (Asked::Required(language), id)).collect();
        if alive().count() > 1 {
            for &(language, required) in &alone {
                for (beside, other) in alive() {
                    if other == required || outcomes.len() >= MAX_OUTCOMES {
                        continue;
                    }
                    let both = store.and(&[required, other])?;
                    outcomes.push((Asked::Both(language, beside), both));
                    let without = store.not(other)?;
                    let without = store.and(&[required, without])?;
                    outcomes.push((Asked::Without(language, beside), without));
                }
            }
            let all: Vec<ExprId> = alive().map(|(_, id)| id).collect();
            outcomes.push((Asked::All, store.and(&all)?));
        }
        let mut seen = rustc_hash::FxHashSet::default();
        outcomes.retain(|&(_, id)| id != ExprId::EMPTY && seen.insert(id));
        Ok(outcomes)
    }
}

/// The number of expressions that a search visits if it goes straight to a shortest string.
fn straight(store: &ExprStore, id: ExprId) -> usize {
    (store.min_len(id) as usize).min(MAX_STEPS)
}

/// One of the bytes of a class.
fn written(classes: &ByteClasses, class: usize) -> u8 {
    let is_in = |byte: &&u8| usize::from(classes.of[usize::from(**byte)]) == class;
    WRITTEN.iter().find(is_in).copied().unwrap_or(classes.representatives[class])
}

/// The path of the search to an expression.
struct Visit {
    from: ExprId,
    byte: u8,
    length: u32,
}

/// A shortest string of an expression. `None` if there is none, or it takes too long to find.
fn shortest(
    store: &mut ExprStore,
    derivatives: &mut Derivatives,
    classes: &ByteClasses,
    start: ExprId,
    within: usize,
    patience: &mut Patience,
) -> Result<Option<Vec<u8>>, LimitExceeded> {
    let has_many = store.operands(start) >= MANY_OPERANDS && store.min_len(start) >= LONG;
    if *patience == Patience::Endless && has_many {
        let met = all_met(store, derivatives, classes, start)?;
        if let Some((text, least)) = met {
            if text.len() <= least as usize {
                return Ok(Some(text));
            }
            // Whether each expression is alive is a search of its own, so only few are examined.
            let mut patience = Patience::Visits(straight(store, start) + MAX_VISITS_OF_MANY);
            let exact = shortest(store, derivatives, classes, start, within, &mut patience)?;
            return Ok(Some(exact.unwrap_or(text)));
        }
    }
    if *patience == Patience::Endless && !derivatives.is_alive(store, classes, start)? {
        return Ok(None);
    }
    if within < MAX_WITHIN
        && has_magnitude(store, start, MAX_PARTS_DEPTH)
        && store.stands_alone(start)
    {
        return of_parts(store, derivatives, classes, start, within + 1, patience);
    }
    let bytes: Vec<u8> = (0..classes.len()).map(|class| written(classes, class)).collect();
    let mut visits: FxHashMap<ExprId, Visit> = FxHashMap::default();
    visits.insert(start, Visit { from: start, byte: 0, length: 0 });
    // Ordered by the length of the whole, then by the rest, then the newest first; with the class
    // from which the expression is examined.
    let least = store.min_len(start);
    let mut queue = BinaryHeap::from([Reverse((least, least, Reverse(0usize), start, 0usize))]);
    let mut steps = 0;
    let mut tries = MAX_TRIES;
    while let Some(Reverse((whole, left, _, current, first))) = queue.pop() {
        meter::charge(4)?;
        let length = visits[&current].length;
        if whole > length.saturating_add(left) {
            continue;
        }
        let rest = match store.nullable(current) {
            true => Some(Vec::new()),
            false if first == 0 && tries > 0 && within < MAX_WITHIN => {
                let found = repeated(store, derivatives, classes, current, within + 1, patience)?;
                tries -= usize::from(store.counts(current));
                found
            }
            false => None,
        };
        // Only where nothing else can be shorter.
        if let Some(rest) = rest.filter(|rest| first == 0 && rest.len() <= left as usize) {
            let mut text = Vec::with_capacity(length as usize + rest.len());
            let mut at = current;
            while at != start {
                let visit = &visits[&at];
                text.push(visit.byte);
                at = visit.from;
            }
            text.reverse();
            text.extend_from_slice(&rest);
            return Ok(Some(text));
        }
        // If many operands must still be met, a byte that serves one of them is tried first.
        let mut order: Vec<usize> = (0..bytes.len()).collect();
        if store.operands(current) >= MANY_OPERANDS {
            let mut left = Vec::with_capacity(bytes.len());
            for &byte in &bytes {
                let next = derivatives.derive(store, current, byte)?;
                left.push(store.sum_of_min_lens(next));
            }
            order.sort_by_key(|&class| left[class]);
        }
        for (class, &byte) in order.iter().map(|&at| &bytes[at]).enumerate().skip(first) {
            let next = derivatives.derive(store, current, byte)?;
            let known = visits.get(&next).is_some_and(|visit| visit.length <= length + 1);
            if known || next == ExprId::EMPTY {
                continue;
            }
            if *patience == Patience::Endless && !derivatives.is_alive(store, classes, next)? {
                continue;
            }
            steps += 1;
            if steps > MAX_STEPS || !patience.has_one_more() {
                return Ok(None);
            }
            visits.insert(next, Visit { from: current, byte, length: length + 1 });
            let rest = store.min_len(next);
            let sum = (length + 1).saturating_add(rest);
            queue.push(Reverse((sum, rest, Reverse(steps), next, 0)));
            if sum <= whole {
                // Straight on; the other bytes only if that leads nowhere.
                queue.push(Reverse((
                    whole,
                    left.max(rest + 1),
                    Reverse(steps),
                    current,
                    class + 1,
                )));
                break;
            }
        }
    }
    Ok(None)
}

/// A string of an intersection of many operands, and a lower bound on the length of all: each step
/// prefers what leaves the operands least, added together. Mostly a short one, without a look at
/// what is alive. `None` if it takes too long to find.
fn all_met(
    store: &mut ExprStore,
    derivatives: &mut Derivatives,
    classes: &ByteClasses,
    start: ExprId,
) -> Result<Option<(Vec<u8>, u32)>, LimitExceeded> {
    let bytes: Vec<u8> = (0..classes.len()).map(|class| written(classes, class)).collect();
    let mut visits: FxHashMap<ExprId, Visit> = FxHashMap::default();
    let mut queue = BinaryHeap::new();
    let mut least = u32::MAX;
    // Unions that are met by different operands mislead the sum.
    for part in store.alternatives(start, MAX_ALTERNATIVES)? {
        if part != ExprId::EMPTY && !visits.contains_key(&part) {
            least = least.min(store.min_len(part));
            queue.push(Reverse((store.sum_of_min_lens(part), Reverse(visits.len()), part)));
            visits.insert(part, Visit { from: part, byte: 0, length: 0 });
        }
    }
    while let Some(Reverse((_, _, current))) = queue.pop() {
        meter::charge(4)?;
        let length = visits[&current].length;
        if store.nullable(current) {
            let mut text = Vec::with_capacity(length as usize);
            let mut at = current;
            while visits[&at].from != at {
                text.push(visits[&at].byte);
                at = visits[&at].from;
            }
            text.reverse();
            return Ok(Some((text, least)));
        }
        if visits.len() > MAX_MET {
            break;
        }
        for &byte in &bytes {
            let next = derivatives.derive(store, current, byte)?;
            if next == ExprId::EMPTY || visits.contains_key(&next) {
                continue;
            }
            queue.push(Reverse((store.sum_of_min_lens(next), Reverse(visits.len()), next)));
            visits.insert(next, Visit { from: current, byte, length: length + 1 });
        }
    }
    Ok(None)
}

/// Whether an expression is a union or concatenation that contains a magnitude: its shortest string
/// follows from those of its parts, and that of a magnitude is known.
fn has_magnitude(store: &ExprStore, id: ExprId, depth: usize) -> bool {
    match store.get(id) {
        Expr::Magnitude(_) => true,
        Expr::Concat(head, tail) if depth > 0 => {
            has_magnitude(store, *head, depth - 1) || has_magnitude(store, *tail, depth - 1)
        }
        Expr::Or(ids) if depth > 0 => {
            ids.len() <= MAX_PARTS && ids.iter().any(|&id| has_magnitude(store, id, depth - 1))
        }
        _ => false,
    }
}

/// A shortest string of an expression by those of its parts.
fn of_parts(
    store: &mut ExprStore,
    derivatives: &mut Derivatives,
    classes: &ByteClasses,
    id: ExprId,
    within: usize,
    patience: &mut Patience,
) -> Result<Option<Vec<u8>>, LimitExceeded> {
    match store.get(id).clone() {
        Expr::Magnitude(magnitude) => {
            let text = magnitude.shortest();
            meter::charge(16 + text.as_ref().map_or(0, String::len))?;
            Ok(text.map(String::into_bytes))
        }
        Expr::Concat(head, tail) => {
            let head = shortest(store, derivatives, classes, head, within, patience)?;
            let Some(head) = head else { return Ok(None) };
            let tail = shortest(store, derivatives, classes, tail, within, patience)?;
            Ok(tail.map(|tail| [head, tail].concat()))
        }
        Expr::Or(ids) => {
            let mut best: Option<Vec<u8>> = None;
            for &id in &*ids {
                let found = shortest(store, derivatives, classes, id, within, patience)?;
                let Some(found) = found else { continue };
                if best.as_ref().is_none_or(|best| found.len() < best.len()) {
                    best = Some(found);
                }
            }
            Ok(best)
        }
        _ => Ok(None),
    }
}

/// A shortest string of an expression that begins with many repetitions: a shortest string of the
/// operand, that many times. `None` for any other expression.
fn repeated(
    store: &mut ExprStore,
    derivatives: &mut Derivatives,
    classes: &ByteClasses,
    start: ExprId,
    within: usize,
    patience: &mut Patience,
) -> Result<Option<Vec<u8>>, LimitExceeded> {
    let (head, tail) = match *store.get(start) {
        Expr::Concat(head, tail) => (head, tail),
        _ => (start, ExprId::EPSILON),
    };
    let Expr::Repeat { inner, min, .. } = *store.get(head) else { return Ok(None) };
    let length = u64::from(store.min_len(inner)).saturating_mul(min.into());
    // The context of lookarounds differs between positions.
    if min < MANY || length > MAX_TEXT as u64 || !store.stands_alone(start) {
        return Ok(None);
    }
    let Some(one) = shortest(store, derivatives, classes, inner, within, patience)? else {
        return Ok(None);
    };
    let Some(rest) = shortest(store, derivatives, classes, tail, within, patience)? else {
        return Ok(None);
    };
    if (one.len() as u64).saturating_mul(min.into()) > MAX_TEXT as u64 {
        return Ok(None);
    }
    Ok(Some([one.repeat(min as usize), rest].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{LexemeSpec, Verdict};
    use crate::regex::{rust_dialect, Ast};
    use std::collections::VecDeque;

    fn ast(pattern: &str) -> Ast {
        rust_dialect::anchored(pattern).unwrap()
    }

    fn lexeme(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> Lexeme {
        Lexeme::new(LexemeSpec::new(spelling, languages)).unwrap()
    }

    /// The length of the shortest text, by looking at all of them in order of their length.
    fn by_length(lexeme: &Lexeme, state: LexState) -> usize {
        let mut seen = rustc_hash::FxHashSet::from_iter([state]);
        let mut pending = VecDeque::from([(state, 0)]);
        while let Some((state, length)) = pending.pop_front() {
            if state.accepts() {
                return length;
            }
            for byte in 0..=255 {
                if let Some(next) = lexeme.next(state, byte).unwrap().filter(|&s| seen.insert(s)) {
                    pending.push_back((next, length + 1));
                }
            }
        }
        panic!("every state is alive")
    }

    #[test]
    fn endings_are_shortest_from_every_state() {
        let patterns = [
            "a|bcd|bce+",
            "[0-9]{4}-[0-9]{2}",
            "x{30,}y?",
            "(ab|c){5,9}",
            "é*(€|😀)",
            "a*b{3}c*",
            "(aaaa|b)c{2}|d{9}",
            "\"*",
            "",
        ];
        let both = |a: &str, b: &str| Ast::intersection([ast(a), ast(b)]);
        let mut languages: Vec<Ast> = patterns.iter().map(|pattern| ast(pattern)).collect();
        languages.push(both("(?s:.*)x(?s:.*)y", "[a-z0-9]{7,12}"));
        languages.push(both("(a|bb){3,}", "(aa|b){4,7}"));
        languages.push(Ast::intersection([ast("[ab]*"), Ast::complement(ast("a{0,5}|b"))]));
        for language in languages {
            for spelling in [Spelling::Utf8, Spelling::JsonString] {
                let lexeme = lexeme(spelling, [language.clone()]);
                let mut states = vec![lexeme.start()];
                let mut at = 0;
                while at < states.len().min(60) {
                    let state = states[at];
                    at += 1;
                    let endings = lexeme.endings(state).unwrap();
                    assert_eq!(endings.len(), 1);
                    assert_eq!(endings[0].text.len(), by_length(&lexeme, state), "{language:?}");
                    for byte in 0..=255 {
                        let next = lexeme.next(state, byte).unwrap();
                        states.extend(next.filter(|next| !states.contains(next)));
                    }
                }
            }
        }
    }

    #[test]
    fn each_outcome_that_others_tell_apart_has_an_ending() {
        let languages: Arc<[Ast]> = [ast("[a-z]+"), ast("q+"), ast("[a-q]{3}")].into();
        let spec = LexemeSpec {
            required: 1,
            ..LexemeSpec::new(Spelling::Utf8, languages.iter().cloned())
        };
        let lexeme = Lexeme::new(spec).unwrap();
        let endings = lexeme.endings(lexeme.start()).unwrap();
        let mut verdicts: Vec<Verdict> =
            endings.iter().map(|ending| lexeme.accept(ending.end)).collect();
        verdicts.sort_unstable();
        assert_eq!(verdicts, [0b001, 0b011, 0b101, 0b111]);
        for ending in endings.iter() {
            let length = if lexeme.accept(ending.end) & 0b100 == 0 { 1 } else { 3 };
            assert_eq!(ending.text.len(), length, "{ending:?}");
        }
    }

    /// All of some unions of conjunctions of patterns that are searched for.
    fn unions_of_conjunctions(unions: &[[[&str; 3]; 3]], beside: &[&str]) -> Ast {
        let conjunction = |patterns: &[&str; 3]| Ast::intersection(patterns.iter().map(|p| ast(p)));
        let union = |parts: &[[&str; 3]; 3]| Ast::alternation(parts.iter().map(conjunction));
        Ast::intersection(unions.iter().map(union).chain(beside.iter().map(|p| ast(p))))
    }

    #[test]
    fn a_dozen_patterns_are_met_at_once() {
        let unions = [
            [
                [".{40}", ".*xy7.*", ".*y78.*"],
                [".{40}", ".*yz7.*", ".*z78.*"],
                [".{40}", ".*zx7.*", ".*x78.*"],
            ],
            [
                [r"\w*", r".*\d\d.*", ".*[x;y].*"],
                [r"\w*", r".*\d\d.*", ".*[y;z].*"],
                [r"\w*", r".*\d\d.*", ".*[z;x].*"],
            ],
            [
                [r"\w+.*", ".*7.*8.*", ".*xz.*"],
                [r"\w+.*", ".*7.*8.*", ".*x8.*"],
                [r"\w+.*", ".*7.*8.*", ".*x7.*"],
            ],
        ];
        let language = unions_of_conjunctions(&unions, &[".*[xX][78].*[qQ].*", ".{0,200}"]);
        let lexeme = lexeme(Spelling::JsonString, [language]);
        let before = lexeme.builder.lock().store.len();
        lexeme.endings(lexeme.start()).unwrap();
        // To decide for each byte of the text whether it leads anywhere takes many times as many.
        let made = lexeme.builder.lock().store.len() - before;
        assert!(made < 20_000, "{made}");
        let mut state = lexeme.start();
        // From the beginning, and after some of a text that ends there.
        for byte in *b"\"aaaaaaaa" {
            let endings = lexeme.endings(state).unwrap();
            let written = lexeme.endings(lexeme.start()).unwrap()[0].text.len();
            assert_eq!(written, 42);
            assert!(!endings.is_empty() && endings[0].text.len() <= 42);
            state = lexeme.next(state, byte).unwrap().expect("it is alive");
        }
    }

    /// The texts that are tried first are as short as those of the whole search.
    #[test]
    fn many_operands_have_shortest_endings() {
        let unions = [
            [["ab|ba", "[ab]*", ".*"], [".{3}", "c.*", ".*d"], ["e+", ".*", ".{2,4}"]],
            [[".*b", ".*", ".*"], [".*d", ".{2,}", ".*"], ["[de]*", ".*e.*", ".*"]],
            [[".{2}", ".*", ".*"], [".*c.*", ".*", ".*"], ["[a-e]*", ".{3,5}", ".*"]],
        ];
        let besides: [&[&str]; 4] =
            [&["[a-e]*", ".{2,9}"], &[".*d.*", ".{1,6}"], &[".*e", ".*e.*e.*"], &[".{4}", ".*"]];
        let mut compared = 0;
        for beside in besides {
            let language = unions_of_conjunctions(&unions, beside);
            let lexeme = lexeme(Spelling::Utf8, [language]);
            if !lexeme.is_alive() {
                continue;
            }
            let mut states = vec![lexeme.start()];
            let mut at = 0;
            while at < states.len() {
                let state = states[at];
                at += 1;
                let endings = lexeme.endings(state).unwrap();
                assert_eq!(endings[0].text.len(), by_length(&lexeme, state), "{beside:?}");
                compared += 1;
                for byte in 0..=255 {
                    let next = lexeme.next(state, byte).unwrap();
                    states.extend(next.filter(|next| !states.contains(next)));
                }
            }
        }
        assert!(compared > 20, "{compared}");
    }

    #[test]
    fn long_texts_are_found_straight() {
        let lexeme = lexeme(Spelling::JsonString, [ast("[a-z]{9000,}(x|yy)")]);
        let endings = lexeme.endings(lexeme.start()).unwrap();
        assert_eq!(endings[0].text.len(), 9003);
        for (pattern, length) in [
            ("[a-z]{200000,}", 200_002),
            ("(ab|c){70000}d", 70_003),
            ("x(yé{3}){300,400}z{100}", 1 + 300 * 7 + 100 + 2),
            ("((a{80}){80}|b{90}){100}", 9_002),
        ] {
            let lexeme = self::lexeme(Spelling::JsonString, [ast(pattern)]);
            let endings = lexeme.endings(lexeme.start()).unwrap();
            assert_eq!(endings[0].text.len(), length, "{pattern}");
        }
    }
}

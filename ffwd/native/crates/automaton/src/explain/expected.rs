//! The allowed continuations of a text, for people: slower than a mask, and bounded.
//!
//! A thread has its current lexeme and the stack after it. These lead back to the terminals of the
//! grammar that the lexeme consists of, and to the schemas that require a JSON value.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::json::punctuation::index;
use crate::json::tables::Json;
use crate::rules::leaf::Leaf;
use crate::rules::tables::Rules;
use crate::run::automaton::Automaton;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayStateId, NameId, ObjectStateId, QueryId, StackId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_grammar::NodeId;
use ffwd_json_schema::{Normal, SchemaId};
use ffwd_regular::expr::{LexState, Lexeme, LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// The kind of a continuation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The end of the text.
    End,
    /// Lexemes of the grammar's rules; several if the same follows them.
    Terminals(Vec<NodeId>),
    /// A text of a regular language that is no single node of the grammar.
    Language(Ast),
    /// A token of a set.
    Tokens(NodeId),
    /// A key of an object.
    Key {
        /// Allowed declared names, at most twelve.
        names: Vec<Arc<str>>,
        /// How many more declared names are allowed.
        more: usize,
        /// Whether an undeclared key is allowed.
        others: bool,
    },
    /// A JSON value of some of these types.
    Value(Types),
    /// A bracket, a comma, a colon or a line break, with the white space around it.
    Mark(&'static str),
}

/// Types of JSON values, and values where they are few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Types {
    /// Names of JSON types, and `true` and `false`.
    pub types: Vec<&'static str>,
    /// As JSON texts, listed instead of the types of numbers and strings.
    pub values: Vec<String>,
    /// How many more values are allowed.
    pub more_values: usize,
}

/// An allowed continuation, with its rules and schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The thing itself.
    pub what: What,
    /// Whether a part of it is already written.
    pub begun: bool,
    /// The schemas of which the JSON value around must satisfy one.
    pub schemas: Vec<SchemaId>,
    /// Bytes that complete it.
    pub example: Option<Arc<[u8]>>,
}

/// How many keys and values are listed one by one.
const MAX_LISTED: usize = 12;
/// Fewer ways to end than this are all that a lexeme has.
const FEW_ENDINGS: usize = 64;
/// How many of the last bytes are examined to find which terminals have begun.
pub const TAIL: usize = 4_096;

/// Says of threads what people ask.
#[derive(Clone, Copy, Debug)]
pub struct Explaining<'a> {
    pub(crate) automaton: &'a Automaton,
}

impl Automaton {
    /// Which continuations are allowed, and why others are not.
    pub fn explaining(&self) -> Explaining<'_> {
        Explaining { automaton: self }
    }
}

impl Explaining<'_> {
    /// Returns the continuations of threads, at most `most`, and how many more there are. `tail`
    /// has the last bytes of the text, of which [`TAIL`] are examined.
    ///
    /// # Errors
    /// A limit of the automaton is exceeded.
    pub fn expected(
        &self,
        threads: &[Thread],
        tail: &[u8],
        most: usize,
    ) -> Result<(Vec<Expected>, usize)> {
        let tail = &tail[tail.len().saturating_sub(TAIL)..];
        let mut found: Vec<Expected> = Vec::new();
        for thread in threads {
            self.expected_of(thread, tail, &mut found)?;
            // Threads are many only where there are many readings.
            if found.len() > 64 * most.max(1) {
                break;
            }
        }
        for thread in self.after_lexemes(threads)? {
            self.expected_of(&thread, &[], &mut found)?;
            if found.len() > 64 * most.max(1) {
                break;
            }
        }
        let mut distinct: Vec<Expected> = Vec::new();
        let mut places: FxHashMap<(What, bool, Vec<SchemaId>), usize> = FxHashMap::default();
        for expected in found {
            let key = (expected.what.clone(), expected.begun, expected.schemas.clone());
            match places.get(&key) {
                Some(&place) => {
                    let known = &mut distinct[place];
                    known.example = known.example.take().or(expected.example);
                }
                None => {
                    places.insert(key, distinct.len());
                    distinct.push(expected);
                }
            }
        }
        let left_out = distinct.len().saturating_sub(most);
        distinct.truncate(most);
        Ok((distinct, left_out))
    }

    /// The threads that begin where the lexemes of these may end here.
    pub(crate) fn after_lexemes(&self, threads: &[Thread]) -> Result<Vec<Thread>> {
        let mut after = Vec::new();
        for thread in threads {
            if let ThreadLexeme::Lexeme(index) = thread.lexeme {
                let accept = self.automaton.lexeme(index).accept(thread.lex_state());
                if accept != 0 {
                    let stack = self.automaton.exit_thread(thread, accept)?;
                    after.extend_from_slice(self.automaton.starts(stack)?);
                }
            }
        }
        Ok(after)
    }

    fn expected_of(&self, thread: &Thread, tail: &[u8], found: &mut Vec<Expected>) -> Result<()> {
        let &Cell { frame, .. } = self.automaton.cell(thread.stack);
        let index = match thread.lexeme {
            ThreadLexeme::End => {
                let (what, schemas) = (What::End, Vec::new());
                found.push(Expected { what, begun: false, schemas, example: None });
                return Ok(());
            }
            ThreadLexeme::Tokens(set) => {
                let (what, schemas) = (What::Tokens(NodeId(set)), Vec::new());
                found.push(Expected { what, begun: false, schemas, example: None });
                return Ok(());
            }
            ThreadLexeme::Key => {
                found.extend(self.expected_key(thread)?);
                return Ok(());
            }
            ThreadLexeme::Escape(_) => {
                // What the character is part of.
                let before = found.len();
                let escaping = self.automaton.escaping();
                let read = escaping.map_or(*thread, |escaping| escaping.before(thread).0);
                self.expected_of(&read, tail, found)?;
                for expected in &mut found[before..] {
                    expected.begun = true;
                    expected.example = None;
                }
                return Ok(());
            }
            ThreadLexeme::Lexeme(index) => index,
        };
        let lexeme = self.automaton.lexeme(index).clone();
        let begun = !lexeme.is_start(thread.lex_state());
        let mut push = |what: What, schemas: Vec<SchemaId>, example: Option<Arc<[u8]>>| {
            found.push(Expected { what, begun, schemas, example });
        };
        let text = shortest(&lexeme, thread.lex_state(), |_| true)?;
        let Some(json) = self.automaton.json().filter(|_| is_json(frame, self.automaton.json()))
        else {
            match (self.automaton.rules(), frame) {
                (Some(rules), Frame::Row(_) | Frame::Begun) => {
                    let endings = lexeme.endings(thread.lex_state())?.len();
                    for (place, language) in lexeme.spec().languages.iter().enumerate() {
                        // Parts of a divided row contain the others too, and have no exit for them.
                        if self
                            .automaton
                            .leads_nowhere(self.automaton.exit_thread(thread, 1 << place)?)
                        {
                            continue;
                        }
                        let ends = |verdict: Verdict| verdict >> place & 1 == 1;
                        let example = shortest(&lexeme, thread.lex_state(), ends)?;
                        // With few ways to end, all of them are known.
                        if begun && example.is_none() && endings < FEW_ENDINGS {
                            continue;
                        }
                        let at = (&*lexeme, thread.lex_state());
                        if let Some(what) = self.terminals(rules, language, at, tail)? {
                            push(what, Vec::new(), example);
                        }
                    }
                }
                (Some(rules), _) => {
                    let languages = &lexeme.spec().languages;
                    for language in languages.iter() {
                        let what =
                            self.terminals(rules, language, (&lexeme, thread.lex_state()), tail)?;
                        if let Some(what) = what {
                            push(what, Vec::new(), text.clone());
                        }
                    }
                }
                (None, _) => {
                    let language = Ast::alternation(lexeme.spec().languages.iter().cloned());
                    push(What::Language(language), Vec::new(), text);
                }
            }
            return Ok(());
        };
        let place = json.layouts.place(index);
        let what = match frame {
            Frame::Value(query) => {
                let types = match (begun, place) {
                    (true, Some(index::OPEN_OBJECT | index::OPEN_ARRAY)) => None,
                    (true, _) => Some(self.scalar_types(json, query, &lexeme)?),
                    (false, _) => Some(self.types(json, query, |_| true)?),
                };
                types.map_or(What::Mark(mark(place)), What::Value)
            }
            Frame::Part(_) if begun => What::Mark("{"),
            Frame::Part(_) => What::Value(Types { types: vec!["object"], ..Types::default() }),
            Frame::ObjectOpen(_) | Frame::ObjectKey(_) | Frame::ObjectAfter(_) => {
                let marks = json.marks(self.automaton, thread.stack)?;
                match place {
                    Some(index::CLOSE_EMPTY_OBJECT) => What::Mark("}"),
                    _ if frame.is_between_parts() && index == marks.close_object => What::Mark("}"),
                    _ if frame.is_between_parts() && index == marks.comma => What::Mark(","),
                    _ if Some(index) == marks.line => What::Mark("\n"),
                    _ => What::Key { names: Vec::new(), more: 0, others: true },
                }
            }
            Frame::ArrayOpen(_) | Frame::ArrayAfter(_) => {
                let marks = json.marks(self.automaton, thread.stack)?;
                match index {
                    _ if index == marks.comma => What::Mark(","),
                    _ if Some(index) == marks.line => What::Mark("\n"),
                    _ => What::Mark("]"),
                }
            }
            _ => What::Mark(mark(place)),
        };
        let schemas = self.asking(json, thread.stack);
        push(what, schemas, text);
        Ok(())
    }

    /// Returns the nodes of the grammar that a language of a lexeme consists of, except those that
    /// the text so far excludes. `None` if it excludes all of them.
    fn terminals(
        &self,
        rules: &Rules,
        language: &Ast,
        at: (&Lexeme, LexState),
        tail: &[u8],
    ) -> Result<Option<What>> {
        let parts: FxHashSet<&Ast> = alternatives(language).iter().collect();
        let mut nodes: Vec<(NodeId, &Ast)> = Vec::new();
        for (&node, leaf) in &rules.program.leaves {
            if let Leaf::Lexeme { language, .. } = leaf {
                if alternatives(language).iter().all(|part| parts.contains(part)) {
                    nodes.push((node, language));
                }
            }
        }
        nodes.sort_unstable_by_key(|&(node, _)| node);
        if nodes.is_empty() {
            return Ok(Some(What::Language(language.clone())));
        }
        let (lexeme, state) = at;
        if let Some(begun) = since_start(lexeme, state, tail)? {
            let mut alive = Vec::with_capacity(nodes.len());
            for &(node, language) in &nodes {
                let own = self
                    .automaton
                    .lexeme_store()
                    .get(&LexemeSpec::new(Spelling::Utf8, [language.clone()]))?;
                if let Some(end) = run(&own, begun)? {
                    // A lexeme that has ended is not in progress.
                    if !end.is_final() {
                        alive.push((node, language));
                    }
                }
            }
            nodes = alive;
        }
        let nodes: Vec<NodeId> = nodes.into_iter().map(|(node, _)| node).collect();
        Ok((!nodes.is_empty()).then_some(What::Terminals(nodes)))
    }

    fn expected_key(&self, thread: &Thread) -> Result<Option<Expected>> {
        let Some(json) = self.automaton.json() else { return Ok(None) };
        let node = json.keys.node(thread.key_node());
        let allowed: Vec<NameId> = json.keys.allowed_names(&node).collect();
        let name = |&name: &NameId| json.keys.name(&node, name);
        let names: Vec<Arc<str>> = allowed.iter().take(MAX_LISTED).map(name).collect();
        let example = match (allowed.first(), node.base) {
            (Some(&name), _) => Some(json.keys.rest_of_name(&node, name).into()),
            (None, Some(base)) => {
                shortest(self.automaton.lexeme(base.lexeme), base.state, |_| true)?
            }
            (None, None) => None,
        };
        let more = allowed.len() - names.len();
        let what = What::Key { names, more, others: node.base.is_some() };
        let schemas = self.asking(json, thread.stack);
        Ok(Some(Expected { what, begun: !node.is_before_quote(), schemas, example }))
    }

    /// Returns the types of a query's scalars that a lexeme may be.
    fn scalar_types(&self, json: &Json, query: QueryId, lexeme: &Lexeme) -> Result<Types> {
        let string = lexeme.spec().spelling == Spelling::JsonString;
        let first = shortest(lexeme, lexeme.start(), |_| true)?;
        let first = first.and_then(|text| text.first().copied());
        let number = !string && first.is_some_and(|byte| byte == b'-' || byte.is_ascii_digit());
        self.types(json, query, |kind| match kind {
            "string" => string,
            "number" => number,
            "literal" => !string && !number,
            _ => false,
        })
    }

    fn types(&self, json: &Json, query: QueryId, keep: impl Fn(&str) -> bool) -> Result<Types> {
        let mut types = Types::default();
        for &schema in json.queries.get(query.0).required_schemas() {
            let normal: Arc<Normal> = json.schema.normal(schema)?;
            let mut add = |name: &'static str| {
                if !types.types.contains(&name) {
                    types.types.push(name);
                }
            };
            if keep("literal") {
                let words = [
                    ("null", normal.null),
                    ("true", normal.boolean_true),
                    ("false", normal.boolean_false),
                ];
                words.into_iter().filter(|word| word.1).for_each(|word| add(word.0));
            }
            if keep("object") && !normal.objects.is_empty() {
                add("object");
            }
            if keep("array") && !normal.arrays.is_empty() {
                add("array");
            }
            let mut listed: Vec<String> = Vec::new();
            let mut all = 0;
            for number in normal.numbers.iter().filter(|_| keep("number")) {
                match self.listed_numbers(&number.text) {
                    Some(numbers) => {
                        all += numbers.len();
                        listed.extend(numbers.into_iter().take(MAX_LISTED));
                    }
                    None if self.is_whole(&number.text)? => add("integer"),
                    None => add("number"),
                }
            }
            for string in normal.strings.iter().filter(|_| keep("string")) {
                match &string.one_of {
                    Some(texts) => {
                        all += texts.len();
                        let texts = texts.iter().take(MAX_LISTED);
                        listed
                            .extend(texts.map(|text| serde_json::Value::from(&**text).to_string()));
                    }
                    None => add("string"),
                }
            }
            let room = MAX_LISTED.saturating_sub(types.values.len()).min(listed.len());
            types.more_values += all - room;
            types.values.extend(listed.into_iter().take(room));
        }
        Ok(types)
    }

    /// The numbers of a language that is written as a list of them.
    fn listed_numbers(&self, language: &Ast) -> Option<Vec<String>> {
        let literal = |ast: &Ast| match ast {
            Ast::Literal(text) => Some(text.to_string()),
            _ => None,
        };
        alternatives(language).iter().map(literal).collect()
    }

    /// Whether a short number of a language may have no fraction but zeros.
    fn is_whole(&self, language: &Ast) -> Result<bool> {
        let spec = LexemeSpec::new(Spelling::Utf8, [language.clone()]);
        let lexeme = self.automaton.lexeme_store().get(&spec)?;
        let Some(text) = shortest(&lexeme, lexeme.start(), |_| true)? else { return Ok(false) };
        if text.contains(&b'.') {
            return Ok(false);
        }
        let Some(end) = run(&lexeme, &text)?.filter(|end| !end.is_final()) else {
            return Ok(true);
        };
        let Some(fraction) = lexeme.next(end, b'.')? else { return Ok(true) };
        for digit in b'1'..=b'9' {
            if lexeme.next(fraction, digit)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns schemas, one of which the value on top of a stack, or its current container, must
    /// satisfy.
    pub(crate) fn asking(&self, json: &Json, stack: StackId) -> Vec<SchemaId> {
        let mut stack = stack;
        loop {
            let &Cell { frame, parent, .. } = self.automaton.cell(stack);
            match frame {
                Frame::Value(query) => return self.required(json, query, Verdict::MAX),
                Frame::ObjectOpen(id) | Frame::ObjectKey(id) | Frame::ObjectAfter(id) => {
                    return self.asking_for_object(json, id);
                }
                Frame::ArrayOpen(id) | Frame::ArrayAfter(id) => {
                    return self.asking_for_array(json, id);
                }
                Frame::Part(group) => {
                    let starts = json.value_starts.lock();
                    let query = starts.iter().find(|(_, starts)| starts.objects.contains(&group));
                    let query = query.map(|(&query, _)| query);
                    drop(starts);
                    return query
                        .map_or(Vec::new(), |query| self.required(json, query, Verdict::MAX));
                }
                // A colon, before the value.
                Frame::Colon => stack = parent,
                _ => return Vec::new(),
            }
        }
    }

    fn asking_for_object(&self, json: &Json, id: ObjectStateId) -> Vec<SchemaId> {
        let facts = json.object_facts(id);
        let starts = json.value_starts.lock();
        let query = starts.iter().find(|(_, starts)| starts.objects.contains(&facts.group));
        let query = query.map(|(&query, _)| query);
        drop(starts);
        query.map_or(Vec::new(), |query| self.required(json, query, facts.owners))
    }

    pub(crate) fn asking_for_array(&self, json: &Json, id: ArrayStateId) -> Vec<SchemaId> {
        let (group, owners) = json.arrays.array_owners(id);
        let starts = json.value_starts.lock();
        let query = starts.iter().find(|(_, starts)| starts.arrays == Some(group));
        let query = query.map(|(&query, _)| query);
        drop(starts);
        query.map_or(Vec::new(), |query| self.required(json, query, owners))
    }

    /// The required schemas of a query whose bits are set; all of them if none is.
    fn required(&self, json: &Json, query: QueryId, bits: Verdict) -> Vec<SchemaId> {
        let all = json.queries.get(query.0).required_schemas();
        let kept = all.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
        let kept: Vec<SchemaId> = kept.map(|(_, &schema)| schema).collect();
        if kept.is_empty() {
            all.to_vec()
        } else {
            kept
        }
    }
}

/// Whether a lexeme on a stack belongs to a JSON value.
fn is_json(frame: Frame, json: Option<&Json>) -> bool {
    match frame {
        Frame::Lexeme(_) | Frame::Row(_) | Frame::Begun | Frame::Tokens(_) => false,
        _ => json.is_some(),
    }
}

/// The text of a lexeme without white space, by its place.
fn mark(place: Option<u32>) -> &'static str {
    match place {
        Some(index::OPEN_OBJECT) => "{",
        Some(index::OPEN_ARRAY) => "[",
        Some(index::COMMA) => ",",
        Some(index::CLOSE_EMPTY_OBJECT | index::CLOSE_OBJECT) => "}",
        Some(index::CLOSE_EMPTY_ARRAY | index::CLOSE_ARRAY) => "]",
        _ => ":",
    }
}

fn alternatives(language: &Ast) -> &[Ast] {
    match language {
        Ast::Alternation(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// The shortest text that ends a lexeme from a state with the wanted verdict.
fn shortest(
    lexeme: &Lexeme,
    state: LexState,
    wanted: impl Fn(Verdict) -> bool,
) -> Result<Option<Arc<[u8]>>> {
    let endings = lexeme.endings(state)?;
    let fitting = endings.iter().filter(|ending| wanted(lexeme.accept(ending.end)));
    // One that is over already says little.
    let best = fitting.min_by_key(|ending| (ending.text.is_empty(), ending.text.len()));
    Ok(best.map(|ending| ending.text.clone()))
}

/// Returns the state of a lexeme after a text.
fn run(lexeme: &Lexeme, text: &[u8]) -> Result<Option<LexState>> {
    if !lexeme.is_alive() {
        return Ok(None);
    }
    let mut state = lexeme.start();
    for &byte in text {
        match lexeme.next(state, byte)? {
            Some(next) if !state.is_final() => state = next,
            _ => return Ok(None),
        }
    }
    Ok(Some(state))
}

/// The longest suffix of a text that leads a lexeme to a state; `None` at its start, or if its
/// beginning is too far back.
fn since_start<'t>(lexeme: &Lexeme, state: LexState, tail: &'t [u8]) -> Result<Option<&'t [u8]>> {
    if state == lexeme.start() || !lexeme.is_alive() {
        return Ok(None);
    }
    // The states of the lexeme for each start so far, with the first start of each state.
    let mut begun: FxHashMap<LexState, usize> = FxHashMap::default();
    for (at, &byte) in tail.iter().enumerate() {
        begun.entry(lexeme.start()).or_insert(at);
        let mut next: FxHashMap<LexState, usize> = FxHashMap::default();
        for (before, from) in begun {
            if before.is_final() {
                continue;
            }
            if let Some(after) = lexeme.next(before, byte)? {
                let first = next.entry(after).or_insert(from);
                *first = (*first).min(from);
            }
        }
        begun = next;
    }
    Ok(begun.get(&state).map(|&from| &tail[from..]))
}

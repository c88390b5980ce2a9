//! Tokens that end an item of an array with `uniqueItems` and continue after it. Whether such a
//! token is allowed can depend on the item, while masks are computed for all items at once.

use super::lexeme_mask::ExitGroup;
use super::walk::View;
use ffwd_automaton::{last_value, Automaton, Result, Spare, TextId, Thread, SPARE_ITEMS};
use ffwd_regular::expr::json_text::closing_quote;
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};
use smallvec::SmallVec;

/// A token that a mask for all texts does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    pub token: TokenId,
    /// The offset in the token at which the next item starts, if only the current item matters: the
    /// token is allowed if the items differ.
    next_item: Option<u32>,
}

impl Doubt {
    pub fn of(token: TokenId) -> Self {
        Self { token, next_item: None }
    }

    /// Each token once.
    pub fn settle(mut doubts: Vec<Self>) -> Box<[Self]> {
        doubts.sort_unstable();
        // If several items end in a token, the first one is examined with everything after it.
        doubts.dedup_by_key(|doubt| doubt.token);
        doubts.into()
    }

    /// Returns whether the token is allowed in this text.
    fn resolve(
        self,
        vocabulary: &Vocabulary,
        automaton: &Automaton,
        threads: &[Thread],
    ) -> Result<bool> {
        let text = vocabulary.text(self.token);
        if let (Some(at), [thread]) = (self.next_item, threads) {
            let (before, after) = text.split_at(at as usize);
            if let Some(item) = item_before(automaton, thread.transcript, before) {
                if let Some(PlainStrings { ended, begun }) = PlainStrings::of(&item, after) {
                    let is_string = item.first() == Some(&b'"');
                    let is_new = || automaton.items().are_new(thread, &ended, begun);
                    if !automaton.has_history(thread.stack) || is_string && is_new() {
                        return Ok(true);
                    }
                }
            }
        }
        // It may also be taken as a whole, whatever its text is.
        Ok(automaton.read(threads, self.token.0, text)?.is_some())
    }
}

/// The answers to the doubts of one text. Many tokens differ in blanks alone, which decide nothing:
/// one of them is read.
pub struct Answers<'a> {
    vocabulary: &'a Vocabulary,
    automaton: &'a Automaton,
    threads: &'a [Thread],
    /// Bytes after which blanks decide nothing.
    marks: &'static [u8],
    /// Whether tokens without their blanks at the end are allowed.
    known: SmallVec<[(&'a [u8], bool); 8]>,
    /// The tokens that have been read.
    pub num_read: u64,
}

impl<'a> Answers<'a> {
    pub fn new(
        vocabulary: &'a Vocabulary,
        automaton: &'a Automaton,
        threads: &'a [Thread],
    ) -> Self {
        let is_free = threads.iter().all(|thread| automaton.items().blanks_are_free(thread));
        let marks: &[u8] = if is_free { b",:\"}]" } else { b",:" };
        Self { vocabulary, automaton, threads, marks, known: SmallVec::new(), num_read: 0 }
    }

    /// Returns whether a token is allowed. `in_some` says whether it is in texts with other items
    /// and names.
    pub fn is_allowed(&mut self, doubt: Doubt, in_some: bool) -> Result<bool> {
        if !in_some && !self.automaton.items().may_have_to_repeat() {
            // Earlier items and names only exclude.
            #[cfg(debug_assertions)]
            assert!(!doubt.resolve(self.vocabulary, self.automaton, self.threads)?);
            return Ok(false);
        }
        let text = self.vocabulary.text(doubt.token);
        // Elsewhere than in JSON blanks can decide.
        let is_plain = in_some && self.automaton.program().is_none();
        let shared = is_plain.then(|| without_blanks(text, self.marks)).flatten();
        if let Some(shared) = shared {
            if let Some(&(_, known)) = self.known.iter().find(|(known, _)| *known == shared) {
                return Ok(known);
            }
        }
        self.num_read += 1;
        let allowed = doubt.resolve(self.vocabulary, self.automaton, self.threads)?;
        if let Some(shared) = shared {
            self.known.push((shared, allowed));
        }
        Ok(allowed)
    }
}

/// The text without the blanks at its end, if these are outside of strings and follow a mark. Only
/// there JSON has line breaks and tabs.
fn without_blanks<'t>(text: &'t [u8], marks: &[u8]) -> Option<&'t [u8]> {
    let rest = text.trim_ascii_end();
    let blanks = &text[rest.len()..];
    let is_outside = blanks.is_empty() || blanks.iter().any(|blank| b"\t\n\r".contains(blank));
    (is_outside && rest.last().is_some_and(|last| marks.contains(last))).then_some(rest)
}

/// An item and the strings that follow its comma, which all differ as far as they are written.
struct PlainStrings<'t> {
    ended: SmallVec<[&'t [u8]; 4]>,
    /// The one that has not ended.
    begun: &'t [u8],
}

impl<'t> PlainStrings<'t> {
    /// `None` if they may be equal, or something else follows.
    fn of(item: &'t [u8], after: &'t [u8]) -> Option<Self> {
        let mut ended: SmallVec<[&[u8]; 4]> = SmallVec::from_slice(&[item]);
        let mut next = after.trim_ascii_start();
        while next.first() == Some(&b'"') {
            let Some(end) = closing_quote(&next[1..]).map(|quote| quote + 2) else {
                // A string without its end: an incomplete one can still differ.
                let differs =
                    next.len() == 1 || !ended.iter().any(|earlier| earlier.starts_with(next));
                return differs.then_some(Self { ended, begun: next });
            };
            if ended.contains(&&next[..end]) || ended.len() as u64 + 1 >= SPARE_ITEMS {
                return None;
            }
            ended.push(&next[..end]);
            let rest = next[end..].trim_ascii_start();
            if !rest.contains(&b',') {
                return Some(Self { ended, begun: b"" });
            }
            let [b',', rest @ ..] = rest else { return None };
            next = rest.trim_ascii_start();
            if next.is_empty() {
                return Some(Self { ended, begun: b"" });
            }
        }
        None
    }
}

/// The item that ends, and is followed by a comma, with the first bytes of a token.
fn item_before(automaton: &Automaton, transcript: TextId, bytes: &[u8]) -> Option<Vec<u8>> {
    let json = automaton.json().filter(|_| transcript != TextId::NONE)?;
    let mut text = json.keys.texts.bytes(transcript);
    text.extend_from_slice(bytes.trim_ascii_end().strip_suffix(b",")?);
    Some(last_value(text.trim_ascii_end()).to_vec())
}

/// Returns whether an item has a number with too many digits for later comparisons.
pub fn is_hard_to_compare(automaton: &Automaton, transcript: TextId) -> bool {
    let Some(json) = automaton.json().filter(|_| transcript != TextId::NONE) else { return false };
    has_hard_number(&json.keys.texts.bytes(transcript))
}

/// Whether a text of JSON, which need not have ended, has such a number outside of its strings.
fn has_hard_number(text: &[u8]) -> bool {
    let is_number = |byte: &u8| b"+-.eE".contains(byte) || byte.is_ascii_digit();
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'"' => closing_quote(after).map_or(&[], |quote| &after[quote + 1..]),
            _ => {
                let length = rest.iter().take_while(|byte| is_number(byte)).count();
                let exponent = rest[..length].iter().rposition(|byte| b"eE".contains(byte));
                if length > 64 || exponent.is_some_and(|at| length - at > 4) {
                    return true;
                }
                &rest[length.max(1)..]
            }
        };
    }
    false
}

/// Collects doubts.
#[derive(Debug)]
pub struct Doubts<'v> {
    vocabulary: &'v Vocabulary,
    /// Whether the value of the item can matter.
    spare: Spare,
    found: Vec<Doubt>,
}

impl<'v> Doubts<'v> {
    pub fn new(vocabulary: &'v Vocabulary, spare: Spare) -> Self {
        Self { vocabulary, spare, found: Vec::new() }
    }

    pub fn found(self) -> Vec<Doubt> {
        self.found
    }

    /// Adds the tokens that end an item.
    pub fn add_exits(&mut self, group: &ExitGroup) {
        let trie = self.vocabulary.trie();
        self.add_rests(View { trie: &group.rests, root: NodeId::ROOT });
        for &(root, _) in &group.grafts {
            self.add_rests(View { trie, root });
        }
        for &root in &group.everywhere {
            self.add_if(View { trie, root }, |text| text.contains(&b','));
        }
    }

    /// Adds the tokens below a node at which an item ends.
    pub fn add_rests(&mut self, View { trie, root }: View<'_>) {
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            if self.spare == Spare::None {
                // White space, after which a comma or nothing may be allowed: an array may refuse
                // an item when it closes.
                let closes = |token: &&TokenId| {
                    node != root
                        || self.vocabulary.text(**token).ends_with(b"]")
                        || self.vocabulary.text(**token).ends_with(b"}")
                };
                let ending = trie.tokens_at(node).iter().filter(closes);
                self.found.extend(ending.map(|&token| Doubt::of(token)));
            }
            pending.extend(b" \t\n\r".iter().filter_map(|&space| trie.child(node, space)));
            if let Some(comma) = trie.child(node, b',') {
                for (depth, token) in trie.below(comma) {
                    let at = self.vocabulary.text(token).len() - depth;
                    self.add(token, at);
                }
            }
        }
    }

    fn add(&mut self, token: TokenId, next_item: usize) {
        let next = self.vocabulary.text(token)[next_item..].trim_ascii_start();
        match (self.spare, next) {
            (Spare::None, _) => self.found.push(Doubt::of(token)),
            (_, []) | (Spare::String, b"\"") => {}
            (Spare::Item, _) => self.found.push(Doubt::of(token)),
            (Spare::String, _) => {
                self.found.push(Doubt { token, next_item: u32::try_from(next_item).ok() });
            }
        }
    }

    /// Adds the tokens below a node whose text after the node satisfies `is`.
    pub fn add_if(&mut self, View { trie, root }: View<'_>, is: impl Fn(&[u8]) -> bool) {
        for (depth, token) in trie.below(root) {
            let text = self.vocabulary.text(token);
            if is(&text[text.len() - depth..]) {
                self.found.push(Doubt::of(token));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_hard_to_compare() {
        let long = "1".repeat(65);
        for (text, hard) in [
            ("1e100", false),
            ("1e1000", true),
            ("[1, -2.5E-999", true),
            (&long[1..], false),
            (&long, true),
            (r#"{"a": 1, "b": 1e1000}"#, true),
            (r#""name12345""#, false),
            (r#"["Eve12345\"e12345", true, false, null"#, false),
            (r#"{"e12345": "e12345"#, false),
        ] {
            assert_eq!(has_hard_number(text.as_bytes()), hard, "{text}");
        }
        assert!(!has_hard_number(format!("\"{long}\"").as_bytes()));
    }

    #[test]
    fn blanks_after_marks_decide_nothing() {
        for (text, rest) in [
            ("\"", Some("\"")),
            ("\":\n\n", Some("\":")),
            ("\"},\r\n ", Some("\"},")),
            // They may belong to a string, end a number, or follow the bracket of what is not empty.
            (": ", None),
            ("12\n", None),
            ("[\n", None),
            ("true\n", None),
            ("\n", None),
        ] {
            let found = without_blanks(text.as_bytes(), b",:\"}]");
            assert_eq!(found, rest.map(str::as_bytes), "{text:?}");
        }
    }
}

//! From JSON text to a [`Document`]. No native recursion, so nesting is bounded by a limit and not by
//! a stack.

use super::document::{escaped, Document, DocumentLimits, Kind, Node, NodeId, Text, SMALL_OBJECT};
use super::error::{shortened, LimitExceeded, Result, SchemaError};
use ffwd_bounds::meter;

/// A container whose end has not been read.
struct OpenContainer {
    node: NodeId,
    is_object: bool,
    /// The start of its children in the stack of children.
    children: usize,
}

/// Reads a text as the next document.
pub struct Parser<'t> {
    text: &'t str,
    /// The start of the text in the source of all documents.
    before: usize,
    place: usize,
    root: NodeId,
    document: Document,
    limits: DocumentLimits,
    /// The first object that has a key twice, and the key. Its pointer is known at the end.
    repeated: Option<(NodeId, String)>,
}

const NO_TEXT: Text = Text { start: 0, length: 0, decoded: false };

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, before: usize, document: Document, limits: DocumentLimits) -> Self {
        let root = NodeId(document.nodes.len() as u32);
        Self { text, before, place: 0, root, document, limits, repeated: None }
    }

    pub fn run(mut self) -> Result<Document> {
        let mut open: Vec<OpenContainer> = Vec::new();
        // Children of the open containers, outermost first.
        let mut children: Vec<(Text, NodeId)> = Vec::new();
        let mut key = NO_TEXT;
        loop {
            // A value begins here.
            self.skip_whitespace();
            let parent = open.last().map_or(self.root, |container| container.node);
            let node = self.add(parent)?;
            if !open.is_empty() {
                children.push((key, node));
            }
            let mut closed = true;
            match self.peek() {
                Some(opening @ (b'{' | b'[')) => {
                    self.place += 1;
                    let is_object = opening == b'{';
                    open.push(OpenContainer { node, is_object, children: children.len() });
                    let most = meter::nesting_within(self.limits.nesting as usize);
                    if open.len() > most {
                        let exceeded = LimitExceeded::new("nesting", most);
                        return Err(SchemaError::limit(exceeded, self.pointer(&open, &children)));
                    }
                    self.skip_whitespace();
                    if self.peek() != Some(if is_object { b'}' } else { b']' }) {
                        closed = false;
                        if is_object {
                            key = self.key()?;
                        }
                    }
                }
                Some(b'"') => {
                    let text = self.string()?;
                    self.document.nodes[node.index()].kind = Kind::String(text);
                }
                Some(b'-' | b'0'..=b'9') => {
                    let text = self.number()?;
                    self.document.nodes[node.index()].kind = Kind::Number(text);
                }
                Some(b't') => self.word("true", node, Kind::Boolean(true))?,
                Some(b'f') => self.word("false", node, Kind::Boolean(false))?,
                Some(b'n') => self.word("null", node, Kind::Null)?,
                _ => return Err(self.fault("a JSON value")),
            }
            // After a value: closes finished containers until another value is due.
            while closed {
                self.skip_whitespace();
                let Some(container) = open.last() else { return self.finish() };
                let is_object = container.is_object;
                match self.peek() {
                    Some(b',') if children.len() > container.children => {
                        self.place += 1;
                        if is_object {
                            self.skip_whitespace();
                            key = self.key()?;
                        }
                        closed = false;
                    }
                    Some(b'}') if is_object => {
                        self.place += 1;
                        self.close_object(container.node, &children[container.children..]);
                        children.truncate(container.children);
                        open.pop();
                    }
                    Some(b']') if !is_object => {
                        self.place += 1;
                        let run = &children[container.children..];
                        let start = self.document.items.len() as u32;
                        let length = run.len() as u32;
                        self.document.items.extend(run.iter().map(|&(_, item)| item));
                        let node = container.node;
                        self.document.nodes[node.index()].kind = Kind::Array { start, length };
                        children.truncate(container.children);
                        open.pop();
                    }
                    _ if is_object => return Err(self.fault("`,` or `}`")),
                    _ => return Err(self.fault("`,` or `]`")),
                }
            }
        }
    }

    fn close_object(&mut self, node: NodeId, run: &[(Text, NodeId)]) {
        let document = &mut self.document;
        let start = document.members.len() as u32;
        document.members.extend_from_slice(run);
        let mut sorted = 0;
        let repeated = if run.len() > SMALL_OBJECT {
            let mut offsets: Vec<u32> = (0..run.len() as u32).collect();
            let name = |offset: u32| document.text(run[offset as usize].0);
            offsets.sort_by(|&a, &b| name(a).cmp(name(b)));
            let repeated = offsets.windows(2).find(|pair| name(pair[0]) == name(pair[1]));
            let repeated = repeated.map(|pair| name(pair[0]).to_owned());
            document.sorted.push(offsets.into());
            sorted = document.sorted.len() as u32;
            repeated
        } else {
            let names = || run.iter().map(|&(key, _)| document.text(key));
            let repeated =
                names().enumerate().find(|&(i, name)| names().take(i).any(|other| other == name));
            repeated.map(|(_, name)| name.to_owned())
        };
        document.nodes[node.index()].kind =
            Kind::Object { start, length: run.len() as u32, sorted };
        if let (Some(name), None) = (repeated, &self.repeated) {
            self.repeated = Some((node, name));
        }
    }

    fn finish(self) -> Result<Document> {
        if self.place < self.text.len() {
            return Err(self.fault("the end of the document"));
        }
        match self.repeated {
            None => Ok(self.document),
            Some((node, name)) => Err(SchemaError::invalid(
                None,
                self.document.pointer(node),
                format!(
                    "the key {:?} appears twice in one object; keep one of them",
                    shortened(&name)
                ),
            )),
        }
    }

    fn add(&mut self, parent: NodeId) -> Result<NodeId> {
        let nodes = &mut self.document.nodes;
        if nodes.len() as u64 >= self.limits.nodes {
            return Err(self.passed("schema_nodes", self.limits.nodes));
        }
        nodes.push(Node { kind: Kind::Null, parent });
        Ok(NodeId(nodes.len() as u32 - 1))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.place).copied()
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.place += 1;
        }
    }

    fn word(&mut self, word: &str, node: NodeId, kind: Kind) -> Result<()> {
        if !self.text.as_bytes()[self.place..].starts_with(word.as_bytes()) {
            return Err(self.fault(&format!("`{word}`")));
        }
        self.place += word.len();
        self.document.nodes[node.index()].kind = kind;
        Ok(())
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<Text> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.fault("`:`"));
        }
        self.place += 1;
        Ok(key)
    }

    fn digits(&mut self) -> Result<()> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.fault("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.place += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Text> {
        let start = self.place;
        if self.peek() == Some(b'-') {
            self.place += 1;
        }
        if self.peek() == Some(b'0') {
            self.place += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.place += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.place += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.place += 1;
            }
            self.digits()?;
        }
        let length = (self.place - start) as u32;
        Ok(self.raw(start, length))
    }

    /// Text as it stands in the source.
    fn raw(&self, start: usize, length: u32) -> Text {
        Text { start: (self.before + start) as u32, length, decoded: false }
    }

    /// A string, from its opening quote to past its closing one.
    fn string(&mut self) -> Result<Text> {
        self.place += 1;
        let start = self.place;
        let mut run = start;
        let mut decoded_start = None;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    decoded_start.get_or_insert(self.document.decoded.len());
                    self.document.decoded.push_str(&self.text[run..self.place]);
                    let character = self.escape()?;
                    self.document.decoded.push(character);
                    run = self.place;
                }
                Some(byte) if byte >= 0x20 => self.place += 1,
                Some(_) => return Err(self.fault("an escape for the control character")),
                None => return Err(self.fault("the closing quote of a string")),
            }
        }
        let end = self.place;
        self.place += 1;
        let Some(decoded_start) = decoded_start else {
            let length = (end - start) as u32;
            return Ok(self.raw(start, length));
        };
        let decoded = &mut self.document.decoded;
        decoded.push_str(&self.text[run..end]);
        let length = (decoded.len() - decoded_start) as u32;
        Ok(Text { start: decoded_start as u32, length, decoded: true })
    }

    fn escape(&mut self) -> Result<char> {
        self.place += 1;
        let character = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.fault("an escape of JSON")),
        };
        self.place += 1;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let first = self.four_hex_digits()?;
        let code = match first {
            0xD800..=0xDBFF if self.text[self.place..].starts_with("\\u") => {
                self.place += 1;
                match self.four_hex_digits()? {
                    second @ 0xDC00..=0xDFFF => {
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    _ => return Err(self.fault("the second half of a surrogate pair")),
                }
            }
            _ => first,
        };
        char::from_u32(code).ok_or_else(|| self.fault("no lone surrogate"))
    }

    /// The digits after the `u` at the current place.
    fn four_hex_digits(&mut self) -> Result<u32> {
        self.place += 1;
        let digits = self.text.as_bytes().get(self.place..self.place + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(self.fault("four hexadecimal digits"));
        };
        let value = digits.iter().fold(0, |value, &digit| {
            value * 16 + char::from(digit).to_digit(16).unwrap_or_default()
        });
        self.place += 4;
        Ok(value)
    }

    /// The position of the innermost open container, while none of them is a node yet.
    fn pointer(&self, open: &[OpenContainer], children: &[(Text, NodeId)]) -> String {
        let mut pointer = self.document.pointer(self.root);
        for (outer, inner) in open.iter().zip(open.iter().skip(1)) {
            pointer.push('/');
            let Some(place) = inner.children.checked_sub(1) else { continue };
            if outer.is_object {
                pointer += &escaped(self.document.text(children[place].0));
            } else {
                pointer += &(place - outer.children).to_string();
            }
        }
        pointer
    }

    fn fault(&self, expected: &str) -> SchemaError {
        let before = &self.text.as_bytes()[..self.place.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |p| p + 1);
        let column = 1 + String::from_utf8_lossy(&before[line_start..]).chars().count();
        SchemaError::invalid(
            None,
            self.document.pointer(self.root),
            format!("the schema is not JSON: expected {expected} at line {line} column {column}"),
        )
    }

    fn passed(&self, limit: &'static str, maximum: u64) -> SchemaError {
        let pointer = self.document.pointer(self.root);
        SchemaError::limit(LimitExceeded { limit, maximum }, pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Value;
    use crate::SchemaErrorKind;

    const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, nodes: 1000, nesting: 64 };

    fn show(document: &Document, node: NodeId) -> String {
        match document.value(node) {
            Value::Null => "null".into(),
            Value::Boolean(value) => value.to_string(),
            Value::Number(text) => text.to_owned(),
            Value::String(text) => serde_json::to_string(text).unwrap(),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|&item| show(document, item)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| {
                        format!("{}:{}", serde_json::to_string(key).unwrap(), show(document, value))
                    })
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    #[test]
    fn documents_are_read_as_serde_json_reads_them() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            r#"{"b":1,"a":[true,false,null,-0.5e+10,"x"],"":{"":{}}}"#,
            "[1,\n[2,[3 , [ ]]],{\"k\" :\t0}]\r\n",
            r#""a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00 \u0000""#,
            r#"["plain","\u0041","é😀",""]"#,
            "12345678901234567890.123E-5",
        ] {
            let document = Document::parse(text, LIMITS).unwrap();
            let expected: serde_json::Value = serde_json::from_str(text).unwrap();
            let shown: serde_json::Value =
                serde_json::from_str(&show(&document, NodeId::ROOT)).unwrap();
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "{a:1}",
            "[1 2]",
            "[1}",
            r#"{"a":1]"#,
            "tru",
            "nul",
            "01",
            "1.",
            "-",
            "1e",
            "+1",
            ".5",
            "'a'",
            r#"""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\ud800""#,
            r#""\ud800\u0041""#,
            r#""\udc00""#,
            "\"\n\"",
            "1 1",
            "[]]",
            "NaN",
            "{} x",
            "\u{feff}1",
            r#""\u12é4""#,
            r#""\"#,
            r#""\u""#,
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
            let error = Document::parse(text, LIMITS).unwrap_err();
            assert_eq!(error.kind, SchemaErrorKind::Invalid { keyword: None }, "{text}");
        }
        let error = Document::parse("[1,\n é2]", LIMITS).unwrap_err();
        assert!(error.message.ends_with("at line 2 column 2"), "{error}");
    }

    #[test]
    fn every_prefix_of_a_document_is_refused() {
        let text = r#"{"a":[1.5e3,"x\u00e9\n",{"b":true}],"c":null}"#;
        for end in 0..text.len() {
            assert!(Document::parse(&text[..end], LIMITS).is_err(), "{end}");
        }
    }

    #[test]
    fn repeated_keys_are_refused() {
        let error = Document::parse(r#"{"x":[{"a":1,"\u0061":2}]}"#, LIMITS).unwrap_err();
        assert_eq!(error.pointer, "/x/0");
        let many: Vec<String> = (0..40).map(|i| format!("\"k{}\":0", i % 39)).collect();
        assert!(Document::parse(&format!("{{{}}}", many.join(",")), LIMITS).is_err());
    }

    #[test]
    fn members_are_found_and_pointers_escape() {
        let many: Vec<String> = (0..40).map(|i| format!("\"k{i}\":{i}")).collect();
        let text = format!(r#"{{"many":{{{}}},"a/b~c":["x",{{"d":0}}]}}"#, many.join(","));
        let document = Document::parse(&text, LIMITS).unwrap();
        let root = document.members(NodeId::ROOT);
        let many = document.members(root.get("many").unwrap());
        for i in 0..40 {
            let found = many.get(&format!("k{i}")).unwrap();
            assert!(matches!(document.value(found), Value::Number(n) if n == i.to_string()));
        }
        assert_eq!(many.get("k40"), None);
        assert_eq!(root.get("a"), None);
        let array = root.get("a/b~c").unwrap();
        let inner = document.members(document.items(array)[1]).get("d").unwrap();
        assert_eq!(document.pointer(inner), "/a~1b~0c/1/d");
        assert_eq!(document.pointer(NodeId::ROOT), "");
    }

    #[test]
    fn limits_are_typed_errors() {
        let limit = |text: &str| match Document::parse(text, LIMITS).unwrap_err().kind {
            SchemaErrorKind::Limit { limit, .. } => limit,
            other => panic!("{other:?}"),
        };
        assert_eq!(limit(&"[".repeat(100_000)), "nesting");
        assert_eq!(limit(&format!("[{}1]", "1,".repeat(2000))), "schema_nodes");
        assert_eq!(limit(&" ".repeat(2 << 20)), "schema_bytes");
        let nested = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(Document::parse(&nested, LIMITS).is_ok());
    }
}

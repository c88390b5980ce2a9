//! The lexer of a grammar's text.

use serde::de::IgnoredAny;

use super::fault::Fault;
use super::token::{Spanned, Token};

const SIGNS: [&str; 21] = [
    "->", "::", "..", ":", ",", ".", "(", ")", "{", "}", "[", "]", "~", "|", "&", "=", "?", "*",
    "+", "!", "_",
];

const DIRECTIVES: [&str; 11] = [
    "%ignore",
    "%import",
    "%declare",
    "%override",
    "%extend",
    "%json",
    "%regex",
    "%llguidance",
    "%grammar_options",
    "%lark",
    "%if",
];

/// All tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned<'_>>, Fault> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens: Vec<Spanned<'_>> = Vec::new();
    while let Some(token) = lexer.next()? {
        let newline = matches!(token.token, Token::Newline);
        if !newline || !matches!(tokens.last(), Some(Spanned { token: Token::Newline, .. })) {
            tokens.push(token);
        }
        let before_json = ["%json", "%regex", "%llguidance", "%grammar_options"];
        if matches!(token.token, Token::Directive(name) if before_json.contains(&name)) {
            tokens.push(lexer.json()?);
        }
    }
    Ok(tokens)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Result<Option<Spanned<'t>>, Fault> {
        self.skip_blanks();
        let at = self.at;
        let Some(first) = self.peek(0) else { return Ok(None) };
        let token = match first {
            b'\n' => self.take(1, Token::Newline),
            b'\r' if self.peek(1) == Some(b'\n') => self.take(2, Token::Newline),
            b'"' => self.string()?,
            b'/' => self.pattern()?,
            b'<' => self.special()?,
            b'%' => self.directive()?,
            b'@' => {
                let name = self.run(1, |byte| in_name(byte) || byte == b'-');
                if name.is_empty() {
                    return Err(Fault::syntax(at, "`@` is followed by the name of a grammar"));
                }
                Token::Reference(name)
            }
            b'0'..=b'9' => self.number(),
            b'-' if self.peek(1).is_some_and(|next| next.is_ascii_digit()) => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' => self.name()?,
            b'_' if self.peek(1).is_some_and(in_name) => self.name()?,
            _ => {
                let rest = self.rest();
                let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
                    return Err(self.stranger());
                };
                self.take(sign.len(), Token::Sign(sign))
            }
        };
        Ok(Some(Spanned { token, at }))
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'/') if self.peek(1) == Some(b'/') => self.skip_line(),
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        let end = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        // The line end is a token, with its carriage return.
        self.at += rest[..end].trim_end_matches('\r').len();
    }

    fn take(&mut self, length: usize, token: Token<'t>) -> Token<'t> {
        self.at += length;
        token
    }

    /// The bytes of a kind after the next few.
    fn run(&mut self, before: usize, kind: impl Fn(u8) -> bool) -> &'t str {
        let begin = self.at + before;
        let length = self.text.as_bytes()[begin..].iter().take_while(|&&byte| kind(byte)).count();
        self.at = begin + length;
        &self.text[begin..self.at]
    }

    fn stranger(&self) -> Fault {
        let character = self.rest().chars().next().unwrap_or_default();
        let hint = match character {
            '\'' => ": a string stands between double quotes",
            '\r' => ": a line ends with a line feed, perhaps behind a carriage return",
            _ => "",
        };
        Fault::syntax(self.at, format!("{character:?} has no meaning here{hint}"))
    }

    fn name(&mut self) -> Result<Token<'t>, Fault> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        let mut end = at;
        // The dash of an arrow is not part of a name.
        while bytes.get(end).is_some_and(|&byte| {
            in_name(byte) || (byte == b'-' && bytes.get(end + 1) != Some(&b'>'))
        }) {
            end += 1;
        }
        let name = &self.text[at..end];
        self.at = end;
        let letters = name.strip_prefix('_').unwrap_or(name);
        let lower = letters.bytes().any(|byte| byte.is_ascii_lowercase());
        let upper = letters.bytes().any(|byte| byte.is_ascii_uppercase());
        if lower == upper || !letters.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let message =
                "a name is in lower case (a rule) or in upper case (a terminal), and its \
                           first letter comes first or after one underscore";
            return Err(Fault::syntax(at, message));
        }
        Ok(Token::Name(name))
    }

    fn number(&mut self) -> Token<'t> {
        let begin = self.at;
        if self.peek(0) == Some(b'-') {
            self.at += 1;
        }
        if self.peek(0) == Some(b'0') && matches!(self.peek(1), Some(b'x' | b'X')) {
            self.run(2, |byte| byte.is_ascii_alphanumeric());
            return Token::Number(&self.text[begin..self.at]);
        }
        self.run(0, |byte| byte.is_ascii_digit());
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|next| next.is_ascii_digit()) {
            self.run(1, |byte| byte.is_ascii_digit());
        }
        Token::Number(&self.text[begin..self.at])
    }

    fn string(&mut self) -> Result<Token<'t>, Fault> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        let mut end = at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') if bytes.get(end + 1).is_some_and(|&next| next != b'\n') => end += 2,
                None | Some(b'\n' | b'\\') => {
                    return Err(Fault::syntax(at, "the string is not closed on its line by `\"`"));
                }
                Some(0..=0x1f | 0x7f) => {
                    let message =
                        "a control character in a string is written as an escape, such as \
                                   `\\t` or `\\u0000`";
                    return Err(Fault::syntax(end, message));
                }
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        let inner = &self.text[at + 1..end];
        let flags = self.flags("i", "the only flag of a string is `i`")?;
        Ok(Token::Text { inner, ignore_case: !flags.is_empty() })
    }

    fn pattern(&mut self) -> Result<Token<'t>, Fault> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        let mut end = at + 1;
        loop {
            match bytes.get(end) {
                Some(b'/') => break,
                Some(b'\\') if end + 1 < bytes.len() => end += 2,
                Some(byte) if *byte != b'\\' => end += 1,
                _ => return Err(Fault::syntax(at, "the pattern is not closed by `/`")),
            }
        }
        self.at = end + 1;
        let pattern = &self.text[at + 1..end];
        let flags = self.flags("imslux", "the flags of a pattern are `i`, `m`, `s`, `u`, `x`")?;
        Ok(Token::Regex { pattern, flags })
    }

    /// The letters directly behind a quote or slash.
    fn flags(&mut self, known: &str, message: &str) -> Result<&'t str, Fault> {
        let at = self.at;
        let flags = self.run(0, in_name);
        if flags.bytes().all(|flag| known.as_bytes().contains(&flag)) {
            return Ok(flags);
        }
        Err(Fault::syntax(at, format!("{message}; a name that follows needs a space before it")))
    }

    fn special(&mut self) -> Result<Token<'t>, Fault> {
        let at = self.at;
        let inner = self.run(1, |byte| !matches!(byte, b'<' | b'>') && !byte.is_ascii_whitespace());
        if inner.is_empty() || self.peek(0) != Some(b'>') {
            let message = "a special token is written `<name>` or `<[ids]>`, without spaces";
            return Err(Fault::syntax(at, message));
        }
        self.at += 1;
        Ok(Token::Special(&self.text[at..self.at]))
    }

    fn directive(&mut self) -> Result<Token<'t>, Fault> {
        let at = self.at;
        self.run(1, |byte| byte.is_ascii_alphabetic() || byte == b'_');
        let name = &self.text[at..self.at];
        if DIRECTIVES.contains(&name) {
            return Ok(Token::Directive(name));
        }
        let message = format!("`{name}` is no directive; there are {}", DIRECTIVES.join(", "));
        Err(Fault::syntax(at, message))
    }

    /// The JSON value that follows.
    fn json(&mut self) -> Result<Spanned<'t>, Fault> {
        self.run(0, |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        let (at, rest) = (self.at, self.rest());
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                self.at += values.byte_offset();
                Ok(Spanned { token: Token::Json(&self.text[at..self.at]), at })
            }
            Some(Err(error)) => {
                let lines = rest.split_inclusive('\n').take(error.line().saturating_sub(1));
                let place = at + lines.map(str::len).sum::<usize>() + error.column().max(1) - 1;
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                Err(Fault::syntax(place, format!("the JSON text cannot be read: {message}")))
            }
            None => Err(Fault::syntax(at, "a JSON text is expected")),
        }
    }
}

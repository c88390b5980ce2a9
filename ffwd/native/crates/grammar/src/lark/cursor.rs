//! The position of the parser among the tokens.

use super::fault::Fault;
use super::token::{Spanned, Token};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How deep groups, conditions, templates and nested grammars may nest.
const MAX_NESTING: usize = 200;

pub(super) struct TokenCursor<'t> {
    tokens: Vec<Spanned<'t>>,
    next: usize,
    /// The end of the text.
    end: usize,
    depth: usize,
}

impl<'t> TokenCursor<'t> {
    pub fn new(tokens: Vec<Spanned<'t>>, end: usize) -> Self {
        Self { tokens, next: 0, end, depth: 0 }
    }

    pub fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).map(|spanned| spanned.token)
    }

    /// The token after the next.
    pub fn second(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next + 1).map(|spanned| spanned.token)
    }

    /// Returns the start of the next token.
    pub fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |spanned| spanned.at)
    }

    pub fn advance(&mut self) {
        self.next += 1;
    }

    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if found == sign)
    }

    pub fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect_sign(&mut self, sign: &str, context: &str) -> Result<(), Fault> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{sign}` {context}")))
    }

    pub fn expect_name(&mut self, what: &str) -> Result<&'t str, Fault> {
        let Some(Token::Name(name)) = self.peek() else { return Err(self.unexpected(what)) };
        self.advance();
        Ok(name)
    }

    pub fn take_newline(&mut self) -> bool {
        let found = matches!(self.peek(), Some(Token::Newline));
        if found {
            self.advance();
        }
        found
    }

    /// The error that something else was expected here.
    pub fn unexpected(&self, expected: &str) -> Fault {
        let found = self.peek().map_or("the end of the grammar".into(), |token| token.described());
        Fault::syntax(self.at(), format!("expected {expected}, found {found}"))
    }

    /// Reads something one level deeper.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let most = meter::nesting_within(MAX_NESTING);
        if self.depth >= most {
            let limit = LimitExceeded::new("nesting", most);
            return Err(Fault::limit(self.at(), limit));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

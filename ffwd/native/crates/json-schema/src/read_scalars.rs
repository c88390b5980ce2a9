//! The keywords for numbers, strings and whole values.

use super::dialect::{Dialect, Keyword};
use super::document::{Document, NodeId, Value};
use super::error::{shortened, LimitExceeded, Result, SchemaError};
use super::formats;
use super::number_range::NumberRange;
use super::reader::{Found, Reader};
use super::schema::{Schema, Types};
use super::StringSpec;
use ffwd_regular::regex::decimal::{MAX_DIGITS, MAX_EXPONENT};
use ffwd_regular::regex::{ecma, Ast, Bound, Decimal, DecimalError, PatternErrorKind};

impl<'d> Reader<'d> {
    pub(super) fn numbers(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        let numeric = Types::NUMBER.with(Types::INTEGER);
        if !schema.types.has(numeric) {
            return Ok(());
        }
        let mut range = NumberRange::default();
        for (keyword, exclusive_keyword, is_minimum) in [
            (Keyword::Minimum, Keyword::ExclusiveMinimum, true),
            (Keyword::Maximum, Keyword::ExclusiveMaximum, false),
        ] {
            let mut limit = |value, exclusive| {
                let end = Bound { value, exclusive };
                if is_minimum {
                    range.limit_below(end);
                } else {
                    range.limit_above(end);
                }
            };
            let mut exclusive = false;
            if let Some(node) = found.get(exclusive_keyword) {
                if self.rules.dialect == Dialect::Draft4 {
                    exclusive = self.boolean(exclusive_keyword, node)?;
                } else {
                    limit(self.number(exclusive_keyword, node)?, true);
                }
            }
            if let Some(node) = found.get(keyword) {
                limit(self.number(keyword, node)?, exclusive);
            }
        }
        if let Some(node) = found.get(Keyword::MultipleOf) {
            let step = self.number(Keyword::MultipleOf, node)?;
            if step <= Decimal::zero() {
                return Err(self.wrong(Keyword::MultipleOf, node, "a number above 0"));
            }
            range.multiple_of.push(step);
        }
        if range.is_any() {
            return Ok(());
        }
        match range.settle() {
            Some(range) => schema.number = Some(Box::new(range)),
            None => schema.types = schema.types.without(numeric),
        }
        Ok(())
    }

    pub(super) fn strings(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        if !schema.types.has(Types::STRING) {
            return Ok(());
        }
        let mut spec = StringSpec::any();
        if let Some(node) = found.get(Keyword::MinLength) {
            spec.min_length =
                u32::try_from(self.count(Keyword::MinLength, node)?).map_err(|_| {
                    let exceeded = LimitExceeded { limit: "min_length", maximum: u32::MAX.into() };
                    SchemaError::limit(exceeded, self.document.pointer(node))
                })?;
        }
        if let Some(node) = found.get(Keyword::MaxLength) {
            // A length that does not fit the type exceeds every string in memory.
            spec.max_length = u32::try_from(self.count(Keyword::MaxLength, node)?).ok();
        }
        if let Some(node) = found.get(Keyword::Pattern) {
            spec.languages.extend(self.pattern(node)?);
        }
        if let Some(node) = found.get(Keyword::Format) {
            spec.languages.extend(self.format(node)?);
        }
        spec.languages.sort_unstable();
        spec.languages.dedup();
        if spec.max_length.is_some_and(|maximum| maximum < spec.min_length)
            || spec.languages.contains(&Ast::Empty)
        {
            schema.types = schema.types.without(Types::STRING);
        } else if !spec.is_any() {
            schema.string = Some(Box::new(spec));
        }
        Ok(())
    }

    fn pattern(&mut self, node: NodeId) -> Result<Option<Ast>> {
        match self.document.value(node) {
            Value::String(pattern) => self.pattern_language(Keyword::Pattern, pattern, node),
            _ => Err(self.wrong(Keyword::Pattern, node, "a regular expression in a string")),
        }
    }

    /// The texts that contain a match of a pattern of `keyword`; `None` if the keyword was left
    /// out.
    pub(super) fn pattern_language(
        &mut self,
        keyword: Keyword,
        pattern: &'d str,
        place: NodeId,
    ) -> Result<Option<Ast>> {
        if let Some(Some(known)) = self.languages.get(&(false, pattern)) {
            return Ok(Some(known.clone()));
        }
        let error = match ecma::search(pattern) {
            Ok(language) => {
                self.languages.insert((false, pattern), Some(language.clone()));
                return Ok(Some(language));
            }
            Err(error) => error,
        };
        let pointer = self.document.pointer(place);
        let message = format!("the pattern {:?}: {error}", shortened(pattern));
        match error.kind {
            PatternErrorKind::Unsupported(_) => {
                self.leave_out(SchemaError::unsupported(keyword.name(), pointer, message))?;
                Ok(None)
            }
            PatternErrorKind::Invalid => {
                Err(SchemaError::invalid(Some(keyword.name()), pointer, message))
            }
            PatternErrorKind::TooLarge(passed) => {
                let maximum = passed.maximum;
                Err(SchemaError::limit(LimitExceeded { limit: passed.limit, maximum }, pointer))
            }
        }
    }

    fn format(&mut self, node: NodeId) -> Result<Option<Ast>> {
        let Value::String(name) = self.document.value(node) else {
            return Err(self.wrong(Keyword::Format, node, "a format's name"));
        };
        if let Some(known) = self.languages.get(&(true, name)) {
            return Ok(known.clone());
        }
        let language = formats::format(name);
        if let (Some(language), Some(example)) = (&language, formats::example(name)) {
            self.witnesses.insert(language.clone(), example);
        }
        self.languages.insert((true, name), language.clone());
        Ok(language)
    }

    /// `enum` and `const`.
    pub(super) fn values(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        schema.constant = found.get(Keyword::Const);
        if let Some(node) = found.get(Keyword::Enum) {
            if !matches!(self.document.value(node), Value::Array(_)) {
                return Err(self.wrong(Keyword::Enum, node, "a list of values"));
            }
            schema.enumeration = Some(node);
        }
        // If the value clearly satisfies the other keywords, they are dropped.
        let single = match (schema.constant, schema.enumeration) {
            (Some(value), None) => Some(value),
            (None, Some(list)) => match self.document.items(list) {
                &[value] => Some(value),
                _ => None,
            },
            _ => None,
        };
        if let Some(value) = single {
            let free = match self.document.value(value) {
                Value::Null => schema.types.has(Types::NULL),
                Value::Boolean(_) => schema.types.has(Types::BOOLEAN),
                Value::String(_) => schema.types.has(Types::STRING) && schema.string.is_none(),
                _ => false,
            };
            if free {
                schema.types = Types::ALL;
                schema.number = None;
                schema.object = None;
                schema.array = None;
            }
        }
        Ok(())
    }
}

/// The value of a number in the document.
pub fn decimal(document: &Document, node: NodeId, text: &str) -> Result<Decimal> {
    Decimal::parse(text).map_err(|error| {
        let exceeded = match error {
            DecimalError::ExponentTooLarge => {
                LimitExceeded { limit: "number_exponent", maximum: MAX_EXPONENT as u64 }
            }
            _ => LimitExceeded { limit: "number_digits", maximum: MAX_DIGITS as u64 },
        };
        SchemaError::limit(exceeded, document.pointer(node))
    })
}

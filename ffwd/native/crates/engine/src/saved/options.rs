//! The options of JSON values as bytes: pairs of a number and a value, and 0 after the last.
//!
//! An option with its default is omitted, so older bytes without the option can be read, and the
//! fingerprints of grammars without it stay the same. A changed default needs another version of
//! the format. An unknown number is an error, because its meaning is unknown.

use std::sync::Arc;

use super::bytes::{Reader, Writer};
use super::SavedError;
use crate::engine::GrammarOptions;
use ffwd_automaton::{
    Escapes, Layout, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing,
};
use ffwd_json_schema::{Parsing, Policy, Registry};

const MALFORMED: SavedError = SavedError::Malformed("how JSON is written");

// The number of an option never changes; a further option takes the next number.
saved_options! {
    writing: Writing { 1 => whitespace, 2 => property_order, 3 => numbers, 6 => escapes }
    parsing: Parsing { 4 => policy, 5 => registry }
}
saved_choice!(PropertyOrder { 0 => Declared, 1 => Any });
saved_choice!(Escapes { 0 => Canonical, 1 => Any });
saved_choice!(Numbers { 0 => Plain, 1 => Any });
saved_choice!(Policy { 0 => Strict, 1 => Lenient });

pub(super) fn write(writer: &mut Writer, options: &GrammarOptions) -> Result<(), SavedError> {
    each(&mut Written(writer), &mut options.clone())?;
    writer.number(0u32);
    Ok(())
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<GrammarOptions, SavedError> {
    let mut options = GrammarOptions::default();
    let mut pairs = Read { next: reader.number()?, reader };
    each(&mut pairs, &mut options)?;
    match pairs.next {
        0 => Ok(options),
        number => Err(SavedError::Option { number }),
    }
}

/// Either direction, so that each option is named once.
trait Pairs {
    fn option<T>(&mut self, number: u8, value: &mut T) -> Result<(), SavedError>
    where
        T: Saved + Default + PartialEq;
}

struct Written<'w>(&'w mut Writer);

impl Pairs for Written<'_> {
    fn option<T>(&mut self, number: u8, value: &mut T) -> Result<(), SavedError>
    where
        T: Saved + Default + PartialEq,
    {
        if *value != T::default() {
            self.0.number(number);
            value.write(self.0);
        }
        Ok(())
    }
}

struct Read<'r, 'b> {
    reader: &'r mut Reader<'b>,
    /// The number of the pair that follows; 0 if none does.
    next: u64,
}

impl Pairs for Read<'_, '_> {
    fn option<T>(&mut self, number: u8, value: &mut T) -> Result<(), SavedError>
    where
        T: Saved + Default + PartialEq,
    {
        if self.next == u64::from(number) {
            *value = T::read(self.reader)?;
            self.next = self.reader.number()?;
        }
        Ok(())
    }
}

/// A value of an option.
pub(super) trait Saved: Sized {
    fn write(&self, writer: &mut Writer);
    fn read(reader: &mut Reader<'_>) -> Result<Self, SavedError>;
}

impl Saved for Whitespace {
    fn write(&self, writer: &mut Writer) {
        match &self.mode {
            WhitespaceMode::Flexible { max_run } => {
                writer.byte(0);
                writer.number(*max_run);
            }
            WhitespaceMode::Compact => writer.byte(1),
            WhitespaceMode::SingleSpace => writer.byte(2),
            WhitespaceMode::Layout(layout) => {
                let (item, key, indent) = layout.parts();
                writer.byte(3);
                writer.text(item);
                writer.text(key);
                writer.flag(indent.is_some());
                writer.text(indent.unwrap_or_default());
            }
            WhitespaceMode::Consistent => writer.byte(4),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SavedError> {
        let mode = match reader.byte()? {
            0 => WhitespaceMode::Flexible { max_run: reader.small()?.min(1 << 16) },
            1 => WhitespaceMode::Compact,
            2 => WhitespaceMode::SingleSpace,
            3 => {
                let (item, key) = (reader.text()?, reader.text()?);
                let indented = reader.flag()?;
                let indent = Some(reader.text()?).filter(|_| indented);
                let layout = Layout::new(item, key, indent).ok_or(MALFORMED)?;
                WhitespaceMode::Layout(Arc::new(layout))
            }
            4 => WhitespaceMode::Consistent,
            _ => return Err(MALFORMED),
        };
        Ok(Self { mode })
    }
}

impl Saved for Arc<Registry> {
    fn write(&self, writer: &mut Writer) {
        let uris: Vec<&str> = self.uris().collect();
        writer.length(uris.len());
        for uri in uris {
            writer.text(uri);
            writer.text(self.get(uri).unwrap_or_default());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, SavedError> {
        let document =
            |reader: &mut Reader<'_>| Ok((reader.text()?.to_owned(), reader.text()?.to_owned()));
        Ok(Self::new(Registry::new(reader.list(document)?)))
    }
}

/// A writer or reader of all options.
macro_rules! saved_options {
    ($($record:ident: $type:ident { $($number:literal => $option:ident),+ })+) => {
        fn each(pairs: &mut impl Pairs, options: &mut GrammarOptions) -> Result<(), SavedError> {
            let GrammarOptions { $($record: $type { $($option),+ }),+ } = options;
            $($(pairs.option($number, $option)?;)+)+
            Ok(())
        }
    };
}
use saved_options;

/// A value out of a few, each by a byte.
macro_rules! saved_choice {
    ($type:ty { $($byte:literal => $name:ident),+ }) => {
        impl Saved for $type {
            fn write(&self, writer: &mut Writer) {
                writer.byte(match self { $(Self::$name => $byte),+ });
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, SavedError> {
                match reader.byte()? {
                    $($byte => Ok(Self::$name),)+
                    _ => Err(MALFORMED),
                }
            }
        }
    };
}
use saved_choice;

//! Recipes of grammars as bytes.

use std::sync::Arc;

use super::ast::{Languages, ReadLanguages};
use super::bytes::{Reader, Writer};
use super::{grammar, seal, unseal, Fingerprint, SavedError, SavedKind};
use crate::engine::{Compiled, Engine, GrammarOptions, Recipe};
use ffwd_automaton::{Layout, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_json_schema::{Policy, Registry};

/// A compiled grammar as bytes.
///
/// # Errors
/// It has a language that no front end for patterns makes.
pub fn save(compiled: &Compiled) -> Result<Vec<u8>, SavedError> {
    let vocabulary = Fingerprint::of_vocabulary(compiled.engine.vocabulary());
    Ok(seal(SavedKind::Grammar, vocabulary, &payload(compiled.recipe())?))
}

/// The grammar of bytes that [`save`] made, compiled.
///
/// # Errors
/// The bytes are something else, have changed, or were made for another vocabulary or by a version
/// with another format.
pub fn load(bytes: &[u8], engine: &Arc<Engine>) -> Result<Compiled, SavedError> {
    let vocabulary = Fingerprint::of_vocabulary(engine.vocabulary());
    let mut reader = unseal(bytes, SavedKind::Grammar, vocabulary)?;
    let recipe = read(&mut reader)?;
    reader.end()?;
    Ok(engine.compile_recipe(&recipe)?)
}

/// Which grammar it is.
pub(super) fn fingerprint(recipe: &Recipe) -> Result<Fingerprint, SavedError> {
    Ok(Fingerprint::of(&payload(recipe)?))
}

fn payload(recipe: &Recipe) -> Result<Vec<u8>, SavedError> {
    let mut writer = Writer::default();
    match recipe {
        Recipe::Language(language) => {
            writer.byte(0);
            let mut languages = Languages::default();
            let id = languages.add(language)?;
            languages.write(&mut writer);
            writer.number(id);
        }
        Recipe::Json { schema, options } => {
            writer.byte(1);
            write_options(&mut writer, options);
            writer.text(schema);
        }
        Recipe::Rules { grammar, options } => {
            writer.byte(2);
            write_options(&mut writer, options);
            grammar::write(&mut writer, grammar)?;
        }
    }
    Ok(writer.0)
}

fn read(reader: &mut Reader<'_>) -> Result<Recipe, SavedError> {
    match reader.byte()? {
        0 => {
            let languages = ReadLanguages::read(reader)?;
            Ok(Recipe::Language(languages.get(reader.small()?)?))
        }
        1 => {
            let options = read_options(reader)?;
            Ok(Recipe::Json { schema: reader.text()?.into(), options })
        }
        2 => {
            let options = read_options(reader)?;
            Ok(Recipe::Rules { grammar: Arc::new(grammar::read(reader)?), options })
        }
        _ => Err(SavedError::Malformed("the kind of a grammar")),
    }
}

fn write_options(writer: &mut Writer, options: &GrammarOptions) {
    let GrammarOptions { writing, registry, policy } = options;
    write_whitespace(writer, &writing.whitespace);
    writer.flag(writing.property_order == PropertyOrder::Any);
    writer.flag(writing.numbers == Numbers::Any);
    writer.flag(*policy == Policy::Lenient);
    let uris: Vec<&str> = registry.uris().collect();
    writer.length(uris.len());
    for uri in uris {
        writer.text(uri);
        writer.text(registry.get(uri).unwrap_or_default());
    }
}

pub(super) fn write_whitespace(writer: &mut Writer, whitespace: &Whitespace) {
    match &whitespace.mode {
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

pub(super) fn read_whitespace(reader: &mut Reader<'_>) -> Result<Whitespace, SavedError> {
    let malformed = || SavedError::Malformed("how JSON is written");
    let mode = match reader.byte()? {
        0 => WhitespaceMode::Flexible { max_run: reader.small()?.min(1 << 16) },
        1 => WhitespaceMode::Compact,
        2 => WhitespaceMode::SingleSpace,
        3 => {
            let (item, key) = (reader.text()?, reader.text()?);
            let indented = reader.flag()?;
            let indent = Some(reader.text()?).filter(|_| indented);
            let layout = Layout::new(item, key, indent).ok_or_else(malformed)?;
            WhitespaceMode::Layout(Arc::new(layout))
        }
        4 => WhitespaceMode::Consistent,
        _ => return Err(malformed()),
    };
    Ok(Whitespace { mode })
}

fn read_options(reader: &mut Reader<'_>) -> Result<GrammarOptions, SavedError> {
    let whitespace = read_whitespace(reader)?;
    let any_order = reader.flag()?;
    let any_numbers = reader.flag()?;
    let lenient = reader.flag()?;
    let documents =
        reader.list(|reader| Ok((reader.text()?.to_owned(), reader.text()?.to_owned())))?;
    Ok(GrammarOptions {
        writing: Writing {
            whitespace,
            property_order: if any_order { PropertyOrder::Any } else { PropertyOrder::Declared },
            numbers: if any_numbers { Numbers::Any } else { Numbers::Plain },
        },
        registry: Arc::new(Registry::new(documents)),
        policy: if lenient { Policy::Lenient } else { Policy::Strict },
    })
}

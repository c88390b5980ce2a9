//! Recipes of grammars as bytes.

use std::sync::Arc;

use super::ast::{Languages, ReadLanguages};
use super::bytes::{Reader, Writer};
use super::{grammar, options, seal, unseal, Fingerprint, SavedError, SavedKind};
use crate::engine::{Compiled, Engine, Recipe};

/// A compiled grammar as bytes.
///
/// # Errors
/// It has a language that no front end for patterns makes.
pub fn save(compiled: &Compiled) -> Result<Vec<u8>, SavedError> {
    let vocabulary = Fingerprint::of_vocabulary(compiled.engine.vocabulary());
    Ok(seal(SavedKind::Grammar, vocabulary, &payload(compiled.recipe())?))
}

/// Compiles the grammar of the bytes that [`save`] returned.
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

/// The fingerprint of the grammar.
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
            options::write(&mut writer, options)?;
            writer.text(schema);
        }
        Recipe::Rules { grammar, options } => {
            writer.byte(2);
            options::write(&mut writer, options)?;
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
            let options = options::read(reader)?;
            Ok(Recipe::Json { schema: reader.text()?.into(), options })
        }
        2 => {
            let options = options::read(reader)?;
            Ok(Recipe::Rules { grammar: Arc::new(grammar::read(reader)?), options })
        }
        _ => Err(SavedError::Malformed("the kind of a grammar")),
    }
}

//! The normalizer and the pre-tokenizer as stages of a [`Tokenizer`](crate::tokenizer::Tokenizer).
//!
//! Both are chains of steps that split a text, and also rewrite it: spaces as `▁`, bytes as GPT-2's
//! characters. Our tokenizer works on the text itself. It keeps the splits, composition (NFC) and
//! the position of an added space.

use std::collections::BTreeMap;

use serde_json::Value;

use super::decoder::{flag, kind, mistyped, pattern, summary, text, Notation};
use super::HuggingFaceError;
use crate::pretokenizer::{Behavior, Dialect, StageSpec};
use crate::tokenizer::{DummySpace, Normalizer, Scope, Writing};

/// The steps as stages.
#[derive(Default)]
pub(super) struct Stages {
    pub stages: Vec<StageSpec>,
    pub normalizer: Normalizer,
    pub dummy_space: Option<DummySpace>,
}

/// The steps so far.
pub(super) struct Chain<'n> {
    notation: &'n Notation,
    made: Stages,
    bytes_are_written: bool,
    /// What stands for what in the text by now: `▁` for a space.
    written: BTreeMap<String, String>,
}

fn unsupported<T>(message: String) -> Result<T, HuggingFaceError> {
    Err(HuggingFaceError::Unsupported(message))
}

/// Whether a step drops its matches. Patterns that match everything are written as a step that
/// drops what does *not* match.
fn drops(step: &Value) -> Result<bool, HuggingFaceError> {
    Ok(text(step, "behavior")? == "Removed" && !flag(step, "invert", false)?)
}

fn behavior(step: &Value) -> Result<Behavior, HuggingFaceError> {
    Ok(match text(step, "behavior")? {
        // The library's own default, of punctuation.
        "Isolated" | "" => Behavior::Isolated,
        "Removed" => Behavior::Removed,
        "MergedWithPrevious" => Behavior::MergedWithPrevious,
        "MergedWithNext" => Behavior::MergedWithNext,
        "Contiguous" => Behavior::Contiguous,
        _ => {
            return unsupported(format!(
                "the behavior of the pre-tokenizer is not known ({})",
                summary(step)
            ))
        }
    })
}

impl<'n> Chain<'n> {
    pub fn new(notation: &'n Notation) -> Self {
        let (made, written) = (Stages::default(), BTreeMap::new());
        Self { notation, made, bytes_are_written: false, written }
    }

    fn byte_level(&self) -> bool {
        self.notation.writing == Writing::ByteLevel
    }

    /// Adds a step of the normalizer.
    pub fn normalize(&mut self, step: &Value) -> Result<(), HuggingFaceError> {
        match kind(step) {
            "NFC" if !self.bytes_are_written => self.made.normalizer.compose = true,
            "Prepend" if self.notation.writes(text(step, "prepend")?, " ") => {
                let scope = Scope::Every;
                self.made.dummy_space = Some(DummySpace { scope, before_space: true });
            }
            "Replace" if self.notation.writes(text(step, "content")?, pattern(step)?) => {
                self.written.insert(text(step, "content")?.into(), pattern(step)?.into());
            }
            "ByteLevel" if self.byte_level() => self.bytes_are_written = true,
            _ => {
                return unsupported(format!(
                "the tokenizer's normalizer changes text ({}), so that its tokens cannot express \
                     every text; supported are NFC and those that write spaces in another way",
                summary(step)
            ))
            }
        }
        Ok(())
    }

    /// Adds a step of the pre-tokenizer.
    pub fn cut(&mut self, step: &Value) -> Result<(), HuggingFaceError> {
        match kind(step) {
            "ByteLevel" if self.byte_level() => {
                if flag(step, "add_prefix_space", false)? {
                    self.prepend(Scope::Every, step)?;
                }
                if flag(step, "use_regex", true)? {
                    self.add(StageSpec::ByteLevelRegex, step)?;
                }
                self.bytes_are_written = true;
                Ok(())
            }
            "Metaspace" if self.notation.writes(text(step, "replacement")?, " ") => {
                self.metaspace(step)
            }
            "Split" if !drops(step)? => self.split(step),
            "Punctuation" if !drops(step)? => {
                let behavior = behavior(step)?;
                self.add(StageSpec::Punctuation { behavior }, step)
            }
            "Digits" => {
                let individual = flag(step, "individual_digits", false)?;
                self.add(StageSpec::Digits { individual }, step)
            }
            _ => unsupported(format!(
                "the tokenizer's pre-tokenizer drops text or is not known ({}): supported are \
                 ByteLevel, Metaspace, Split, Punctuation and Digits",
                summary(step)
            )),
        }
    }

    fn metaspace(&mut self, step: &Value) -> Result<(), HuggingFaceError> {
        // Older files have a flag where others name a scheme.
        let scheme = match (text(step, "prepend_scheme")?, flag(step, "add_prefix_space", true)?) {
            ("" | "never", false) => "never",
            ("", true) => "always",
            (stated, true) => stated,
            (_, false) => {
                return Err(HuggingFaceError::Corrupt(format!(
                    "`add_prefix_space` and `prepend_scheme` contradict each other ({})",
                    summary(step)
                )))
            }
        };
        match scheme {
            "never" => {}
            "first" => self.prepend(Scope::First, step)?,
            "always" => self.prepend(Scope::Every, step)?,
            _ => {
                return Err(HuggingFaceError::Corrupt(format!(
                    "`prepend_scheme` is not known ({})",
                    summary(step)
                )))
            }
        }
        self.written.insert(text(step, "replacement")?.into(), " ".into());
        if flag(step, "split", true)? {
            self.add(StageSpec::Metaspace, step)?;
        }
        Ok(())
    }

    fn prepend(&mut self, scope: Scope, step: &Value) -> Result<(), HuggingFaceError> {
        if !self.made.stages.is_empty() || self.made.dummy_space.is_some() {
            return unsupported(format!(
                "the tokenizer's pre-tokenizer puts a space before what an earlier step has cut or \
                 put one before ({})",
                summary(step)
            ));
        }
        self.made.dummy_space = Some(DummySpace { scope, before_space: false });
        Ok(())
    }

    fn split(&mut self, step: &Value) -> Result<(), HuggingFaceError> {
        let (behavior, invert) = (behavior(step)?, flag(step, "invert", false)?);
        let missing = &Value::Null;
        let pattern = step.get("pattern").unwrap_or(missing);
        let Some(verbatim) = pattern.get("String").and_then(Value::as_str) else {
            let Some(pattern) = pattern.get("Regex").and_then(Value::as_str) else {
                return Err(mistyped("pattern", "a string or a regular expression", pattern));
            };
            if !self.written.is_empty() {
                return unsupported(format!(
                    "the tokenizer's pre-tokenizer has a pattern for text whose spaces are written \
                     in another way ({})",
                    summary(step)
                ));
            }
            let (pattern, dialect) = (pattern.to_owned(), Dialect::Oniguruma);
            return self.add(StageSpec::Split { pattern, dialect, invert, behavior }, step);
        };
        if !invert && self.written.values().any(|meant| verbatim.contains(meant.as_str())) {
            // By now none is left in the text, so the pattern matches nowhere.
            return Ok(());
        }
        let mut text = verbatim.to_owned();
        for (written, meant) in &self.written {
            text = text.replace(written, meant);
        }
        self.add(StageSpec::SplitText { text, invert, behavior }, step)
    }

    fn add(&mut self, stage: StageSpec, step: &Value) -> Result<(), HuggingFaceError> {
        if self.bytes_are_written {
            return unsupported(format!(
                "the tokenizer's pre-tokenizer cuts text whose bytes are written as characters ({})",
                summary(step)
            ));
        }
        self.made.stages.push(stage);
        Ok(())
    }

    /// Returns the stages.
    ///
    /// # Errors
    /// The decoder undoes what no step does.
    pub fn finish(mut self) -> Result<Stages, HuggingFaceError> {
        if self.byte_level() && !self.bytes_are_written {
            return unsupported(
                "the tokenizer's decoder reads bytes, which neither its normalizer nor its \
                 pre-tokenizer writes (ByteLevel)"
                    .into(),
            );
        }
        for (written, meant) in self.notation.replacements() {
            if !self.written.contains_key(written) {
                return unsupported(format!(
                    "the tokenizer's decoder replaces {written:?} by {meant:?}, and neither its \
                     normalizer nor its pre-tokenizer does the opposite"
                ));
            }
        }
        self.made.normalizer.replaced = self.notation.replacements().to_vec();
        Ok(self.made)
    }
}

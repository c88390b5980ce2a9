//! Pre-tokenizers: the split of a text into pieces, which are then encoded one by one.
//!
//! A pre-tokenizer is a list of stages, each with a pattern, and each splits the pieces of the one
//! before. The supported patterns are those of tokenizers: alternatives in order of preference,
//! classes of characters, quantifiers, look-ahead at one character. Other syntax is refused by
//! name.
//!
//! There are two ways to use it:
//!
//! * [`PreTokenizer::pieces`] splits a complete text, by one table for each stage;
//! * [`PreTokenizer::boundaries`] is for a partial text: an automaton that receives the ends of
//!   pieces, and rejects those that no continuation makes true.
//!
//! # Text that is not UTF-8
//!
//! In a split, each byte outside a character counts as U+FFFD. [`Boundaries`] rejects it.

mod boundaries;
mod classes;
mod dfa;
mod error;
mod hypothesis;
#[cfg(test)]
mod oracle;
mod pieces;
mod program;
mod stage;
mod syntax;
#[cfg(test)]
mod test_boundaries;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod work;

use std::sync::Arc;

pub use boundaries::{Boundaries, HypothesisId};
pub use error::PreTokenizerError;
pub use pieces::{Piece, Pieces};
pub use stage::{Behavior, StageSpec};
pub use syntax::Dialect;

use classes::Classes;
use ffwd_bounds::error::LimitExceeded;
use regex_syntax::hir::ClassUnicode;
use stage::{Stage, StageDraft};

/// The most stages of a pre-tokenizer.
const MAX_STAGES: usize = 16;

/// Splits texts into pieces.
#[derive(Debug)]
pub struct PreTokenizer {
    classes: Arc<Classes>,
    stages: Vec<Stage>,
    boundaries: Result<Boundaries, LimitExceeded>,
}

impl PreTokenizer {
    /// Without stages, a text is one piece.
    pub fn new(specs: &[StageSpec]) -> Result<Self, PreTokenizerError> {
        let (classes, stages) = compile(specs)?;
        let boundaries = if stages.is_empty() {
            // A piece that ends only with the text.
            let (classes, stages) = compile(&[StageSpec::Split {
                pattern: r"[\s\S]+".to_owned(),
                dialect: Dialect::FancyRegex,
                invert: false,
                behavior: Behavior::Isolated,
            }])?;
            Boundaries::new(&classes, &stages)
        } else {
            Boundaries::new(&classes, &stages)
        };
        Ok(Self { classes, stages, boundaries })
    }

    /// The pieces of a text, in time linear in its length.
    pub fn pieces<'t>(&self, text: &'t [u8]) -> Pieces<'_, 't> {
        Pieces::new(self, text)
    }

    /// Whether a text is always one piece.
    pub(crate) fn is_whole(&self) -> bool {
        self.stages.is_empty()
    }

    /// The same for partial texts; `None` if that takes more states than `Self::boundaries_limit`
    /// allows.
    pub fn boundaries(&self) -> Option<&Boundaries> {
        self.boundaries.as_ref().ok()
    }

    /// Why there are no boundaries.
    pub(crate) fn boundaries_limit(&self) -> Option<&LimitExceeded> {
        self.boundaries.as_ref().err()
    }
}

fn compile(specs: &[StageSpec]) -> Result<(Arc<Classes>, Vec<Stage>), PreTokenizerError> {
    if specs.len() > MAX_STAGES {
        return Err(LimitExceeded::new("pre_tokenizer_stages", MAX_STAGES).into());
    }
    let drafts = specs.iter().map(StageDraft::new).collect::<Result<Vec<_>, _>>()?;
    let sets: Vec<ClassUnicode> =
        drafts.iter().flat_map(|draft| draft.draft.sets.iter().cloned()).collect();
    let (classes, unions) = Classes::new(&sets)?;
    let mut unions = unions.as_slice();
    let mut stages = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let (own, others) = unions.split_at(draft.draft.sets.len());
        stages.push(draft.finish(&classes, own)?);
        unions = others;
    }
    Ok((Arc::new(classes), stages))
}

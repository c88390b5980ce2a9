//! Regular languages over Unicode text: the tree, and the front ends that produce it.
//!
//! This module is independent of bytes, tokens and automata: a tree describes strings of code
//! points. Their encoding as bytes (plain UTF-8, or inside a JSON string) is chosen when the tree
//! is lowered to byte expressions.

mod anchors;
mod ast;
mod case;
mod context;
pub mod decimal;
mod digit_range;
mod earliest;
pub mod ecma;
mod ecma_class;
mod error;
mod finite;
pub mod formats;
mod magnitude;
mod membership;
mod node;
mod number_kinds;
pub mod numbers;
#[cfg(any(test, feature = "testing"))]
pub mod oracle;
mod pattern;
mod piece;
mod python;
mod python_class;
pub mod rust_dialect;
mod size;
mod stepped_numbers;
pub mod substring;
mod tree;

pub use ast::{Ast, CharClass, Look};
pub use decimal::{Decimal, DecimalError};
pub use error::{PatternError, PatternErrorKind};
pub use finite::Finite;
pub use magnitude::{Magnitude, MAX_EXCLUDED_STEPS};
pub use number_kinds::NumberKinds;
pub use pattern::{parse, Dialect, PatternOptions};
pub use substring::substring_of;

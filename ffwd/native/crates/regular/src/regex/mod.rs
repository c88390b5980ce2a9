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
mod earliest;
pub mod ecma;
mod error;
pub mod finite;
mod magnitude;
mod membership;
mod node;
#[cfg(any(test, feature = "testing"))]
pub mod oracle;
mod pattern;
mod piece;
mod python;
pub mod rust_dialect;
mod size;
pub mod substring;
mod tree;

pub use ast::{Ast, CharClass, Look};
pub use decimal::{Bound, Decimal, DecimalError};
pub use ecma::class::property;
pub use error::{PatternError, PatternErrorKind};
pub use finite::{Finite, FiniteKind};
pub use magnitude::{Magnitude, MagnitudeConstraint, Point, MAX_EXCLUDED_STEPS};
pub use pattern::{parse, Dialect, PatternOptions};
pub use substring::substring_of;

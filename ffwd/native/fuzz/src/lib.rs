//! What the fuzz targets do, as ordinary functions: each takes any bytes, and panics where something
//! does not hold that must. `docs/fuzzing.md` says what that is.

use std::alloc::System;

use ffwd_bounds::meter::heap::Metered;

mod driver;
mod engine;
mod json;
mod known;
mod rules;
mod seal;
mod session;
mod shape;

pub mod bpe;
pub mod composed;
pub mod ebnf;
pub mod gbnf;
pub mod lark;
pub mod matcher;
pub mod model;
pub mod pretokenizer;
pub mod regex;
pub mod regex_shape;
pub mod saved_grammar;
pub mod saved_text;
pub mod schema;
pub mod schema_shape;
pub mod stream;

/// As in the module for Python, so that calls have a limit of memory.
#[global_allocator]
static ALLOCATOR: Metered<System> = Metered(System);

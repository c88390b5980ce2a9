//! The text of a JSON Schema: read, compiled, walked through.

use std::sync::Arc;

use ffwd_automaton::{Layout, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_engine::engine::{CompileError, GrammarOptions};
use ffwd_json_schema::{Parsing, Policy, Registry};
use serde_json::Value;

use crate::driver::{split_text, Driver};
use crate::engine::compile;
use crate::json;
use crate::session::{save_and_load, walk};

/// How JSON is written, as the driver says.
pub fn writing(driver: &mut Driver<'_>) -> Writing {
    let mode = match driver.below(5) {
        0 => WhitespaceMode::Flexible { max_run: driver.below(5) as u32 },
        1 => WhitespaceMode::SingleSpace,
        2 => match Layout::new(" ,\n", ": ", Some("  ")) {
            Some(layout) => WhitespaceMode::Layout(Arc::new(layout)),
            None => WhitespaceMode::Compact,
        },
        _ => WhitespaceMode::Compact,
    };
    let property_order = if driver.flag() { PropertyOrder::Any } else { PropertyOrder::Declared };
    let numbers = if driver.flag() { Numbers::Any } else { Numbers::Plain };
    Writing { property_order, numbers, ..Writing::from(Whitespace { mode }) }
}

/// An error says something, and where.
pub fn said(error: &CompileError) {
    assert!(!error.to_string().is_empty());
}

/// The texts that a walk found, all of them JSON in which no object has a key twice.
pub fn texts(schema: &str, mut driver: Driver<'_>) -> Vec<Value> {
    let writing = writing(&mut driver);
    let policy = if driver.once_in(4) { Policy::Lenient } else { Policy::Strict };
    let documents = [("http://x/a".to_owned(), r#"{"type":"null"}"#.to_owned())];
    let registry = Arc::new(Registry::new(documents));
    let options = GrammarOptions { writing, parsing: Parsing { policy, registry } };
    let compiled = match compile(|engine| engine.compile_json_schema(schema, options)) {
        Ok(compiled) => compiled,
        Err(error) => {
            said(&error);
            return Vec::new();
        }
    };
    if driver.once_in(8) {
        save_and_load(&compiled);
    }
    walk(&compiled, driver, 20).iter().map(|text| json::read(text)).collect()
}

pub fn run(data: &[u8]) {
    if let Some((schema, driver)) = split_text(data) {
        texts(schema, driver);
    }
}

//! Compiled grammars as bytes, from anybody.

use std::sync::Arc;

use ffwd_engine::saved::{self, SavedError};

use crate::driver::Driver;
use crate::engine::engine;
use crate::seal::sealed;
use crate::session::{save_and_load, walk};

/// Whether an input has a grammar, even one that this vocabulary cannot write.
pub fn is_read(data: &[u8]) -> bool {
    let Some((_, payload)) = data.split_first() else { return false };
    let engine = engine();
    let loaded = saved::load_grammar(&sealed(b'G', payload, &engine), &engine);
    loaded.err().is_none_or(|error| error.reason() == "refused")
}

pub fn run(data: &[u8]) {
    // The payload may have any byte, so what drives comes first.
    let Some((seed, payload)) = data.split_first() else { return };
    let driver = Driver::new(std::slice::from_ref(seed));
    let engine = engine();
    // As they are, which a checksum mostly refuses.
    if let Err(error) = saved::load_grammar(payload, &engine) {
        assert!(!error.to_string().is_empty() && !error.reason().is_empty());
    }
    match saved::load_grammar(&sealed(b'G', payload, &engine), &engine) {
        Ok(compiled) => {
            let compiled = Arc::new(compiled);
            save_and_load(&compiled);
            walk(&compiled, driver, 8);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let of_an_option = matches!(error, SavedError::Option { .. });
            assert!(of_an_option || !matches!(error.reason(), "kind" | "version" | "checksum"));
        }
    }
}

//! Texts in progress as bytes, from anybody, for a grammar that is known.

use std::sync::Arc;

use ffwd_engine::matcher::Matcher;
use ffwd_engine::saved;

use crate::driver::split;
use crate::engine::engine;
use crate::known;
use crate::seal::{sealed, HEADER};

pub fn run(data: &[u8]) {
    // The payload may have any byte, so what drives comes first.
    let Some((&which, payload)) = data.split_first() else { return };
    let engine = engine();
    let compiled = Arc::new(known::compile(usize::from(which), &engine));
    let empty = Matcher::new(compiled.clone()).expect("a grammar that is known");
    let empty = saved::save_text(&empty).expect("it can be saved");
    // The payload begins with which grammar it is.
    let payload = [&empty[HEADER..HEADER + 16], payload].concat();
    match saved::load_text(&sealed(b'T', &payload, &engine), compiled.clone()) {
        Ok(matcher) => {
            let bytes = saved::save_text(&matcher).expect("it was loaded");
            let again = saved::load_text(&bytes, compiled).expect("it was loaded before");
            assert_eq!(again.tokens(), matcher.tokens());
            assert_eq!(again.began().prefix, matcher.began().prefix);
            assert_eq!(saved::save_text(&again).expect("it was loaded"), bytes);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let reason = error.reason();
            assert!(!matches!(reason, "kind" | "version" | "checksum" | "grammar"));
        }
    }
    let (head, _) = split(data);
    assert!(saved::load_text(head, Arc::new(known::compile(0, &engine))).is_err());
}

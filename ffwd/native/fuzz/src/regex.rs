//! A pattern in one of the three dialects, against the slow matcher of the syntax tree and, where it
//! reads the same, the crate `regex`.

use std::sync::Arc;

use ffwd_engine::matcher::Matcher;
use ffwd_regular::regex::{parse, Dialect, PatternOptions};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::driver::{split_text, Driver};
use crate::engine::compile;
use crate::schema::said;
use crate::session::{save_and_load, walk};

pub fn run(data: &[u8]) {
    if let Some((pattern, driver)) = split_text(data) {
        check(pattern, driver);
    }
}

fn options(driver: &mut Driver<'_>) -> PatternOptions {
    let dialect = *driver.pick(&Dialect::ALL);
    let letters: Vec<char> = dialect.flags().chars().collect();
    let flags: String = match driver.below(3) {
        0 => letters.into_iter().filter(|_| driver.once_in(3)).collect(),
        _ => String::new(),
    };
    let search = driver.once_in(4);
    let names = [("LATIN SMALL LETTER A".to_owned(), 'a')];
    PatternOptions { dialect, flags: flags.into(), search, characters: names.into() }
}

/// The same question to the crate `regex`, which is asked for whole texts.
fn peer(pattern: &str, options: &PatternOptions) -> Option<regex::Regex> {
    if options.dialect != Dialect::Rust || options.search || !options.flags.is_empty() {
        return None;
    }
    // Of a pattern with anchors and word boundaries, what surrounds the text counts.
    let whole = format!(r"\A(?:{pattern})\z");
    regex::Regex::new(pattern).ok()?;
    regex::RegexBuilder::new(&whole).size_limit(1 << 20).build().ok()
}

/// Reads and compiles, walks through texts, and asks whether they belong.
pub fn check(pattern: &str, mut driver: Driver<'_>) {
    let options = options(&mut driver);
    let language = match parse(pattern, &options) {
        Ok(language) => language,
        Err(error) => {
            let (line, column) = error.line_and_column(pattern);
            assert!(line > 0 && column > 0 && !error.to_string().is_empty());
            return;
        }
    };
    let compiled = match compile(|engine| engine.compile_language(language.clone())) {
        Ok(compiled) => compiled,
        Err(error) => return said(&error),
    };
    if driver.once_in(8) {
        save_and_load(&compiled);
    }
    let peer = peer(pattern, &options);
    let mut random = driver.clone();
    let texts = walk(&compiled, driver, 14);
    for text in texts {
        let text = String::from_utf8(text).expect("texts are UTF-8");
        if let Ok(holds) = language.matches(&text) {
            assert!(holds, "{text:?} was accepted");
        }
        if let Some(peer) = &peer {
            assert!(peer.is_match(&text), "{text:?} was accepted, and not by the crate regex");
        }
        // Texts near by are accepted exactly if they belong.
        for _ in 0..4 {
            let near = changed(&text, &mut random);
            let Some(accepted) = accepts(&compiled, &near) else { return };
            if let Ok(holds) = language.matches(&near) {
                assert_eq!(accepted, holds, "{near:?}");
            }
            if let Some(peer) = &peer {
                assert_eq!(accepted, peer.is_match(&near), "{near:?} by the crate regex");
            }
        }
    }
}

/// Whether a whole text is accepted, byte by byte; nothing where a limit is passed.
pub fn accepts(compiled: &Arc<ffwd_engine::engine::Compiled>, text: &str) -> Option<bool> {
    let mut matcher = Matcher::new(compiled.clone()).ok()?;
    for byte in text.bytes() {
        if !matcher.accept(TokenId(u32::from(byte))).ok()? {
            return Some(false);
        }
    }
    Some(matcher.is_accepting())
}

/// A text with one character more, less, or another.
fn changed(text: &str, driver: &mut Driver<'_>) -> String {
    const CHARACTERS: [char; 16] =
        ['a', 'b', 'A', '0', '9', ' ', '\n', '_', '-', '"', '\\', 'é', '€', '😀', 'ß', '\u{2028}'];
    let mut characters: Vec<char> = text.chars().collect();
    let at = driver.below(characters.len() + 1);
    match driver.below(3) {
        0 => characters.insert(at, *driver.pick(&CHARACTERS)),
        1 if at < characters.len() => characters[at] = *driver.pick(&CHARACTERS),
        _ if at < characters.len() => {
            characters.remove(at);
        }
        _ => characters.push(*driver.pick(&CHARACTERS)),
    }
    characters.into_iter().collect()
}

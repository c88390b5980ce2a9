//! The text of a grammar in EBNF: read, compiled, walked through.

use ffwd_grammar::ebnf;

use crate::driver::split_text;
use crate::rules;

pub fn run(data: &[u8]) {
    if let Some((text, driver)) = split_text(data) {
        rules::check(ebnf::parse(text, "root"), driver);
    }
}

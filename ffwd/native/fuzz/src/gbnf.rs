//! The text of a grammar in GBNF: read, compiled, walked through.

use ffwd_grammar::gbnf;

use crate::driver::split_text;
use crate::rules;

pub fn run(data: &[u8]) {
    if let Some((text, driver)) = split_text(data) {
        rules::check(gbnf::parse(text, "root"), driver);
    }
}

//! The text of a grammar in Lark: read, compiled, walked through.

use ffwd_grammar::lark;

use crate::driver::split_text;
use crate::rules;

pub fn run(data: &[u8]) {
    if let Some((text, driver)) = split_text(data) {
        rules::check(lark::parse(text), driver);
    }
}

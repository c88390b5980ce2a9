//! Grammars of rules, whoever wrote them down: compiled and walked through.

use ffwd_engine::engine::GrammarOptions;
use ffwd_grammar::{Grammar, GrammarError};
use ffwd_json_schema::{Parsing, Policy};

use crate::driver::Driver;
use crate::engine::compile;
use crate::schema::{said, writing};
use crate::session::{save_and_load, walk};

pub fn options(driver: &mut Driver<'_>) -> GrammarOptions {
    let policy = if driver.once_in(4) { Policy::Lenient } else { Policy::Strict };
    let parsing = Parsing { policy, ..Parsing::default() };
    GrammarOptions { writing: writing(driver), parsing }
}

pub fn check(grammar: Result<Grammar, GrammarError>, mut driver: Driver<'_>) {
    let grammar = match grammar {
        Ok(grammar) => grammar,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            // Places count from 1; 0 says that there is none.
            let _ = (error.line(), error.column());
            return;
        }
    };
    if let Some(start) = grammar.start {
        let unused = grammar.unused_rules(start);
        assert_eq!(grammar.positions(&unused).len(), unused.len());
    }
    let options = options(&mut driver);
    let compiled = match compile(|engine| engine.compile_grammar(&grammar, options)) {
        Ok(compiled) => compiled,
        Err(error) => return said(&error),
    };
    if driver.once_in(8) {
        save_and_load(&compiled);
    }
    walk(&compiled, driver, 14);
}

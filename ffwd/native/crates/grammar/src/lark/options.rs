//! `%llguidance`, and `%grammar_options` as XGrammar has it: options of a grammar.

use serde_json::Value;

use super::fault::Fault;

#[derive(Debug, Default)]
pub(super) struct Options {
    /// Ignored text may also come before the first terminal.
    pub initial_skip: bool,
    /// Ignored text matches once between two terminals, not any number of times.
    pub skip_once: bool,
}

impl Options {
    /// Merges the options of a JSON object that begins at a byte of the grammar.
    pub fn merge(&mut self, at: usize, text: &str) -> Result<(), Fault> {
        let unreadable = |error: serde_json::Error| {
            Fault::syntax(at, format!("the options of the grammar: {error}"))
        };
        let value: Value = serde_json::from_str(text).map_err(unreadable)?;
        let Value::Object(options) = value else {
            return Err(Fault::syntax(at, "the options of a grammar are a JSON object"));
        };
        for (name, value) in options {
            let flag = || match value {
                Value::Bool(flag) => Ok(flag),
                _ => Err(Fault::syntax(at, format!("the option `{name}` is true or false"))),
            };
            match &*name {
                // Forced bytes change no text.
                "no_forcing" => {
                    flag()?;
                }
                "allow_initial_skip" => self.initial_skip = flag()?,
                "ignore_once" => self.skip_once = flag()?,
                "skip_repetition" => match value.as_str() {
                    Some("once") => self.skip_once = true,
                    Some("unbounded") => self.skip_once = false,
                    _ => {
                        let message = "the option `skip_repetition` is \"once\" or \"unbounded\"";
                        return Err(Fault::syntax(at, message));
                    }
                },
                "allow_invalid_utf8" => {
                    if flag()? {
                        let message = "`allow_invalid_utf8`: the texts of a grammar are UTF-8";
                        return Err(Fault::unsupported(at, "texts that are not UTF-8", message));
                    }
                }
                _ => {
                    let message = format!(
                        "the option `{name}` is not known; there are `no_forcing`, \
                         `allow_initial_skip`, `ignore_once`, `skip_repetition`"
                    );
                    return Err(Fault::unsupported(at, "unknown options", message));
                }
            }
        }
        Ok(())
    }
}

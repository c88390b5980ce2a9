//! Which tokens are text. `ffwd/tokenizer/kinds.py` of the Python package gives the reasons.

use serde::Deserialize;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of the output.
    Text,
    /// Flagged as special.
    Special,
    /// Added and not flagged as special, and yet not text: `<tool_call>`.
    Control,
    /// Stands for what has no token.
    Unknown,
    /// Reserved for later, or an id without a token.
    Unused,
}

/// An entry of `added_tokens`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AddedToken {
    pub id: u32,
    pub content: String,
    pub single_word: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub normalized: bool,
    pub special: bool,
}

impl AddedToken {
    /// Returns the kind; `None` for one that only repeats a piece of the model.
    ///
    /// `decoded`: what the decoder makes of it; `in_model`: it is also a piece, with the same id.
    pub fn kind(&self, decoded: &[u8], in_model: bool) -> Option<Kind> {
        if is_placeholder(&self.content) {
            Some(Kind::Unused)
        } else if self.special {
            Some(Kind::Special)
        } else if looks_like_control(&self.content) {
            Some(Kind::Control)
        } else if decoded == self.content.as_bytes() && !self.lstrip && !self.rstrip {
            Some(Kind::Text)
        } else {
            (!in_model).then_some(Kind::Control)
        }
    }
}

/// Whether a name has brackets or bars: `<think>`, `[INST]`, Gemma's `<|"|>`.
///
/// Vowel signs count as letters here, as they do not in Python: such a token is control.
fn looks_like_control(name: &str) -> bool {
    const BRACKETS: [char; 12] = [
        '<', '>', '[', ']', '{', '}', '|', '\u{ff5c}', '\u{ff1c}', '\u{ff1e}', '\u{3010}',
        '\u{3011}',
    ];
    name.len() > "<||>".len() && name.starts_with("<|") && name.ends_with("|>")
        || name.contains(BRACKETS) && name.contains(char::is_alphanumeric)
}

/// Whether this is the name of an unused id, such as `[control_12]` or `<|reserved_special_token_0|>`.
///
/// That is, in brackets: a word for it, and behind that one number.
pub(super) fn is_placeholder(name: &str) -> bool {
    // A question mark stands for any character.
    const WORDS: [&str; 8] = [
        "reserved",
        "unused",
        "control",
        "pad",
        "extra_id",
        "placeholder",
        "place?holder",
        "dummy",
    ];
    let within = name.strip_prefix(['<', '[']).and_then(|rest| rest.strip_suffix(['>', ']']));
    let Some(within) = within.filter(|_| name.chars().count() <= 64) else { return false };
    if within.contains(['<', '>', '[', ']']) {
        return false;
    }
    // A long s is an s without regard to case.
    let letters: Vec<char> = within
        .chars()
        .map(|letter| if letter == 'ſ' { 's' } else { letter.to_ascii_lowercase() })
        .collect();
    let begins = |rest: &[char], word: &str| {
        let mut rest = rest.iter();
        word.chars().all(|expected| {
            rest.next()
                .is_some_and(|&letter| letter == expected || (expected == '?' && letter != '\n'))
        })
    };
    (0..letters.len()).any(|at| {
        WORDS
            .iter()
            .any(|word| begins(&letters[at..], word) && numbers(&letters[at + word.len()..]) == 1)
    })
}

/// How many runs of digits there are.
fn numbers(text: &[char]) -> usize {
    text.split(|letter| !letter.is_ascii_digit()).filter(|run| !run.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unused_ids() {
        for name in [
            "<|reserved_special_token_0|>",
            "[control_12]",
            "<unused7>",
            "[PAD3]",
            "<extra_id_99>",
            "<|place holder no 5|>",
            "<pad 5 pad>",
            "[1 Reſerved 2 tokens]",
            "<｜place▁holder▁no▁7｜>",
        ] {
            assert!(is_placeholder(name), "{name}");
        }
        let long = format!("<unused{}1>", " ".repeat(64));
        for name in [
            "",
            "<pad>",
            "<unused>",
            "[INST]",
            "<reserved 1 2>",
            "unused1",
            "<a<pad1>",
            "<|eot_id|>",
            &long,
        ] {
            assert!(!is_placeholder(name), "{name}");
        }
    }

    #[test]
    fn names_of_control_tokens() {
        for name in ["<think>", "[INST]", "<|\"|>", "a|", "<｜User｜>", "</s>"] {
            assert!(looks_like_control(name), "{name}");
        }
        for name in ["{{", "<||>", "    ", "word", "|", "]"] {
            assert!(!looks_like_control(name), "{name}");
        }
    }
}

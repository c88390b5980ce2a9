//! Positions in sources.

use std::sync::Arc;

/// A source of one grammar.
/// Its place in [`crate::Grammar::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// The text that a front end has read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its notation, such as `Lark`.
    pub kind: &'static str,
    /// The whole text, as it was given.
    pub text: Arc<str>,
}

/// A place in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which text.
    pub source: SourceId,
    /// In bytes.
    pub offset: u32,
}

/// The longest line that is shown whole, in characters.
const SHOWN: usize = 120;

/// A line of a text with a caret below one of its characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The line, or the part of a long line near the place.
    pub text: String,
    /// How many characters of `text` are before the place.
    pub(crate) before: usize,
}

impl Excerpt {
    /// The line around a byte of a text.
    pub fn at(text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (before, after) = text.split_at(offset);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let begun = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        let column = 1 + begun.chars().count();
        let rest = after.split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let skipped = (column - 1).saturating_sub(SHOWN / 2);
        let shown = begun.chars().skip(skipped).chain(rest.chars().take(SHOWN / 2));
        // Characters without a width would misplace the caret.
        let plain = |character: char| if character.is_control() { ' ' } else { character };
        Self { line, column, text: shown.map(plain).collect(), before: column - 1 - skipped }
    }

    /// The line, and below it a caret.
    pub fn with_caret(&self) -> String {
        format!("  {}\n  {}^", self.text, " ".repeat(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_its_character() {
        let excerpt = Excerpt::at("first\nsecönd line\nthird", 12);
        assert_eq!((excerpt.line, excerpt.column), (2, 6));
        assert_eq!(excerpt.with_caret(), "  secönd line\n       ^");
    }

    #[test]
    fn the_end_of_a_text_has_a_place() {
        let excerpt = Excerpt::at("a\n", 2);
        assert_eq!((excerpt.line, excerpt.column, &*excerpt.text), (2, 1, ""));
    }

    #[test]
    fn long_lines_are_cut() {
        let text = "x".repeat(1000) + "!" + &"y".repeat(1000);
        let excerpt = Excerpt::at(&text, 1000);
        assert_eq!(excerpt.text.chars().count(), SHOWN);
        assert_eq!(excerpt.text.chars().nth(excerpt.before), Some('!'));
    }
}

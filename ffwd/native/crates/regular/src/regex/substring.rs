//! The runs of neighbouring pieces of a text.

use std::sync::Arc;

use super::Ast;

/// The non-empty pieces of a text, in their order. Their language has any run of adjacent pieces,
/// joined, and the empty text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chunks(Box<[Box<str>]>);

impl Chunks {
    /// The pieces in their order.
    pub fn texts(&self) -> &[Box<str>] {
        &self.0
    }

    /// How many bytes they have together.
    pub fn num_bytes(&self) -> usize {
        self.0.iter().map(|chunk| chunk.len()).sum()
    }
}

/// The unit of a text's pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Runs of letters, digits and `_`, of white space, and of anything else.
    Words,
    /// Single characters.
    Characters,
}

/// All runs of neighbouring chunks, and the empty text. Chunks that are empty say nothing.
///
/// Too many chunks are refused where the language is compiled.
pub fn substring_of(chunks: &[String]) -> Ast {
    let kept: Box<[Box<str>]> = chunks
        .iter()
        .filter(|chunk| !chunk.is_empty())
        .map(|chunk| chunk.as_str().into())
        .collect();
    if kept.is_empty() {
        Ast::Epsilon
    } else {
        Ast::Substring(Arc::new(Chunks(kept)))
    }
}

/// The pieces of a text, for [`substring_of`].
pub fn chunks_of(text: &str, unit: Unit) -> Vec<String> {
    if unit == Unit::Characters {
        return text.chars().map(String::from).collect();
    }
    let kind = |character: char| {
        (character.is_whitespace(), character.is_alphanumeric() || character == '_')
    };
    let mut chunks: Vec<String> = Vec::new();
    let mut last = None;
    for character in text.chars() {
        match chunks.last_mut() {
            Some(chunk) if last == Some(kind(character)) => chunk.push(character),
            _ => chunks.push(character.into()),
        }
        last = Some(kind(character));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn texts_are_cut_into_words_and_characters() {
        let cut = |text, unit| chunks_of(text, unit).join("|");
        assert_eq!(cut("it's 2 é_x \n", Unit::Words), "it|'|s| |2| |é_x| \n");
        assert_eq!(cut("aé😀", Unit::Characters), "a|é|😀");
        assert!(chunks_of("", Unit::Words).is_empty());
    }

    #[test]
    fn runs_of_chunks_belong_to_it_and_nothing_else_does() {
        let chunks = ["ab", "", "c", "a", "b", "cab"].map(String::from);
        let language = substring_of(&chunks);
        let mut runs = vec![String::new()];
        for from in 0..chunks.len() {
            runs.extend((from + 1..=chunks.len()).map(|to| chunks[from..to].concat()));
        }
        let letters = ["a", "b", "c"];
        let mut texts = vec![String::new()];
        for at in 0..400 {
            texts.extend(letters.map(|letter| texts[at].clone() + letter));
        }
        for text in texts {
            let expected = runs.contains(&text);
            assert_eq!(language.matches(&text), Ok(expected), "{text}");
            assert_eq!(oracle::matches(&language, &text), expected, "{text}");
        }
        assert_eq!(substring_of(&[]), Ast::Epsilon);
    }
}

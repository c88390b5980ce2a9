//! `ffwd.grammar._writing.Writing`: the options of JSON values, passed whole.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use ffwd_automaton::{
    Escapes, Layout, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing,
};
use ffwd_engine::engine::GrammarOptions;
use ffwd_json_schema::{Parsing, Policy, Registry};

/// The options of a `Writing`; options that the caller passes separately have their defaults.
pub struct WritingArgument(pub GrammarOptions);

impl WritingArgument {
    /// The same with the documents that `$ref` may name, as pairs of a URI and JSON text.
    pub fn with(self, documents: Vec<(String, String)>) -> GrammarOptions {
        let Self(mut options) = self;
        options.parsing.registry = Arc::new(Registry::new(documents));
        options
    }
}

impl<'py> FromPyObject<'_, 'py> for WritingArgument {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let writing = Writing {
            whitespace: whitespace(&given)?,
            property_order: named(
                &given,
                "property_order",
                [("declared", PropertyOrder::Declared), ("any", PropertyOrder::Any)],
            )?,
            numbers: named(&given, "numbers", [("plain", Numbers::Plain), ("any", Numbers::Any)])?,
            escapes: named(
                &given,
                "escapes",
                [("canonical", Escapes::Canonical), ("any", Escapes::Any)],
            )?,
        };
        let parsing = Parsing {
            policy: named(
                &given,
                "policy",
                [("strict", Policy::Strict), ("lenient", Policy::Lenient)],
            )?,
            registry: Arc::default(),
        };
        Ok(Self(GrammarOptions { writing, parsing }))
    }
}

/// The value of an attribute that has a name for each.
fn named<T, const N: usize>(
    given: &Bound<'_, PyAny>,
    attribute: &str,
    values: [(&str, T); N],
) -> PyResult<T> {
    let name: String = given.getattr(attribute)?.extract()?;
    let found = values.into_iter().find(|(known, _)| *known == name);
    let unknown = || PyValueError::new_err(format!("{attribute} has no value {name:?}"));
    found.map(|(_, value)| value).ok_or_else(unknown)
}

/// The white space: its mode, or the layout that separators and an indentation replace it by.
fn whitespace(given: &Bound<'_, PyAny>) -> PyResult<Whitespace> {
    let max_run: u32 = given.getattr("max_whitespace")?.extract()?;
    let separators: Option<(String, String)> = given.getattr("separators")?.extract()?;
    let indent: Option<Indent> = given.getattr("indent")?.extract()?;
    let modes = [
        ("consistent", WhitespaceMode::Consistent),
        ("flexible", WhitespaceMode::Flexible { max_run }),
        ("compact", WhitespaceMode::Compact),
        ("single-space", WhitespaceMode::SingleSpace),
    ];
    let mode = match (separators, indent) {
        (None, None) => named(given, "whitespace", modes)?,
        (separators, indent) => {
            let separators = separators.unwrap_or_else(|| (",".into(), ": ".into()));
            let indent = indent.map(|indent| match indent {
                Indent::Spaces(spaces) => " ".repeat(spaces.into()),
                Indent::Text(text) => text,
            });
            let layout = Layout::new(&separators.0, &separators.1, indent.as_deref());
            let layout = layout.ok_or_else(|| {
                PyValueError::new_err(
                    "separators must be a comma and a colon with whitespace around them, \
                     and indent must be whitespace",
                )
            })?;
            WhitespaceMode::Layout(Arc::new(layout))
        }
    };
    Ok(Whitespace { mode })
}

#[derive(FromPyObject)]
enum Indent {
    Spaces(u8),
    Text(String),
}

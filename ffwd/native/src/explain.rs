//! The data of `Matcher.explain`; `ffwd._explain` makes classes of it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::errors;
use super::released::Released;
use super::text_argument::TextArgument;
use ffwd_engine::explain::{
    explain, Answer, Explanation, Item, ItemKind, Question, Reason, RulePlace, TextStage,
};
use ffwd_engine::matcher::Matcher;
use ffwd_tokenizer::vocabulary::TokenId;

pub fn explained<'py>(
    py: Python<'py>,
    matcher: &Matcher,
    token: Option<u32>,
    text: Option<&TextArgument<'py>>,
) -> PyResult<Bound<'py, PyAny>> {
    let question = match (token, text) {
        (None, None) => None,
        (Some(token), None) => Some(Question::Token(TokenId(token))),
        (None, Some(text)) => Some(Question::Text(text.bytes()?.to_vec())),
        (Some(_), Some(_)) => {
            return Err(PyValueError::new_err("explain takes a token or a text, not both"))
        }
    };
    let explanation =
        py.released(|| matcher.bounded(|matcher| explain(matcher, question.as_ref())));
    let explanation = explanation.map_err(|error| errors::matcher(py, &error))?;
    let data = data(py, &explanation)?;
    py.import("ffwd._explain")?.getattr("explanation")?.call1((data,))
}

fn data<'py>(py: Python<'py>, explanation: &Explanation) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let stage = match explanation.stage {
        TextStage::FreeText => "free_text",
        TextStage::Prefix => "prefix",
        TextStage::Grammar => "grammar",
        TextStage::Ended => "ended",
    };
    dict.set_item("num_tokens", explanation.num_tokens)?;
    dict.set_item("stage", stage)?;
    dict.set_item("is_accepting", explanation.accepting)?;
    dict.set_item("expected", items(py, &explanation.expected)?)?;
    dict.set_item("num_more", explanation.more)?;
    dict.set_item("next_bytes", PyBytes::new(py, &explanation.next_bytes))?;
    let completion = explanation.completion.as_ref();
    let completion =
        completion.map(|tokens| tokens.iter().map(|token| token.0).collect::<Vec<_>>());
    dict.set_item("completion", completion)?;
    let text = explanation.completion_text.as_ref().map(|text| PyBytes::new(py, text));
    dict.set_item("completion_text", text)?;
    dict.set_item("notes", &explanation.notes)?;
    let answer = explanation.answer.as_ref().map(|answer| answered(py, answer)).transpose()?;
    dict.set_item("answer", answer)?;
    Ok(dict)
}

fn answered<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("token", answer.token.map(|token| token.0))?;
    dict.set_item("text", PyBytes::new(py, &answer.text))?;
    dict.set_item("allowed", answer.allowed)?;
    dict.set_item("good_bytes", answer.good_bytes)?;
    dict.set_item("refused_byte", answer.refused_byte)?;
    let reasons = PyList::empty(py);
    for Reason { message, rules, pointers } in &answer.reasons {
        let reason = PyDict::new(py);
        reason.set_item("message", message)?;
        reason.set_item("rules", places(py, rules)?)?;
        reason.set_item("pointers", pointers)?;
        reasons.append(reason)?;
    }
    dict.set_item("reasons", reasons)?;
    dict.set_item("instead", items(py, &answer.instead)?)?;
    dict.set_item("num_more", answer.more)?;
    dict.set_item("instead_bytes", PyBytes::new(py, &answer.instead_bytes))?;
    Ok(dict)
}

fn items<'py>(py: Python<'py>, items: &[Item]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        let kind = match item.kind {
            ItemKind::End => "end",
            ItemKind::Terminal => "terminal",
            ItemKind::Token => "token",
            ItemKind::Key => "key",
            ItemKind::Value => "value",
            ItemKind::Punctuation => "punctuation",
            ItemKind::Before => "before",
        };
        let dict = PyDict::new(py);
        dict.set_item("kind", kind)?;
        dict.set_item("what", &item.what)?;
        dict.set_item("begun", item.begun)?;
        dict.set_item("rules", places(py, &item.rules)?)?;
        dict.set_item("pointers", &item.pointers)?;
        dict.set_item("example", item.example.as_ref().map(|bytes| PyBytes::new(py, bytes)))?;
        list.append(dict)?;
    }
    Ok(list)
}

fn places<'py>(py: Python<'py>, rules: &[RulePlace]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for RulePlace { name, place } in rules {
        let dict = PyDict::new(py);
        dict.set_item("name", &**name)?;
        dict.set_item("source", place.map(|(source, _, _)| source))?;
        dict.set_item("line", place.map(|(_, line, _)| line))?;
        dict.set_item("column", place.map(|(_, _, column)| column))?;
        list.append(dict)?;
    }
    Ok(list)
}

//! Special tokens: `<name>`, `<[ids]>`, `<[^ids]>` and `<[*]>`.

use super::fault::Fault;
use crate::{Place, TokenItem, TokenSet};

/// Returns the tokens of a text in brackets, at a byte.
pub(super) fn tokens(at: usize, written: &str, place: Place) -> Result<TokenSet, Fault> {
    let place = Some(place);
    let ids = written.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>"));
    let Some(ids) = ids else {
        let items = [TokenItem::Named(written.into())].into();
        return Ok(TokenSet { items, exclude: false, place });
    };
    let (ids, exclude) = match ids.strip_prefix('^') {
        Some(ids) => (ids, true),
        None => (ids, false),
    };
    if ids == "*" && !exclude {
        return Ok(TokenSet { items: [].into(), exclude: true, place });
    }
    if ids.contains('*') {
        let message = "`*` stands for all tokens and is alone: `<[*]>`";
        return Err(Fault::syntax(at, message));
    }
    let items = ids
        .split(',')
        .filter(|range| !range.is_empty())
        .map(|range| range_of(at, range))
        .collect::<Result<Box<[_]>, _>>()?;
    if items.is_empty() {
        return Err(Fault::syntax(at, "a set of tokens has at least one id, such as `<[12]>`"));
    }
    Ok(TokenSet { items, exclude, place })
}

fn range_of(at: usize, range: &str) -> Result<TokenItem, Fault> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(TokenItem::Ids(first, last)),
        (Ok::<u32, _>(_), Ok::<u32, _>(_)) => {
            Err(Fault::syntax(at, format!("the range of ids {range} ends before it begins")))
        }
        _ => {
            let message =
                "the ids of tokens are numbers and ranges, such as `<[12,128000-128255]>`";
            Err(Fault::syntax(at, message))
        }
    }
}

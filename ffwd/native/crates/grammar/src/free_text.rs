//! The languages of free text: without certain texts in it, or up to the first of them.

use ffwd_regular::regex::{Ast, CharClass};

/// Returns any text with this ending that contains none of the excluded texts, with at most this
/// many characters before its ending.
pub fn any_text(excluding: &[String], ending: &str, max_chars: Option<u32>) -> Ast {
    let ended = Ast::concat([characters(0, max_chars), Ast::literal(ending)]);
    if excluding.is_empty() {
        return ended;
    }
    let with = Ast::concat([Ast::any_text(), any_of(excluding), Ast::any_text()]);
    let without = Ast::complement(with);
    if max_chars.is_some() || !ending.is_empty() {
        Ast::intersection([ended, without])
    } else {
        without
    }
}

/// Returns any text up to the first end of a stop, without any of the excluded texts, and with at
/// most this many characters before the stop.
pub fn text_until(stops: &[String], excluding: &[String], max_chars: Option<u32>) -> Ast {
    let ended = Ast::concat([characters(0, max_chars), any_of(stops)]);
    let ended_before = Ast::concat([Ast::any_text(), any_of(stops), characters(1, None)]);
    let mut parts = vec![ended, Ast::complement(ended_before)];
    if !excluding.is_empty() {
        parts.push(any_text(excluding, "", None));
    }
    Ast::intersection(parts)
}

/// Any text up to one of several triggers, without another trigger in it.
///
/// The first trigger to end counts; of those that end together, the longest. A trigger that starts
/// within a longer one does not stop the longer one.
pub fn up_to_trigger(trigger: &str, triggers: &[String], excluding: &[String]) -> Ast {
    let mut parts = vec![Ast::concat([Ast::any_text(), Ast::literal(trigger)])];
    // No other one begins before this one and ends before or with it.
    let length = trigger.chars().count();
    for other in triggers {
        let after = (length + 1).saturating_sub(other.chars().count());
        let rest = characters(u32::try_from(after).unwrap_or(u32::MAX), None);
        let earlier = Ast::concat([Ast::any_text(), Ast::literal(other), rest]);
        parts.push(Ast::complement(earlier));
    }
    if !excluding.is_empty() {
        parts.push(any_text(excluding, "", None));
    }
    Ast::intersection(parts)
}

/// Returns any text with this many characters.
pub fn characters(min: u32, max: Option<u32>) -> Ast {
    Ast::repeat(Ast::Class(CharClass::any()), min, max)
}

fn any_of(texts: &[String]) -> Ast {
    Ast::alternation(texts.iter().map(|text| Ast::literal(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_regular::regex::oracle::matches;

    fn all(length: usize) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut last = texts.clone();
        for _ in 0..length {
            last = last.iter().flat_map(|text| ["a", "b", "c"].map(|c| text.clone() + c)).collect();
            texts.extend(last.iter().cloned());
        }
        texts
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn free_text_is_what_does_not_contain() {
        for (excluding, ending, max) in [
            (vec![], "", None),
            (vec!["ab"], "", None),
            (vec!["aa", "bcb"], "", Some(4)),
            (vec![], "", Some(2)),
            (vec!["ab"], "b", Some(3)),
            (vec!["ab", "c"], "ab", None),
        ] {
            let language = any_text(&owned(&excluding), ending, max);
            for text in all(6) {
                let expected = excluding.iter().all(|part| !text.contains(part))
                    && text.ends_with(ending)
                    && max.is_none_or(|max| text.len() - ending.len() <= max as usize);
                assert_eq!(matches(&language, &text), expected, "{text:?} {excluding:?}");
            }
        }
    }

    #[test]
    fn text_ends_with_the_first_stop() {
        for (stops, excluding, max) in [
            (vec!["ab"], vec![], None),
            (vec!["aa"], vec![], None),
            (vec!["aba", "b"], vec![], None),
            (vec!["ab", "ca"], vec!["cc"], Some(3)),
            (vec!["abc"], vec!["ab"], None),
        ] {
            let language = text_until(&owned(&stops), &owned(&excluding), max);
            for text in all(6) {
                let end = |text: &str| {
                    (0..=text.len())
                        .find(|&end| stops.iter().any(|stop| text[..end].ends_with(stop)))
                };
                let before = stops.iter().any(|stop| {
                    text.ends_with(stop)
                        && max.is_none_or(|max| text.len() - stop.len() <= max as usize)
                });
                let expected = end(&text) == Some(text.len())
                    && before
                    && excluding.iter().all(|part| !text.contains(part));
                assert_eq!(matches(&language, &text), expected, "{text:?} {stops:?}");
            }
        }
    }

    #[test]
    fn the_first_trigger_counts_and_of_several_the_longest() {
        for triggers in [
            vec!["ab"],
            vec!["aa"],
            vec!["b", "ab"],
            vec!["abc", "b"],
            vec!["a", "ab"],
            vec!["ca", "abc", "bb"],
        ] {
            let triggers = owned(&triggers);
            for (index, trigger) in triggers.iter().enumerate() {
                let language = up_to_trigger(trigger, &triggers, &[]);
                for text in all(6) {
                    let start = text.len().wrapping_sub(trigger.len());
                    let begins_earlier = triggers.iter().any(|other| {
                        (0..start.min(text.len())).any(|at| text[at..].starts_with(other.as_str()))
                    });
                    let expected = text.ends_with(trigger.as_str()) && !begins_earlier;
                    assert_eq!(
                        matches(&language, &text),
                        expected,
                        "{text:?} {triggers:?} {index}"
                    );
                }
            }
        }
    }
}

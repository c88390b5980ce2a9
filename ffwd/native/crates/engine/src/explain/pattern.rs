//! Regular languages for people. The output is in no dialect that a parser reads.

use ffwd_regular::regex::{Ast, CharClass};

/// The longest pattern that is shown whole, in bytes, and the depth of its parts.
const MAX_SHOWN: usize = 160;
const MAX_DEPTH: usize = 40;
const MAX_RANGES: usize = 12;

/// A text in quotes, or an expression between slashes.
pub fn shown(language: &Ast) -> String {
    match language {
        Ast::Literal(text) => quoted(text),
        Ast::Alternation(parts) if parts.iter().all(|part| matches!(part, Ast::Literal(_))) => {
            let mut all = String::new();
            for (place, part) in parts.iter().enumerate() {
                if all.len() > MAX_SHOWN {
                    return format!("{all} or {} more", parts.len() - place);
                }
                let Ast::Literal(text) = part else { continue };
                all.push_str(if place == 0 { "" } else { " or " });
                all.push_str(&quoted(text));
            }
            all
        }
        _ => {
            let mut pattern = String::new();
            write(language, 0, &mut pattern);
            format!("/{}/", cut(&pattern))
        }
    }
}

/// A text in quotes, with escapes, cut if it is long.
pub fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().find(|&(at, _)| at >= MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

fn write(language: &Ast, depth: usize, out: &mut String) {
    if out.len() > MAX_SHOWN || depth > MAX_DEPTH {
        out.push('…');
        return;
    }
    let join = |parts: &[Ast], between: &str, out: &mut String| {
        for (place, part) in parts.iter().enumerate() {
            if out.len() > MAX_SHOWN {
                out.push('…');
                return;
            }
            out.push_str(if place == 0 { "" } else { between });
            write(part, depth + 1, out);
        }
    };
    let grouped = |begin: &str, inner: &Ast, out: &mut String| {
        out.push_str(begin);
        write(inner, depth + 1, out);
        out.push(')');
    };
    match language {
        Ast::Empty => out.push_str("[]"),
        Ast::Epsilon => {}
        Ast::Class(class) => write_class(class, out),
        Ast::Literal(text) => {
            for c in text.chars().take(MAX_SHOWN) {
                escape(c, out);
            }
        }
        Ast::Magnitude(_) => out.push_str("(?:number within bounds)"),
        Ast::Finite(_) => out.push_str("(?:finite number)"),
        Ast::Substring(_) => out.push_str("(?:part of a given text)"),
        Ast::Concat(parts) => {
            for part in parts.iter() {
                if out.len() > MAX_SHOWN {
                    out.push('…');
                    return;
                }
                match part {
                    Ast::Alternation(_) => grouped("(?:", part, out),
                    _ => write(part, depth + 1, out),
                }
            }
        }
        Ast::Alternation(parts) => join(parts, "|", out),
        Ast::Repeat { inner, min, max } => {
            match &**inner {
                Ast::Class(_) => write(inner, depth + 1, out),
                Ast::Literal(text) if text.chars().count() == 1 => write(inner, depth + 1, out),
                _ => grouped("(?:", inner, out),
            }
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => out.push_str(&format!("{{{min},}}")),
                (min, Some(max)) if min == max => out.push_str(&format!("{{{min}}}")),
                (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
            }
        }
        Ast::Intersection(parts) => {
            out.push_str("(?:");
            join(parts, " & ", out);
            out.push(')');
        }
        Ast::Complement(inner) => grouped("~(?:", inner, out),
        Ast::Approximate { known, .. } => write(known, depth + 1, out),
        Ast::Before(inner) => grouped("(?<=", inner, out),
        Ast::After(inner) => grouped("(?=", inner, out),
    }
}

fn write_class(class: &CharClass, out: &mut String) {
    let negated = class.negate();
    if negated.is_empty() {
        out.push_str("(?s:.)");
        return;
    }
    let (sign, ranges) = match negated.ranges().len() < class.ranges().len() {
        true => ("^", negated.ranges()),
        false => ("", class.ranges()),
    };
    if let ("", &[(first, last)]) = (sign, ranges) {
        if let (true, Some(c)) = (first == last, char::from_u32(first)) {
            return escape(c, out);
        }
    }
    out.push('[');
    out.push_str(sign);
    for &(first, last) in ranges.iter().take(MAX_RANGES) {
        let (first, last) = (char::from_u32(first), char::from_u32(last));
        let (Some(first), Some(last)) = (first, last) else { continue };
        escape(first, out);
        if last != first {
            out.push_str(if u32::from(last) - u32::from(first) > 1 { "-" } else { "" });
            escape(last, out);
        }
    }
    if ranges.len() > MAX_RANGES {
        out.push('…');
    }
    out.push(']');
}

fn escape(c: char, out: &mut String) {
    match c {
        '/' | '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^'
        | '$' | '-' => {
            out.push('\\');
            out.push(c);
        }
        ' ' => out.push(' '),
        _ if c.is_control() || c.is_whitespace() => out.extend(c.escape_default()),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_regular::regex::rust_dialect;

    #[test]
    fn patterns_are_shown_as_they_are_written() {
        for pattern in
            ["[0-9]+", "a[bc]*d?", "a(?:bc|d)*", "x{2,5}", "(?:ab){3}", "[^a-z]", "a?\\.+"]
        {
            let language = rust_dialect::anchored(pattern).unwrap();
            assert_eq!(shown(&language), format!("/{pattern}/"));
        }
        assert_eq!(shown(&Ast::literal("a\"\n")), "\"a\\\"\\n\"");
        let either = Ast::alternation([Ast::literal("a"), Ast::literal("bc")]);
        assert_eq!(shown(&either), "\"a\" or \"bc\"");
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let mut deep = Ast::literal("x");
        for _ in 0..1000 {
            deep = Ast::repeat(Ast::concat([deep, Ast::literal("y")]), 0, None);
        }
        assert!(shown(&deep).len() < 1000);
        let many = Ast::alternation((0..100_000).map(|n| Ast::literal(&n.to_string())));
        assert!(shown(&many).len() < 1000);
        assert!(shown(&Ast::literal(&"é".repeat(10_000))).len() < 1000);
    }
}

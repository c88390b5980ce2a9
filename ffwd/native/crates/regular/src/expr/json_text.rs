//! Untrusted JSON text, as bytes: the ends of its strings and values, and their decoded text.

/// Returns the offset of the quote that ends a string, for bytes that start within it.
pub fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The last value in a text of JSON that ends with it: the text begins with a value that contains
/// it, or with the value itself.
pub fn last_value(text: &[u8]) -> &[u8] {
    let mut open: Vec<usize> = Vec::new();
    let mut last = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                at = closing_quote(&text[at..]).map_or(text.len(), |quote| at + quote + 1);
                last = start;
            }
            b'[' | b'{' => open.push(start),
            b']' | b'}' => last = open.pop().unwrap_or(0),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                let rest = &text[at..];
                let is_end = |byte: &u8| b",:]} \t\n\r".contains(byte);
                at += rest.iter().position(is_end).unwrap_or(rest.len());
                last = start;
            }
        }
    }
    &text[last..]
}

/// Returns the text of canonical JSON string bytes (without the quotes); `None` if they are no
/// complete canonical encoding.
pub fn unspell_json(bytes: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(bytes.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(bytes);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_text_that_ends_with_one() {
        for (text, last) in [
            ("12", "12"),
            (r#""a\",[""#, r#""a\",[""#),
            ("[1, [2,\n 30", "30"),
            (r#"{"a": {"b": [1, 2]}"#, r#"{"b": [1, 2]}"#),
            (r#"[{"a":[]}, {"b" :null"#, "null"),
            (r#"{"a":"x\\"}"#, r#"{"a":"x\\"}"#),
            ("[[],{}", "{}"),
        ] {
            assert_eq!(last_value(text.as_bytes()), last.as_bytes(), "{text}");
        }
    }
}

//! The escapes of strings.

use super::fault::Fault;

const ESCAPES: &str =
    "the escapes of a string are `\\\"`, `\\\\`, `\\/`, `\\b`, `\\f`, `\\n`, `\\r`, `\\t`, `\\u` \
     with four and `\\x` with two hexadecimal digits";

/// The value of a string. Its content starts at a byte of the grammar.
pub(super) fn unescape(at: usize, written: &str) -> Result<String, Fault> {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(before) = rest.find('\\') {
        text.push_str(&rest[..before]);
        let place = at + written.len() - rest.len() + before;
        rest = &rest[before + 1..];
        let Some(kind) = rest.chars().next() else { return Err(Fault::syntax(place, ESCAPES)) };
        rest = &rest[kind.len_utf8()..];
        let plain = match kind {
            '"' | '\\' | '/' => kind,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => char::from(digits(place, &mut rest, 2)? as u8),
            'u' => unit(place, &mut rest)?,
            _ => return Err(Fault::syntax(place, ESCAPES)),
        };
        text.push(plain);
    }
    text.push_str(rest);
    Ok(text)
}

/// The character of one code unit, or of a pair of surrogates.
fn unit(place: usize, rest: &mut &str) -> Result<char, Fault> {
    const LONE: &str = "half of a pair of surrogates is no character";
    let first = digits(place, rest, 4)?;
    let code = match first {
        0xd800..=0xdbff => {
            let Some(after) = rest.strip_prefix("\\u") else {
                return Err(Fault::syntax(place, LONE));
            };
            *rest = after;
            let second = digits(place, rest, 4)?;
            if !(0xdc00..=0xdfff).contains(&second) {
                return Err(Fault::syntax(place, LONE));
            }
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        }
        code => code,
    };
    char::from_u32(code).ok_or_else(|| Fault::syntax(place, LONE))
}

fn digits(place: usize, rest: &mut &str, count: usize) -> Result<u32, Fault> {
    let written = rest.get(..count).unwrap_or_default();
    if written.is_empty() || !written.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Fault::syntax(place, ESCAPES));
    }
    *rest = &rest[count..];
    u32::from_str_radix(written, 16).map_err(|_| Fault::syntax(place, ESCAPES))
}

//! Files of ranks: on each line a text in base64, a space, and a number.

/// Calls back with the text and rank of each line, in order. Returns `None` at anything that is
/// not written in the usual way; some calls may have happened then.
pub fn read_rank_file(data: &[u8], mut found: impl FnMut(&[u8], u32)) -> Option<()> {
    let mut text = Vec::new();
    for line in data.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let space = memchr::memchr(b' ', line)?;
        let (encoded, rank) = (&line[..space], &line[space + 1..]);
        decode_base64(encoded, &mut text)?;
        if rank.is_empty() || rank.len() > 9 || !rank.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let rank = rank.iter().fold(0, |rank, digit| rank * 10 + u32::from(digit - b'0'));
        found(&text, rank);
    }
    Some(())
}

const fn value_of(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => NO_DIGIT,
    }
}

const NO_DIGIT: u8 = 0xFF;

const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut byte = 0;
    while byte < 256 {
        values[byte] = value_of(byte as u8);
        byte += 1;
    }
    values
};

/// With padding, and without superfluous bits.
fn decode_base64(encoded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let (groups, rest) = encoded.as_chunks::<4>();
    let (last, groups) = groups.split_last()?;
    if !rest.is_empty() {
        return None;
    }
    let decode = |group: &[u8]| {
        group.iter().try_fold(0u32, |bits, &byte| {
            let value = VALUES[usize::from(byte)];
            (value != NO_DIGIT).then_some(bits << 6 | u32::from(value))
        })
    };
    for group in groups {
        let [_, a, b, c] = decode(group)?.to_be_bytes();
        out.extend_from_slice(&[a, b, c]);
    }
    let padding = last.iter().rev().take_while(|&&byte| byte == b'=').count();
    let bits = decode(&last[..4 - padding])? << (6 * padding);
    let [_, a, b, c] = bits.to_be_bytes();
    match padding {
        0 => out.extend_from_slice(&[a, b, c]),
        1 if c == 0 => out.extend_from_slice(&[a, b]),
        2 if b == 0 && c == 0 => out.push(a),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Option<Vec<(Vec<u8>, u32)>> {
        let mut lines = Vec::new();
        read_rank_file(data.as_bytes(), |text, rank| lines.push((text.to_vec(), rank)))?;
        Some(lines)
    }

    #[test]
    fn the_usual_lines_are_read() {
        let lines = read("IQ== 0\nIiM= 1\n\n4pyT 999999999\nYWJjZA== 12").unwrap();
        let expected: [(&[u8], u32); 4] =
            [(b"!", 0), (b"\"#", 1), ("✓".as_bytes(), 999_999_999), (b"abcd", 12)];
        assert_eq!(lines.len(), expected.len());
        for ((text, rank), (expected, number)) in lines.iter().zip(expected) {
            assert_eq!((&text[..], *rank), (expected, number));
        }
        assert_eq!(read(""), Some(Vec::new()));
    }

    #[test]
    fn other_lines_are_left_to_others() {
        for line in [
            "IQ==",
            "IQ== ",
            " 1",
            "IQ== 1 2",
            "IQ==  1",
            "IQ= 1",
            "IQ 1",
            "I=== 1",
            "IR== 1",
            "IiN= 1",
            "I Q== 1",
            "IQ== -1",
            "IQ== +1",
            "IQ== 1_0",
            "IQ== 1\r",
            "IQ== 1000000000",
            "I-== 1",
            "==== 1",
            "IQ==IQ== 1",
            "\u{a0} 1",
        ] {
            assert_eq!(read(line), None, "{line:?}");
        }
    }
}

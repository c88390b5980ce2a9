//! Resolution of URI references (RFC 3986, section 5.2), without fragments.

/// The parts of a URI reference before its fragment.
struct UriParts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

fn split(uri: &str) -> UriParts<'_> {
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            (Some(scheme), rest)
        }
        _ => (None, uri),
    };
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            (Some(authority), path)
        }
        None => (None, rest),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    UriParts { scheme, authority, path, query }
}

fn remove_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    let mut segments = path.split('/').skip(usize::from(absolute)).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    let joined = kept.join("/");
    if absolute {
        format!("/{joined}")
    } else {
        joined
    }
}

/// The part before the `#` and, if there is a `#`, the part after it.
pub fn split_fragment(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((uri, fragment)) => (uri, Some(fragment)),
        None => (reference, None),
    }
}

/// `reference` (without a fragment), resolved against `base`.
pub fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let base = split(base);
    let target = split(reference);
    let (scheme, authority, path, query) = if target.scheme.is_some() {
        (target.scheme, target.authority, remove_dot_segments(target.path), target.query)
    } else if target.authority.is_some() {
        (base.scheme, target.authority, remove_dot_segments(target.path), target.query)
    } else if target.path.is_empty() {
        (base.scheme, base.authority, base.path.to_owned(), target.query.or(base.query))
    } else if target.path.starts_with('/') {
        (base.scheme, base.authority, remove_dot_segments(target.path), target.query)
    } else {
        let folder = match base.path.rfind('/') {
            Some(end) => &base.path[..=end],
            None if base.authority.is_some() => "/",
            None => "",
        };
        let merged = format!("{folder}{}", target.path);
        (base.scheme, base.authority, remove_dot_segments(&merged), target.query)
    };
    let mut uri = String::new();
    if let Some(scheme) = scheme {
        uri += &format!("{scheme}:");
    }
    if let Some(authority) = authority {
        uri += &format!("//{authority}");
    }
    uri += &path;
    if let Some(query) = query {
        uri += &format!("?{query}");
    }
    uri
}

/// Percent-decoded text; `None` if it is not UTF-8 or a `%` is not followed by two digits.
pub fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        decoded.push((high * 16 + low) as u8);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_the_standard_says() {
        // The examples of RFC 3986, section 5.4, that have no fragment.
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), expected, "{reference}");
        }
        assert_eq!(resolve("", "item.json"), "item.json");
        assert_eq!(resolve("http://a", "x"), "http://a/x");
        assert_eq!(resolve("urn:x:y", ""), "urn:x:y");
    }

    #[test]
    fn fragments_and_percent_signs() {
        assert_eq!(split_fragment("a#b"), ("a", Some("b")));
        assert_eq!(split_fragment("a"), ("a", None));
        assert_eq!(percent_decode("a%25b%C3%A9").as_deref(), Some("a%bé"));
        assert_eq!(percent_decode("%"), None);
        assert_eq!(percent_decode("%zz"), None);
        assert_eq!(percent_decode("%ff"), None);
    }
}

//! The terminals of Lark's library `common`.

/// Returns the pattern of a terminal's name, for the `regex` crate. The names are those of Lark's
/// `common.lark`. As in llguidance, a number has ASCII digits, a string may extend over lines, and
/// `WS` contains a form feed but no vertical tab.
pub(super) fn pattern(name: &str) -> Option<&'static str> {
    TERMINALS.iter().find(|(known, _)| *known == name).map(|(_, pattern)| *pattern)
}

/// All names, for messages.
pub(super) fn names() -> String {
    TERMINALS.map(|(name, _)| name).join(", ")
}

const TERMINALS: [(&str, &str); 25] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[-+]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[eE][-+]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][-+]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[-+]?([0-9]+[eE][-+]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)"),
    ("NUMBER", r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""([^"\\]|\\.)*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][A-Za-z0-9_]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("C_COMMENT", r"/\*([^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];

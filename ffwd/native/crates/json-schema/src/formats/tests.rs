use super::*;
use ffwd_regular::regex::oracle::{matches, size};

/// A format, texts of it, texts that are not. The verdicts are those of jsonschema-rs.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "idn-hostname",
        &[
            "example.com",
            "실례.테스트",
            "münchen.de",
            "я.рф",
            "ßς་〇",
            "۽۾",
            "l·l",
            "α͵β",
            "א׳ב",
            "א״ב.com",
            "・ぁ",
            "・ァ",
            "・丈",
            "ب٠ب",
            "۰0",
            "क\u{94D}\u{200D}ष",
            "हिन्दी",
            "بي\u{200C}بي",
            "a。b．c｡d",
            "ไทย",
            "straße-42.example",
        ],
        &[
            "",
            ".",
            "。",
            "-a",
            "ü-",
            "aü--b",
            "MÜNCHEN",
            "xn--X",
            "a·b",
            "l·a",
            "α͵S",
            "α͵",
            "׳ב",
            "・",
            "def・abc",
            "ب٠۰",
            "क\u{200D}ष",
            "\u{302E}실례",
            "בa",
            "1a.ב",
            "\u{640}",
            "실실실실실실실실실실실실실",
            "a_b.ü",
        ],
    ),
    (
        "idn-email",
        &["실례@실례.테스트", "joe.bloggs@example.com", "ü@[1.2.3.4]", "\"ü b\"@x.de"],
        &["2962", ".ü@x.de", "ü..ü@x.de", "a b@x.de", "ü@", "ü@-x.de"],
    ),
    (
        "regex",
        &[
            "",
            "^x-",
            "([abc])+\\s+$",
            "^\\d{3}-\\d{4}$",
            "[-a-zA-Z0-9_.]",
            "a{2,10}?",
            "a{5,5}",
            "(?:a|b)*",
            "(?!foo)(?=bar)(?<!a)b",
            "\\p{Lu}\\u00e9\\x41\\cJ",
            "[^\\]\\\\]",
            "a|",
            "()",
            "((((a))))",
            "a{100,255}",
            "[a\\-]",
        ],
        &[
            "^(abc]", "\\a", "(", ")", "[", "]", "a{", "a{2,1}", "[b-a]", "a**", "^*", "(?i)a",
            "\\1", "(?=a)*", "[]", "\\p{X}", "\\u12", "(?<n>a)", "\\", "\\ud800", "a{11,10}",
            "a++",
        ],
    ),
    (
        "date",
        &[
            "2024-02-29",
            "2000-02-29",
            "0000-02-29",
            "0400-02-29",
            "2096-02-29",
            "2023-12-31",
            "2023-04-30",
            "2023-02-28",
            "1999-10-09",
        ],
        &[
            "2023-02-29",
            "1900-02-29",
            "2100-02-29",
            "2023-02-30",
            "2023-04-31",
            "2023-13-01",
            "2023-00-10",
            "2023-01-00",
            "2023-01-32",
            "23-01-01",
            "2023-1-01",
            "2023-01-01 ",
            "",
            "２023-01-0",
        ],
    ),
    (
        "time",
        &[
            "00:00:00Z",
            "23:59:59z",
            "12:30:45.123456789+14:00",
            "23:59:60Z",
            "23:59:60.5z",
            "15:59:60-08:00",
            "00:29:60+00:30",
            "23:59:60+00:00",
            "00:59:60+01:00",
            "22:58:60-01:01",
            "05:29:60+05:30",
            "08:29:60.1-15:30",
            "23:58:60+23:59",
            "23:59:59-23:59",
        ],
        &[
            "24:00:00Z",
            "12:60:00Z",
            "12:00:61Z",
            "12:00:00",
            "12:00Z",
            "12:00:00.Z",
            "12:00:00+24:00",
            "12:00:00+00:60",
            "12:00:00+0000",
            "22:59:60Z",
            "23:59:60+01:00",
            "15:59:60+08:00",
            "23:58:60+00:00",
            "05:30:60+05:30",
            "12:00:00 Z",
            "",
        ],
    ),
    (
        "date-time",
        &[
            "2024-02-29T12:00:00Z",
            "2024-01-01t00:00:00.1z",
            "1998-12-31T15:59:60.123-08:00",
            "1990-12-31T23:59:60Z",
        ],
        &[
            "2024-02-29 12:00:00Z",
            "2023-02-29T12:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01",
            "T00:00:00Z",
            "1998-12-31T23:58:60Z",
        ],
    ),
    (
        "duration",
        &[
            "P1Y", "P1Y2M3D", "P1M2D", "PT1H2M3S", "PT5M", "P2W", "P1DT12H", "P0D", "PT0S",
            "P123456Y",
        ],
        &[
            "P", "PT", "P1YT", "P1Y2D", "PT1H2S", "P1W1D", "P1WT1H", "P1D1M", "1D", "P1", "PT1D",
            "P1.5D", "p1d", "",
        ],
    ),
    (
        "email",
        &[
            "joe@example.com",
            "a@b",
            "te~st.1+x@a-b.c",
            "\"joe bloggs\"@example.com",
            "\"a@b\"@c",
            "\"\"@a.b",
            "\"\\\"\"@a",
            "\"a\tb\"@c",
            "x@[127.0.0.1]",
            "x@[IPv6:::1]",
            "x@[ipV6:::1]",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b",
        ],
        &[
            "",
            "a",
            "@b",
            "a@",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a@b@c",
            "a b@c",
            "é@b.c",
            "a@é",
            "a@-b",
            "a@b-",
            "a@b.",
            "\"a\"b\"@c",
            "\"a <b\"@c",
            "\"\\\"@c",
            "x@[127.0.0.256]",
            "x@[::1]",
            "x@[IPv6:1]",
            "a@b_c",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b",
        ],
    ),
    (
        "hostname",
        &[
            "a",
            "example.com",
            "A-1.b",
            "1.2.3",
            "a-b",
            "ab-c",
            "a-b-c",
            "localhost",
            "a--b",
            "abc--d",
        ],
        &[
            "", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "é", "ab--c", "xn--X", "a b", "a.-b",
            "a.b-",
        ],
    ),
    (
        "ipv4",
        &["0.0.0.0", "255.255.255.255", "1.20.199.249"],
        &[
            "256.0.0.0",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.4 ",
            "1.2.3.",
            "0x1.2.3.4",
            "١.2.3.4",
            "",
        ],
    ),
    (
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "::1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2:3:4:5::1.2.3.4",
            "abcd:EF01::",
        ],
        &[
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:1.2.3.4",
            "1:2:3:4:5:6::1.2.3.4",
            "1.2.3.4::",
            "::1.2.3",
            "::g",
            "fe80::1%eth0",
            "1:",
            ":1",
            "",
        ],
    ),
    (
        "uri",
        &[
            "http://example.com",
            "http://a:8080/b?c=d#e",
            "urn:a:b",
            "mailto:a@b.c",
            "a:",
            "a:/",
            "a:/b//c",
            "a://",
            "a:///b",
            "http://u:p@h:80",
            "http://[::1]:80/",
            "http://[v1.a:b]",
            "a+b-c.1:x",
            "http://%C3%A9/%20?%2F#%00",
            "http://a:/",
            "a:?/?#/?",
            "tag:x,2:y",
            "http://u@[::1]",
        ],
        &[
            "",
            "/a",
            "a",
            "//a/b",
            "1a:b",
            ":a",
            "http://a b",
            "http://é",
            "http://a:8a",
            "http://a@b@c",
            "a:%",
            "a:%2",
            "a:%GG",
            "http://[::1",
            "http://[::1]a",
            "http://[1::2::3]",
            "http://[v.a]",
            "a:#b#c",
            "a:\\b",
            "a:[",
            "a:{b}",
            "a:\"",
            "a:<b>",
            "a:^",
        ],
    ),
    (
        "uri-reference",
        &["", "a", "/a", "//a/b", "?a", "#a", "./a:b", "a/b:c", "a:b", "../a", "//", "a@b"],
        &["1a:b", ":a", "é", "//a:b", "%", "a b", "\\"],
    ),
    (
        "iri",
        &["http://é.fr/ü?ö#ä", "a:\u{10000}", "a:?\u{e000}", "a:b"],
        &["é", "a:\u{e000}", "a:#\u{e000}", "a:\u{fdd0}", "a:\u{80}", "a:\u{ffff}", "a:\u{e0001}"],
    ),
    ("iri-reference", &["é", "/é#ü", "", "?\u{f0000}"], &["é:a", "\u{e000}", "é b"]),
    (
        "uuid",
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "00000000-0000-0000-0000-000000000000",
            "ABCDEFab-ABCD-abcd-0000-FFFFFFFFFFFF",
        ],
        &[
            "123e4567e89b12d3a456426614174000",
            "123e4567-e89b-12d3-a456-42661417400",
            "g23e4567-e89b-12d3-a456-426614174000",
            "{123e4567-e89b-12d3-a456-426614174000}",
            "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
            "",
        ],
    ),
    (
        "json-pointer",
        &["", "/", "/a/b", "/~0~1", "//", "/é \n"],
        &["a", "#/a", "/~", "/~2", "/a~", "a/b"],
    ),
    (
        "relative-json-pointer",
        &["0", "1/a", "10#", "0#", "120/"],
        &["", "01", "/a", "#", "1#/a", "0##", "-1", "1a"],
    ),
    (
        "uri-template",
        &[
            "",
            "http://a/{b}",
            "{a,b}",
            "{+a.b:3}",
            "{#a*}",
            "{?x,y*}",
            "é{%20}",
            "{|a}",
            "'",
            "{a:9999}",
        ],
        &[
            "{",
            "}",
            "{}",
            "{a",
            "{a b}",
            "a b",
            "{a:0}",
            "{a:10000}",
            "{a**}",
            "{.}",
            "%",
            "<a>",
            "{-}",
            "`",
        ],
    ),
];

#[test]
fn formats_are_decided_as_the_reference_does() {
    for (name, valid, invalid) in CASES {
        let ast = format(name).unwrap();
        for text in *valid {
            assert!(matches(&ast, text), "{text:?} is a {name}");
        }
        for text in *invalid {
            assert!(!matches(&ast, text), "{text:?} is no {name}");
        }
    }
}

#[test]
fn formats_are_decided_by_derivatives_as_well() {
    for (name, valid, invalid) in CASES {
        let ast = format(name).unwrap();
        for text in valid.iter().chain(*invalid) {
            assert_eq!(ast.matches(text), Ok(matches(&ast, text)), "{text:?} {name}");
        }
    }
}

#[test]
fn lengths_of_names_are_limited() {
    let host = format("hostname").unwrap();
    let label = "a".repeat(63);
    assert!(matches(&host, &label) && !matches(&host, &format!("{label}a")));
    let name = format!("{label}.{label}.{label}.{}", &label[..61]);
    assert_eq!(name.len(), 253);
    assert!(matches(&host, &name) && !matches(&host, &format!("{name}a")));
    let email = format("email").unwrap();
    assert!(matches(&email, &format!("a@{name}")) && !matches(&email, &format!("a@{name}a")));
}

#[test]
fn leap_seconds_are_exactly_those_before_midnight_utc() {
    let ast = format("time").unwrap();
    for minute in (0..1440).step_by(7).chain([59, 60, 1439]) {
        for near in [0, 1, 2, -1, 10, 60, 600, 720] {
            for (sign, base) in [("+", minute), ("-", 1438 - minute)] {
                let offset = (base + near + 1440) % 1440;
                let utc = if sign == "+" { minute - offset } else { minute + offset };
                let text = format!(
                    "{:02}:{:02}:60{sign}{:02}:{:02}",
                    minute / 60,
                    minute % 60,
                    offset / 60,
                    offset % 60
                );
                assert_eq!(matches(&ast, &text), (utc + 1440i32) % 1440 == 1439, "{text}");
                assert!(!matches(&ast, &text.replace(":60", ":60.")), "{text}");
            }
        }
    }
}

#[test]
fn every_day_of_every_kind_of_year() {
    let ast = format("date").unwrap();
    for year in [0, 4, 100, 400, 1900, 2000, 2023, 2024, 9999] {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for month in 0..14usize {
            let days =
                [0, 31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0]
                    [month];
            for day in 0..33 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(matches(&ast, &text), (1..=days).contains(&day), "{text}");
            }
        }
    }
}

#[test]
fn names_are_known_and_trees_are_small() {
    for name in KNOWN_2020_12 {
        let ast = format(name).unwrap();
        assert!(size(&ast) < 8000, "{name}: {}", size(&ast));
    }
    assert!(format("phone").is_none() && !KNOWN_2020_12.contains(&"phone"));
}

#[test]
fn what_is_possible_is_more_than_what_is_known() {
    for (name, texts, others) in CASES {
        let (Some(known), Some(possible)) = (known(name), possible(name)) else { continue };
        let format = format(name).unwrap();
        let other = Ast::complement(format.clone());
        for text in texts.iter().chain(*others) {
            let is_known = matches(&known, text);
            assert!(matches(&possible, text) || !is_known, "{name} {text}");
            assert_eq!(matches(&format, text), is_known, "{name} {text}");
            assert_eq!(matches(&other, text), !matches(&possible, text), "{name} {text}");
            let decided = is_known || !matches(&possible, text);
            assert_eq!(matches(&format.decided(), text), decided, "{name} {text}");
            assert_eq!(matches(&other.decided(), text), decided, "{name} {text}");
            assert_eq!(matches(&Ast::complement(other.clone()), text), is_known, "{name} {text}");
        }
    }
    let punycode = Ast::literal("xn--4gbwdl");
    let both = Ast::intersection([Ast::any_text(), format("hostname").unwrap(), punycode]);
    let neither = Ast::complement(both.clone());
    for language in [both, neither] {
        assert!(!matches(&language, "xn--4gbwdl"));
        assert!(!matches(&language.decided(), "xn--4gbwdl") && matches(&language.decided(), "a"));
    }
}

//! Dates, times and durations of RFC 3339.

use super::{digit, exactly, literal, one_of, some};
use ffwd_regular::regex::Ast;

/// `YYYY-MM-DD`, a day of the Gregorian calendar.
pub(super) fn date() -> Ast {
    let day_to = |last: &str| {
        // 28, 29, 30 or 31 days.
        let full = Ast::concat([one_of("12"), digit()]);
        Ast::alternation([
            Ast::concat([literal("0"), one_of("19")]),
            match last {
                "28" => Ast::alternation([
                    Ast::concat([literal("1"), digit()]),
                    Ast::concat([literal("2"), one_of("08")]),
                ]),
                _ => full,
            },
            match last {
                "30" => literal("30"),
                "31" => Ast::concat([literal("3"), one_of("01")]),
                _ => Ast::Empty,
            },
        ])
    };
    let month = |months: Ast, last: &str| Ast::concat([months, literal("-"), day_to(last)]);
    let long = Ast::alternation([
        Ast::concat([literal("0"), one_of("11335578")]),
        Ast::concat([literal("1"), one_of("0022")]),
    ]);
    let short = Ast::alternation([Ast::concat([literal("0"), one_of("446699")]), literal("11")]);
    let any_year = Ast::concat([
        exactly(digit(), 4),
        literal("-"),
        Ast::alternation([month(long, "31"), month(short, "30"), month(literal("02"), "28")]),
    ]);
    // The multiples of four among two digits, and those that are not 00.
    let fours = || {
        Ast::alternation([
            Ast::concat([one_of("0022446688"), one_of("004488")]),
            Ast::concat([one_of("1133557799"), one_of("2266")]),
        ])
    };
    let fours_but_zero = Ast::alternation([
        Ast::concat([literal("0"), one_of("4488")]),
        Ast::concat([one_of("22446688"), one_of("004488")]),
        Ast::concat([one_of("1133557799"), one_of("2266")]),
    ]);
    let leap_year = Ast::alternation([
        Ast::concat([exactly(digit(), 2), fours_but_zero]),
        Ast::concat([fours(), literal("00")]),
    ]);
    Ast::alternation([any_year, Ast::concat([leap_year, literal("-02-29")])])
}

fn hour() -> Ast {
    Ast::alternation([
        Ast::concat([one_of("01"), digit()]),
        Ast::concat([literal("2"), one_of("03")]),
    ])
}

/// Also a second that is not a leap second.
fn minute() -> Ast {
    Ast::concat([one_of("05"), digit()])
}

/// `HH:MM:SS`, perhaps a fraction, and `Z` or an offset. The second may be 60 where it is 23:59
/// in UTC.
pub(super) fn time() -> Ast {
    let fraction = || Ast::optional(Ast::concat([literal("."), some(digit())]));
    let utc = || one_of("ZZzz");
    let offset = Ast::concat([one_of("++--"), hour(), literal(":"), minute()]);
    let common = Ast::concat([
        hour(),
        literal(":"),
        minute(),
        literal(":"),
        minute(),
        fraction(),
        Ast::alternation([utc(), offset]),
    ]);
    let leap_utc = Ast::concat([literal("23:59:60"), fraction(), utc()]);
    Ast::alternation([common, leap_utc, leap_seconds_behind(), leap_seconds_ahead()])
}

/// Leap seconds with a negative offset: time and offset add up to 23:59, digit by digit but for
/// the hours.
fn leap_seconds_behind() -> Ast {
    Ast::intersection([
        leap_shape("-"),
        hours("-", |hour| 23 - hour),
        minute_tens("-", 6, |tens| 5 - tens),
        minute_units("-", 10, |units| 9 - units),
    ])
}

/// Leap seconds with a positive offset, which is a minute more than the time.
fn leap_seconds_ahead() -> Ast {
    let same_hour = || hours("+", |hour| hour);
    let same_tens = Ast::intersection([
        leap_shape("+"),
        same_hour(),
        minute_tens("+", 6, |tens| tens),
        minute_units("+", 9, |units| units + 1),
    ]);
    let next_tens = Ast::intersection([
        leap_shape("+"),
        same_hour(),
        minute_tens("+", 5, |tens| tens + 1),
        dependent(exactly(any(), 4), "9", "+", exactly(any(), 4), "0", Ast::Epsilon),
    ]);
    let next_hour = Ast::intersection([
        leap_shape("+"),
        hours("+", |hour| (hour + 1) % 24),
        dependent(exactly(any(), 3), "59", "+", exactly(any(), 3), "00", Ast::Epsilon),
    ]);
    Ast::alternation([same_tens, next_tens, next_hour])
}

fn leap_shape(sign: &str) -> Ast {
    Ast::concat([
        exactly(digit(), 2),
        literal(":"),
        exactly(digit(), 2),
        literal(":60"),
        Ast::optional(Ast::concat([literal("."), some(digit())])),
        literal(sign),
        exactly(digit(), 2),
        literal(":"),
        exactly(digit(), 2),
    ])
}

/// Returns any character of times. [`leap_shape`] checks the order, which keeps the many
/// dependencies between digits small. A list of all pairs of times and offsets would be a hundred
/// times larger.
fn any() -> Ast {
    one_of("09::..")
}

/// `time` after `before`, and after the sign, `offset` after `between` and before `after`.
fn dependent(before: Ast, time: &str, sign: &str, between: Ast, offset: &str, after: Ast) -> Ast {
    let middle = Ast::repeat(any(), 0, None);
    Ast::concat([before, literal(time), middle, literal(sign), between, literal(offset), after])
}

/// Each hour with the hour of its offset.
fn hours(sign: &str, offset: fn(u32) -> u32) -> Ast {
    let text = |hour: u32| format!("{hour:02}");
    Ast::alternation((0..24).map(|hour| {
        let after = exactly(any(), 3);
        dependent(Ast::Epsilon, &text(hour), sign, Ast::Epsilon, &text(offset(hour)), after)
    }))
}

/// Each first digit of the minute, up to `count` of them, with that of the offset's.
fn minute_tens(sign: &str, count: u32, offset: fn(u32) -> u32) -> Ast {
    let before = || exactly(any(), 3);
    Ast::alternation((0..count).map(|tens| {
        dependent(before(), &tens.to_string(), sign, before(), &offset(tens).to_string(), any())
    }))
}

/// Each second digit of the minute, up to `count` of them, with that of the offset's.
fn minute_units(sign: &str, count: u32, offset: fn(u32) -> u32) -> Ast {
    let before = || exactly(any(), 4);
    Ast::alternation((0..count).map(|units| {
        let (time, offset) = (units.to_string(), offset(units).to_string());
        dependent(before(), &time, sign, before(), &offset, Ast::Epsilon)
    }))
}

/// A date and a time with a `T` between them.
pub(super) fn date_time() -> Ast {
    Ast::concat([date(), one_of("TTtt"), time()])
}

/// `P` and amounts of neighbouring units.
pub(super) fn duration() -> Ast {
    let amount = |unit: &str| Ast::concat([some(digit()), literal(unit)]);
    // Each unit may be followed by the next smaller one, and by no other.
    let chain = |units: [&str; 3]| {
        let last = amount(units[2]);
        let middle = Ast::concat([amount(units[1]), Ast::optional(last.clone())]);
        let first = Ast::concat([amount(units[0]), Ast::optional(middle.clone())]);
        Ast::alternation([first, middle, last])
    };
    let time = || Ast::concat([literal("T"), chain(["H", "M", "S"])]);
    Ast::concat([
        literal("P"),
        Ast::alternation([
            amount("W"),
            Ast::concat([chain(["Y", "M", "D"]), Ast::optional(time())]),
            time(),
        ]),
    ])
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[
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
];

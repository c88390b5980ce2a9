//! Patterns that are built, so that most of them are valid: alternatives, repetitions, classes,
//! lookaround and flags in each other, in any of the three dialects.

use arbitrary::Unstructured;

use crate::driver::Driver;
use crate::regex::check;
use crate::shape::Shape;

pub fn run(data: &[u8]) {
    let (shape, steps) = data.split_at(data.len() / 2);
    let mut input = Unstructured::new(shape);
    let mut shape = Shape::new(&mut input, 20);
    let mut pattern = String::new();
    write(&mut shape, 0, &mut pattern);
    check(&pattern, Driver::new(steps));
}

const ATOMS: [&str; 28] = [
    "a", "b", "ab", "é", "€", "1", "\\.", ".", "[ab]", "[^a]", "[a-f0-9]", "\\d", "\\w", "\\s",
    "\\D", "\\W", "\\S", "[\\s\\S]", "[^\\n]", "\\n", "\\x41", "(?:)", "\\b", "\\B", "^", "$",
    "[é-€]", "\"",
];
const TIMES: [&str; 14] = [
    "*", "+", "?", "{2}", "{0,3}", "{1,2}", "{2,}", "*?", "+?", "??", "{3,40}", "{0}", "{1,}?",
    "{99}",
];
const OPENINGS: [&str; 12] =
    ["(?:", "(?:", "(?:", "(", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?s:", "(?P<n>", "(?m:"];

fn write(shape: &mut Shape<'_, '_>, depth: usize, out: &mut String) {
    for alternative in 0..1 + shape.count(2) {
        if alternative > 0 {
            out.push('|');
        }
        for _ in 0..1 + shape.count(3) {
            if depth < 4 && shape.part() && shape.flag() {
                out.push_str(shape.pick(&OPENINGS));
                write(shape, depth + 1, out);
                out.push(')');
            } else {
                out.push_str(shape.pick(&ATOMS));
            }
            if shape.once_in(3) {
                out.push_str(shape.pick(&TIMES));
            }
        }
    }
}

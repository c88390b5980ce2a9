//! The position of the current item among the earlier ones, and the tokens that distinguish it from
//! all of them.

use smallvec::SmallVec;

use crate::json::agreement::OpenMember;
use crate::json::compared::Compared;
use crate::json::history::{has_exponent, plain, Histories};
use crate::json::used_keys::UsedId;
use crate::stacks::ids::LexemeId;
use crate::stacks::on::On;
use ffwd_regular::expr::LexState;
use ffwd_regular::regex::Decimal;

/// The most zeros that an exponent stands for.
const MAX_ZEROS: u64 = 1 << 16;

/// The position of a scalar's text among the earlier items.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// The whole text of a number.
    pub(crate) number: Option<Vec<u8>>,
    /// For a number all earlier items; for other scalars those that start with the text so far.
    pub(crate) node: UsedId,
    pub(crate) numbers: Numbers,
}

/// How a number may go on. By default nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Whether any number of digits may follow.
    pub(crate) takes_digits: bool,
    /// Whether some digits may be followed only by an exponent.
    pub(crate) needs_exponent: bool,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { takes_digits: false, needs_exponent: true }
    }
}

pub(crate) enum Further {
    /// No earlier item continues with this text.
    Apart,
    /// No earlier number does without an exponent.
    Exponents(Pointer),
    At(Pointer),
}

/// The relation of the earlier items to the tokens that a thread matches.
#[derive(Clone, Debug)]
pub enum Rivals {
    /// They exclude nothing, unless a token begins another item.
    None,
    /// The position of the current item's text among them.
    Scalar(Pointer),
    /// The item is a container, in the middle of a member that is a string.
    Member(UsedId, OpenMember),
    /// The item is a container, in or before a number without an exponent: the number's lexeme, and
    /// its state.
    Digits((LexemeId, LexState)),
    /// An item begins: all earlier items, and the numbers that it may be.
    Begins(UsedId, Numbers),
    /// They may exclude any token.
    Some,
}

impl Pointer {
    pub(crate) fn new(histories: &Histories, all: UsedId, text: &[u8]) -> Option<Self> {
        match text.first() {
            Some(b'-' | b'0'..=b'9') => Some(Self::number(all, text.to_vec())),
            _ => Some(Self::other(histories.find(all, text)?)),
        }
    }

    fn number(all: UsedId, text: Vec<u8>) -> Self {
        Self { number: Some(text), node: all, numbers: Numbers::default() }
    }

    pub(crate) fn other(node: UsedId) -> Self {
        Self { number: None, node, numbers: Numbers::default() }
    }

    /// Whether the current text is an earlier item.
    pub(crate) fn is_used(&self, histories: &Histories) -> bool {
        let Some(text) = &self.number else { return histories.sets.ends(self.node) };
        if has_exponent(text) && !histories.share_digits(self.node, text) {
            return false;
        }
        let number = Decimal::parse(&String::from_utf8_lossy(text)).ok();
        // Texts with so many zeros are not compared.
        let number = number.filter(|number| number.exponent().unsigned_abs() <= MAX_ZEROS);
        let node = number.and_then(|number| histories.find(self.node, &plain(&number)));
        node.is_some_and(|node| histories.sets.ends(node))
    }

    pub(crate) fn next(&self, histories: &Histories, byte: u8) -> Further {
        let Some(text) = &self.number else {
            let child = histories.sets.child(self.node, byte);
            return child.map_or(Further::Apart, |node| Further::At(Self::other(node)));
        };
        let mut text = text.clone();
        text.push(byte);
        let is_apart = is_apart(histories, self.node, &text);
        let there = Self::number(self.node, text);
        match is_apart {
            true => Further::Exponents(there),
            false => Further::At(there),
        }
    }
}

/// Whether no earlier number can be written without an exponent and with these first characters.
pub(crate) fn is_apart(histories: &Histories, all: UsedId, text: &[u8]) -> bool {
    if has_exponent(text) {
        return false;
    }
    let significant = match text.iter().position(|&byte| byte == b'.') {
        Some(point) => {
            let zeros = text.iter().rev().take_while(|&&byte| byte == b'0').count();
            let end = text.len() - zeros;
            if end == point + 1 {
                point
            } else {
                end
            }
        }
        None => text.len(),
    };
    let text = &text[..significant];
    let begins = |text: &[u8]| histories.find(all, text).is_some();
    // Zero has one entry, whatever its sign.
    !(begins(text) || matches!(text, b"-" | b"-0") && begins(b"0"))
}

impl Rivals {
    /// Returns whether a token keeps the current item different from all earlier ones.
    pub fn clears<O: On>(&self, compared: &Compared<'_, O>, token: &[u8]) -> bool {
        let histories = &compared.json.histories;
        match self {
            Self::None => true,
            Self::Some => false,
            Self::Member(history, open) => open.is_apart(histories, *history, token),
            Self::Digits(number) => {
                let is_number = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
                is_number && matches!(compared.stays_many(*number, token), Ok(true))
            }
            Self::Scalar(pointer) => match &pointer.number {
                // A repeated item is refused with everything after its end.
                None => histories.find_apart(pointer.node, token),
                Some(text) => {
                    is_number_apart(histories, pointer.node, text, token, pointer.numbers)
                }
            },
            &Self::Begins(all, numbers) => {
                let token = token.trim_ascii_start();
                let token = token.strip_prefix(b",").unwrap_or(token).trim_ascii_start();
                match token.first() {
                    None => true,
                    Some(b'1'..=b'9') => is_number_apart(histories, all, b"", token, numbers),
                    Some(b'-' | b'0') => {
                        let numbers = Numbers { takes_digits: false, ..numbers };
                        is_number_apart(histories, all, b"", token, numbers)
                    }
                    Some(&kind @ (b'{' | b'[')) => histories.sets.child(all, kind).is_none(),
                    Some(b'"' | b'n' | b't' | b'f') => histories.find_apart(all, token),
                    Some(_) => false,
                }
            }
        }
    }
}

impl Rivals {
    /// Whether the current text, after a token in which no item ends, is neither an earlier item
    /// nor the beginning of one.
    pub fn are_left_by<O: On>(&self, compared: &Compared<'_, O>, token: &[u8]) -> bool {
        let histories = &compared.json.histories;
        match self {
            Self::None => true,
            Self::Some | Self::Digits(_) => false,
            Self::Member(history, open) => open.is_apart(histories, *history, token),
            Self::Scalar(Pointer { number: None, node, .. }) => histories.find_apart(*node, token),
            Self::Scalar(Pointer { number: Some(text), node, numbers }) => {
                !numbers.needs_exponent && is_apart(histories, *node, &[text, token].concat())
            }
            &Self::Begins(all, numbers) => {
                let token = token.trim_ascii_start();
                let token = token.strip_prefix(b",").unwrap_or(token).trim_ascii_start();
                match token.first() {
                    None => true,
                    Some(b'-' | b'0'..=b'9') => {
                        !numbers.needs_exponent && is_apart(histories, all, token)
                    }
                    Some(&kind @ (b'{' | b'[')) => histories.sets.child(all, kind).is_none(),
                    Some(b'"' | b'n' | b't' | b'f') => histories.find_apart(all, token),
                    Some(_) => false,
                }
            }
        }
    }
}

/// Returns whether a number that continues with a token differs from all earlier ones.
fn is_number_apart(
    histories: &Histories,
    all: UsedId,
    written: &[u8],
    token: &[u8],
    numbers: Numbers,
) -> bool {
    let end = token.iter().position(|byte| b",] \t\n\r".contains(byte));
    let more = &token[..end.unwrap_or(token.len())];
    if end.is_none() && numbers.takes_digits && more.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let text = [written, more].concat();
    if has_exponent(&text) {
        return !histories.share_digits(all, &text);
    }
    match end {
        None => !numbers.needs_exponent && is_apart(histories, all, &text),
        Some(_) => !Pointer::number(all, text).is_used(histories),
    }
}

impl Histories {
    /// Whether a number with these significant digits, and this sign, is among some. No other can
    /// equal a number with these digits before its exponent.
    pub(crate) fn share_digits(&self, all: UsedId, number: &[u8]) -> bool {
        let sets = &self.sets;
        let mantissa = number.iter().take_while(|byte| !b"eE".contains(byte));
        let digits: SmallVec<[u8; 32]> = mantissa
            .copied()
            .filter(u8::is_ascii_digit)
            .skip_while(|&digit| digit == b'0')
            .collect();
        let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
        let digits = &digits[..digits.len() - zeros];
        if digits.is_empty() {
            return sets.child(all, b'0').is_some_and(|zero| sets.ends(zero));
        }
        let signed = if number.first() == Some(&b'-') { sets.child(all, b'-') } else { Some(all) };
        let Some(signed) = signed else { return false };
        let ends = |node: Option<UsedId>| node.is_some_and(|node| sets.ends(node));
        // An integer, with any zeros after the digits.
        let mut node = self.find(signed, digits);
        while let Some(at) = node {
            if sets.ends(at) {
                return true;
            }
            node = sets.child(at, b'0');
        }
        // A point among the digits.
        let mut whole = signed;
        for (at, &digit) in digits.iter().enumerate() {
            if at > 0
                && ends(self.find(whole, b".").and_then(|point| self.find(point, &digits[at..])))
            {
                return true;
            }
            let Some(next) = sets.child(whole, digit) else { break };
            whole = next;
        }
        // Zeros before the digits.
        let mut node = self.find(signed, b"0.");
        while let Some(at) = node {
            if ends(self.find(at, digits)) {
                return true;
            }
            node = sets.child(at, b'0');
        }
        false
    }

    /// Whether some bytes lead away from all earlier items, from a place where none of these ends.
    fn find_apart(&self, node: UsedId, bytes: &[u8]) -> bool {
        let mut node = node;
        for &byte in bytes {
            match self.sets.child(node, byte) {
                Some(child) => node = child,
                None => return !self.sets.ends(node),
            }
        }
        false
    }
}

/// Returns the bytes that may continue a scalar.
pub(crate) fn likely_bytes(pointer: &Pointer) -> impl Iterator<Item = u8> {
    // The search starts with the last: longer numbers soon differ from the earlier ones.
    let number: &[u8] = b"eE+-.0123456789";
    let is_number = pointer.number.is_some();
    let of_number = number.iter().copied().filter(move |_| is_number);
    of_number.chain((0..=255u8).filter(move |_| !is_number))
}

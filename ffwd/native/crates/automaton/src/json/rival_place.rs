//! The place of a scalar's text among the earlier items, without the text itself.
//!
//! A place is a node of the persistent trie of the items, so one more item changes the places of
//! one path. Whether a scalar can still differ from all of them depends on its place and on the
//! state of its lexeme, and is cached by both.

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::agreement::MAX_DEPTH as MAX_COMPARED_DEPTH;
use crate::json::compared::Compared;
use crate::json::history::{has_exponent, Histories};
use crate::json::members::{open_place, OpenPlace, Step};
use crate::json::used_keys::UsedId;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Spelling};

/// A byte that only numbers with an exponent have: literals lack the capital letter.
pub(crate) const EXPONENT: u8 = b'E';

/// How many states one search for an unused text enters.
pub(crate) const MAX_SEARCHED: usize = 200_000;

/// The text of a scalar, or of its beginning, beside the items that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RivalPlace {
    /// No byte of the item has been written.
    Start(UsedId),
    /// The items that start with the text: each string or literal has one text.
    Text(UsedId),
    /// The same of a number, whose value may be written in several ways.
    Number(NumberPlace),
    /// A number that starts like no earlier item, and that an exponent may still make equal to one.
    NewNumber,
}

/// The text of a number without an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberPlace {
    /// The numbers that start with the text without the zeros at the end of its fraction.
    node: UsedId,
    /// How many zeros these are.
    zeros: u32,
    part: Part,
    /// Whether the text is a zero with a minus sign, or the sign alone, and zero is an earlier
    /// item.
    is_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Whole,
    /// After the point, with only zeros so far.
    Point,
    /// After the point, as are the numbers at the node.
    Fraction,
}

/// What a scalar can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// An unused value.
    Something,
    /// Only earlier items.
    Nothing,
    /// Only numbers with an exponent, which a place does not distinguish.
    Exponents,
}

/// Where a byte leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPlace {
    /// To another place among them.
    At(RivalPlace),
    /// Away from all earlier items.
    Apart,
    /// To the exponent of a number.
    Exponent,
}

/// The current text of a thread, compared with the earlier items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Earlier items exclude nothing, unless a token begins another item.
    Nothing,
    /// A scalar.
    Scalar(BesideScalar),
    /// A scalar in a container, or a name. The place is among the values there of the containers
    /// that agree with the item so far. The number counts those from which the item can differ
    /// whatever the scalar is.
    Member(BesideScalar, u32),
    /// Something else.
    Other,
}

/// A scalar, or its beginning, compared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideScalar {
    /// Where it is among them.
    pub place: RivalPlace,
    /// Its lexeme, and the state of that.
    pub lexeme: (LexemeId, LexState),
    values: UsedId,
    written: Vec<u8>,
}

/// The values that containers have at the current place of an item, the text there, and its lexeme.
struct MemberValues {
    values: UsedId,
    written: Vec<u8>,
    lexeme: (LexemeId, LexState),
    /// Whether the item equals an earlier one exactly if its scalar is among the values: nothing
    /// but closing brackets can follow, and the values are those of containers that end so too.
    decides: bool,
}

/// The values at the current place of the containers that agree with an item so far.
enum Agreed {
    /// None of them agrees.
    None,
    Values(MemberValues),
    /// Something else.
    Unknown,
}

impl RivalPlace {
    /// The place of a text without an exponent; `None` if it becomes no earlier item.
    fn of(histories: &Histories, all: UsedId, text: &[u8]) -> Option<Self> {
        text.iter().try_fold(Self::Start(all), |place, &byte| place.next(histories, byte))
    }

    /// The place after one more byte that begins no exponent; `None` if it leads to no earlier item.
    fn next(self, histories: &Histories, byte: u8) -> Option<Self> {
        let sets = &histories.sets;
        match self {
            Self::Start(all) if byte == b'-' => {
                let is_zero = sets.child(all, b'0').is_some_and(|zero| sets.ends(zero));
                Some(NumberPlace::at(sets.child(all, byte), 0, Part::Whole, is_zero))
            }
            Self::Start(all) if byte.is_ascii_digit() => {
                Some(NumberPlace::at(sets.child(all, byte), 0, Part::Whole, false))
            }
            Self::Start(node) | Self::Text(node) => sets.child(node, byte).map(Self::Text),
            Self::Number(number) => Some(number.next(histories, byte)),
            Self::NewNumber => Some(self),
        }
    }

    /// Whether the current text is an earlier item.
    pub(crate) fn is_used(self, histories: &Histories) -> bool {
        match self {
            Self::Start(_) | Self::NewNumber => false,
            Self::Text(node) => histories.sets.ends(node),
            Self::Number(NumberPlace { node, is_zero, .. }) => is_zero || histories.sets.ends(node),
        }
    }

    /// Whether it is one of a number that has begun.
    fn is_in_number(self) -> bool {
        matches!(self, Self::Number(_) | Self::NewNumber)
    }

    /// Whether a byte begins the exponent of a number.
    fn is_exponent(self, byte: u8) -> bool {
        self.is_in_number() && matches!(byte, b'e' | b'E')
    }
}

impl NumberPlace {
    /// The place at the numbers of a node, if there are any.
    fn at(node: Option<UsedId>, zeros: u32, part: Part, is_zero: bool) -> RivalPlace {
        let node = node.unwrap_or(UsedId::EMPTY);
        match node != UsedId::EMPTY || is_zero {
            true => RivalPlace::Number(Self { node, zeros, part, is_zero }),
            false => RivalPlace::NewNumber,
        }
    }

    fn next(self, histories: &Histories, byte: u8) -> RivalPlace {
        let Self { node, zeros, part, is_zero } = self;
        match (part, byte) {
            (Part::Whole, b'.') => Self::at(Some(node), 0, Part::Point, is_zero),
            (Part::Whole, _) => {
                Self::at(histories.find(node, &[byte]), 0, part, is_zero && byte == b'0')
            }
            (_, b'0') => Self::at(Some(node), zeros.saturating_add(1), part, is_zero),
            _ => {
                let point = if part == Part::Point { &b"."[..] } else { b"" };
                let mut from = histories.find(node, point);
                for _ in 0..zeros {
                    from = from.and_then(|node| histories.sets.child(node, b'0'));
                }
                let node = from.and_then(|node| histories.sets.child(node, byte));
                Self::at(node, 0, Part::Fraction, false)
            }
        }
    }
}

/// A place that a search has reached.
struct Visit {
    place: RivalPlace,
    state: LexState,
    /// The next byte to try.
    byte: u16,
    left: Left,
}

impl<O: On> Compared<'_, O> {
    /// The current text of a thread's item, compared with the earlier items.
    pub fn beside(&self, thread: &Thread) -> Result<Beside> {
        if !self.on.has_history(thread.stack) {
            return Ok(Beside::Nothing);
        }
        if let Frame::ArrayOpen(state) | Frame::ArrayAfter(state) = self.on.cell(thread.stack).frame
        {
            if self.json.arrays.history_at(state).is_some_and(|history| history != UsedId::EMPTY) {
                return Ok(Beside::Other);
            }
        }
        let levels = self.levels(thread.stack);
        let is_only = match self.levels(thread.stack).take(2).count() {
            0 => return Ok(Beside::Nothing),
            count => count == 1,
        };
        if thread.transcript == TextId::ANY {
            return Ok(Beside::Other);
        }
        let mut found: SmallVec<[MemberValues; 2]> = SmallVec::new();
        for (level, _, history) in levels {
            let item = self.item_text(thread, level);
            found.push(match self.scalar_of(thread, level) {
                Some(lexeme) => {
                    MemberValues { values: history, written: item, lexeme, decides: true }
                }
                None => match self.member_values(thread, (level, history), item, is_only)? {
                    Agreed::None => continue,
                    Agreed::Unknown => return Ok(Beside::Other),
                    Agreed::Values(values) => values,
                },
            });
        }
        let Some(MemberValues { written, lexeme, decides, .. }) = found.first() else {
            return Ok(Beside::Nothing);
        };
        if has_exponent(written) {
            return Ok(Beside::Other);
        }
        // An item may be within another one.
        let mut all = UsedId::EMPTY;
        for MemberValues { values, .. } in &found {
            all = self.json.histories.sets.union(all, *values)?;
        }
        let Some(place) = place_of(self, all, written, *lexeme) else {
            return Ok(Beside::Nothing);
        };
        let (lexeme, written) = (*lexeme, written.clone());
        let scalar = BesideScalar { place, lexeme, values: all, written };
        if *decides && found.len() == 1 {
            return Ok(Beside::Scalar(scalar));
        }
        Ok(Beside::Member(scalar, self.rivals_with_room(thread)?))
    }

    /// How many items may have the member that a thread is in the middle of so that what follows
    /// tells the item from all of them.
    fn rivals_with_room(&self, thread: &Thread) -> Result<u32> {
        // Within another item, what follows may have to differ from what is written here.
        let around = self.on.cell(self.on.level(thread.stack)).parent;
        Ok(match self.on.level(around) {
            StackId::END => self.room_after(thread)?.saturating_sub(1),
            _ => 0,
        })
    }

    /// The most items that have the text at a place as a whole value; or, if asked, any one value
    /// that starts with it.
    pub fn most_items(&self, place: RivalPlace, goes_on: bool) -> u32 {
        let sets = &self.json.histories.sets;
        let node = match place {
            RivalPlace::Number(NumberPlace { is_zero: true, .. }) | RivalPlace::NewNumber => {
                return u32::MAX
            }
            RivalPlace::Start(node)
            | RivalPlace::Text(node)
            | RivalPlace::Number(NumberPlace { node, .. }) => node,
        };
        match goes_on {
            true => sets.most_below(node),
            false => sets.times(node),
        }
    }

    /// The values at a thread's place of the containers that agree with its item so far. `is_only`:
    /// the item neither contains nor lies within another one.
    fn member_values(
        &self,
        thread: &Thread,
        (level, history): (StackId, UsedId),
        mut item: Vec<u8>,
        is_only: bool,
    ) -> Result<Agreed> {
        if item.is_empty() {
            return Ok(Agreed::Unknown);
        }
        let agreed = self.json.histories.agreed(&self.json.schema, history, &item)?;
        if agreed == UsedId::EMPTY {
            return Ok(Agreed::None);
        }
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(Agreed::Unknown) };
        let is_name = match self.on.cell(thread.stack).frame {
            Frame::Value(_) => false,
            Frame::ObjectOpen(_) | Frame::ObjectKey(_) => true,
            _ => return Ok(Agreed::Unknown),
        };
        let state = thread.lex_state();
        let Some(open) = open_place(&item) else { return Ok(Agreed::Unknown) };
        let OpenPlace { path, start, .. } = &open;
        let is_start = self.on.lexeme(index).is_start(state);
        // Names are strings; before them come line breaks.
        if self.json.layouts.place(index).is_some()
            || is_name && self.on.lexeme(index).spec().spelling != Spelling::JsonString
            || is_name != (path.last() == Some(&Step::Names))
            || is_start != (*start == item.len())
        {
            return Ok(Agreed::Unknown);
        }
        // Parts of containers that lie deeper are not compared one by one.
        let decides = is_only
            && !is_name
            && path.len() <= MAX_COMPARED_DEPTH
            && self.closes_after(thread, level)?;
        let values = match decides {
            true => self.json.histories.values_at(&self.json.schema, agreed, &open.closing_path()),
            false => self.json.histories.values_at(&self.json.schema, agreed, path),
        };
        let Some(values) = values? else { return Ok(Agreed::Unknown) };
        let written = item.split_off(*start);
        Ok(Agreed::Values(MemberValues { values, written, lexeme: (index, state), decides }))
    }

    /// Whether the current member of a thread distinguishes its item from all earlier ones, or
    /// still can; `None` if the member does not tell. `is_only`: the item neither contains nor lies
    /// within another one. Otherwise these may exclude values that have not begun.
    pub(crate) fn is_member_apart(
        &self,
        thread: &Thread,
        (level, history): (StackId, UsedId),
        item: &[u8],
        is_only: bool,
    ) -> Result<Option<bool>> {
        let agreed = self.member_values(thread, (level, history), item.to_vec(), is_only)?;
        let MemberValues { values, written, lexeme, decides } = match agreed {
            Agreed::None => return Ok(Some(true)),
            Agreed::Unknown => return Ok(None),
            Agreed::Values(values) => values,
        };
        if has_exponent(&written) {
            let is_apart = !self.json.histories.share_digits(values, &written)
                || is_only && self.has_unused_text(lexeme, values, &written)?;
            return Ok(is_apart.then_some(true));
        }
        let Some(place) = place_of(self, values, &written, lexeme) else { return Ok(Some(true)) };
        if !is_only {
            return Ok(None);
        }
        Ok(match self.scalar_left(place, lexeme)? {
            Left::Something => Some(true),
            // Items with a value that only an exponent makes are at other places.
            Left::Exponents
                if self.scalar_left(RivalPlace::NewNumber, lexeme)? != Left::Something =>
            {
                None
            }
            Left::Nothing if decides => Some(false),
            _ => (self.most_items(place, true) <= self.rivals_with_room(thread)?).then_some(true),
        })
    }

    /// The place of a scalar after one more byte, which leads to a state of its lexeme.
    pub fn next_place(
        &self,
        place: RivalPlace,
        byte: u8,
        lexeme: (LexemeId, LexState),
    ) -> NextPlace {
        if place.is_exponent(byte) {
            return NextPlace::Exponent;
        }
        match place.next(&self.json.histories, byte) {
            Some(next) if !is_apart_at(self, next, lexeme) => NextPlace::At(next),
            _ => NextPlace::Apart,
        }
    }

    /// The bytes that may lead to earlier items from a place; sorted.
    pub fn bytes_from(&self, place: RivalPlace) -> SmallVec<[u8; 16]> {
        let below = |node| {
            let children = self.json.histories.sets.children(node);
            children.iter().map(|&(byte, _)| byte)
        };
        match place {
            RivalPlace::Start(all) => {
                let numbers = (b'0'..=b'9').chain([b'-']);
                let mut bytes: SmallVec<_> = below(all).chain(numbers).collect();
                bytes.sort_unstable();
                bytes.dedup();
                bytes
            }
            RivalPlace::Text(node) => below(node).collect(),
            RivalPlace::Number(_) | RivalPlace::NewNumber => {
                b".0123456789Ee".iter().copied().collect()
            }
        }
    }

    /// Whether the text at a place is an earlier item.
    pub fn is_item(&self, place: RivalPlace) -> bool {
        place.is_used(&self.json.histories)
    }

    /// What a scalar can become from a place, and a state of its lexeme, on.
    pub(crate) fn scalar_left(
        &self,
        place: RivalPlace,
        (index, state): (LexemeId, LexState),
    ) -> Result<Left> {
        let histories = &self.json.histories;
        if state.accepts() && !place.is_used(histories) {
            return Ok(Left::Something);
        }
        if state.is_final() {
            return Ok(Left::Nothing);
        }
        let lexeme = self.on.lexeme(index);
        if let Some(known) = self.known_left(place, (index, state))? {
            return Ok(known);
        }
        meter::charge(8)?;
        let mut visits = vec![Visit { place, state, byte: 0, left: Left::Nothing }];
        let mut searched = 0;
        let mut found = None;
        while let Some(visit) = visits.last_mut() {
            let Some(byte) = next_byte(visit) else {
                let Some(Visit { place, state, left, .. }) = visits.pop() else { break };
                self.keep_left((place, index, state), left);
                match visits.last_mut() {
                    Some(before) if left == Left::Exponents => before.left = left,
                    Some(_) => {}
                    None => return Ok(left),
                }
                continue;
            };
            let Some(next) = lexeme.next(visit.state, byte)? else { continue };
            if visit.place.is_exponent(byte) {
                visit.left = Left::Exponents;
                continue;
            }
            let Some(there) = visit.place.next(histories, byte) else {
                found = Some(());
                break;
            };
            if next.accepts() && !there.is_used(histories) {
                found = Some(());
                break;
            }
            // More zeros at the end of a fraction change nothing.
            let stays = next == visit.state && there.is_in_number();
            if next.is_final() || stays {
                continue;
            }
            match self.known_left(there, (index, next))? {
                Some(Left::Something) => {
                    found = Some(());
                    break;
                }
                Some(Left::Exponents) => visit.left = Left::Exponents,
                Some(Left::Nothing) => {}
                None => {
                    meter::charge(8)?;
                    searched += 1;
                    if searched > MAX_SEARCHED {
                        let what = "distinct_texts_searched";
                        return Err(LimitExceeded::new(what, MAX_SEARCHED).into());
                    }
                    visits.push(Visit { place: there, state: next, byte: 0, left: Left::Nothing });
                }
            }
        }
        if found.is_none() {
            return Ok(Left::Nothing);
        }
        for Visit { place, state, .. } in visits {
            self.keep_left((place, index, state), Left::Something);
        }
        Ok(Left::Something)
    }

    fn keep_left(&self, key: (RivalPlace, LexemeId, LexState), left: Left) {
        self.json
            .held
            .add(crate::interning::memory::map_entry::<(RivalPlace, LexemeId, LexState), Left>());
        self.json.rivals.left.lock().insert(key, left);
    }

    /// What is known without a search.
    fn known_left(
        &self,
        place: RivalPlace,
        (index, state): (LexemeId, LexState),
    ) -> Result<Option<Left>> {
        if let Some(&known) = self.json.rivals.left.lock().get(&(place, index, state)) {
            return Ok(Some(known));
        }
        let lexeme = self.on.lexeme(index);
        let is_plain = match place {
            RivalPlace::Start(_) => false,
            RivalPlace::Text(node) => {
                // The earlier items need not be among these texts, so fewer texts prove nothing.
                let came = self.json.histories.sets.count(node) as usize;
                match lexeme.listed(state) {
                    Some((listed, _)) => listed.count() > came,
                    None => lexeme.takes_anything(state),
                }
            }
            RivalPlace::Number(_) => self.has_many_numbers(index, state)?,
            RivalPlace::NewNumber => {
                is_apart_at(self, place, (index, state)) || self.has_many_numbers(index, state)?
            }
        };
        Ok(is_plain.then_some(Left::Something))
    }
}

/// The place of a scalar without an exponent among some values; `None` if it becomes none of
/// them.
pub(crate) fn place_of<O: On>(
    compared: &Compared<'_, O>,
    values: UsedId,
    written: &[u8],
    lexeme: (LexemeId, LexState),
) -> Option<RivalPlace> {
    let place = RivalPlace::of(&compared.json.histories, values, written)?;
    (!is_apart_at(compared, place, lexeme)).then_some(place)
}

/// Whether a scalar at a place becomes no earlier item.
fn is_apart_at<O: On>(
    compared: &Compared<'_, O>,
    place: RivalPlace,
    (index, state): (LexemeId, LexState),
) -> bool {
    place == RivalPlace::NewNumber && !compared.on.lexeme(index).may_have(state, EXPONENT)
}

/// Whether a token with an exponent may make a scalar equal to one that it is beside.
pub(crate) fn may_equal<O: On>(
    compared: &Compared<'_, O>,
    scalar: &BesideScalar,
    token: &[u8],
) -> bool {
    let is_number = |byte: &&u8| b"+-.eE".contains(byte) || byte.is_ascii_digit();
    let text: Vec<u8> =
        scalar.written.iter().chain(token.iter().take_while(is_number)).copied().collect();
    !has_exponent(&text) || compared.json.histories.share_digits(scalar.values, &text)
}

/// The next byte of a search.
fn next_byte(visit: &mut Visit) -> Option<u8> {
    let byte = u8::try_from(visit.byte).ok()?;
    visit.byte += 1;
    Some(byte)
}

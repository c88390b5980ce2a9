//! Items that later ones are compared with, for readers of tokens.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::array_state::Spare;
use crate::json::blanks::behind_blanks;
use crate::json::compared::Compared;
use crate::json::pointer::Rivals;
use crate::json::rival_place::{may_equal, Beside, BesideScalar, Left, NextPlace, RivalPlace};
use crate::run::automaton::Automaton;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_regular::expr::LexState;

/// Whether items can still differ from the earlier ones. Without JSON they always can.
#[derive(Clone, Copy)]
pub struct Items<'a>(Option<Compared<'a, Automaton>>);

impl Automaton {
    /// Items compared with the earlier ones.
    #[inline]
    pub fn items(&self) -> Items<'_> {
        Items(self.compared())
    }

    #[inline]
    pub(crate) fn compared(&self) -> Option<Compared<'_, Self>> {
        self.json().map(|json| json.compared(self))
    }

    /// Whether earlier items may exclude what a thread becomes.
    #[inline]
    pub(crate) fn is_rivalled(&self, thread: &Thread) -> bool {
        thread.transcript != TextId::NONE
            && self.compared().is_some_and(|compared| compared.is_rivalled(thread))
    }
}

impl Items<'_> {
    /// Whether an array that has been begun may require equal items. Otherwise what is allowed
    /// after any item includes what is allowed after each one.
    pub fn may_have_to_repeat(&self) -> bool {
        self.0.is_some_and(|compared| compared.json.arrays.repeats.load(Ordering::Acquire))
    }

    /// Whether blanks after a value say nothing of what comes next.
    pub fn blanks_are_free(&self, thread: &Thread) -> bool {
        self.0.is_some_and(|compared| {
            compared.json.layouts.blanks_are_free(compared.on.cell(thread.stack).layout)
        })
    }

    /// The stack without the earlier items.
    pub fn without_history(&self, stack: StackId) -> Result<StackId> {
        self.0.map_or(Ok(stack), |compared| compared.without_history(stack))
    }

    /// How earlier items restrict the tokens that a thread matches.
    pub fn rivals(&self, thread: &Thread) -> Result<Rivals> {
        self.0.map_or(Ok(Rivals::None), |compared| compared.rivals(thread))
    }

    /// Whether a token certainly leads to no earlier item.
    pub fn clears(&self, rivals: &Rivals, token: &[u8]) -> bool {
        self.0.is_none_or(|compared| rivals.clears(&compared, token))
    }

    /// Whether strings are certainly no earlier items, and the last one begins none, for a thread in
    /// such an item.
    pub fn are_new(&self, thread: &Thread, ended: &[&[u8]], begun: &[u8]) -> bool {
        let Some(compared) = self.0 else { return true };
        let mut levels = compared.levels(thread.stack);
        let (Some((level, _, history)), None) = (levels.next(), levels.next()) else {
            return false;
        };
        compared.on.cell(thread.stack).parent == level
            && compared.json.histories.lack(history, ended, begun)
    }

    /// Whether a token certainly leads away from all earlier items.
    pub fn leaves(&self, rivals: &Rivals, token: &[u8]) -> bool {
        self.0.is_none_or(|compared| rivals.are_left_by(&compared, token))
    }

    /// Whether the value of the item before a stack affects what follows.
    pub fn spare(&self, stack: StackId) -> Result<Spare> {
        self.0.map_or(Ok(Spare::None), |compared| compared.spare(stack))
    }

    /// Whether every token that a thread reads within its lexeme keeps the item distinct from all
    /// earlier ones, whatever they are; and whether the item still has infinitely many values.
    pub fn stays_endless(&self, thread: &Thread) -> Result<bool> {
        self.0.map_or(Ok(true), |compared| compared.stays_endless(thread))
    }

    /// Whether the current item of a stack has infinitely many values, whatever the earlier items
    /// are.
    pub fn is_endless_at(&self, stack: StackId) -> Result<bool> {
        self.0.map_or(Ok(true), |compared| compared.is_endless_at(stack))
    }

    /// The current text of a thread's item, compared with the earlier items.
    pub fn beside(&self, thread: &Thread) -> Result<Beside> {
        self.0.map_or(Ok(Beside::Nothing), |compared| compared.beside(thread))
    }

    /// Whether a thread reads a bracket, comma or colon, or blanks beside one.
    pub fn is_in_mark(&self, thread: &Thread) -> bool {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return false };
        self.0.is_some_and(|compared| compared.json.layouts.place(index).is_some())
    }

    /// The threads that read what follows a bracket, comma or colon, if that is no blank; `None` for a
    /// thread that is not behind one.
    pub fn behind_blanks(&self, thread: &Thread) -> Result<Option<Threads>> {
        self.0.map_or(Ok(None), |compared| behind_blanks(&compared, thread))
    }

    /// The place of a scalar after one more byte, which leads to a state of its lexeme.
    pub fn next_place(
        &self,
        place: RivalPlace,
        byte: u8,
        lexeme: (LexemeId, LexState),
    ) -> NextPlace {
        self.0.map_or(NextPlace::Apart, |compared| compared.next_place(place, byte, lexeme))
    }

    /// Whether a token with an exponent may make a scalar equal to one that it is beside.
    pub fn may_equal(&self, scalar: &BesideScalar, token: &[u8]) -> bool {
        self.0.is_none_or(|compared| may_equal(&compared, scalar, token))
    }

    /// The bytes that may lead to earlier items from a place; sorted.
    pub fn bytes_from(&self, place: RivalPlace) -> SmallVec<[u8; 16]> {
        self.0.map_or(SmallVec::new(), |compared| compared.bytes_from(place))
    }

    /// Whether the text at a place is an earlier item.
    pub fn is_item(&self, place: RivalPlace) -> bool {
        self.0.is_some_and(|compared| compared.is_item(place))
    }

    /// The most items that have the text at a place as a whole value; or, if asked, any one value
    /// that starts with it.
    pub fn most_items(&self, place: RivalPlace, goes_on: bool) -> u32 {
        self.0.map_or(u32::MAX, |compared| compared.most_items(place, goes_on))
    }

    /// What a scalar can become from a place, and a state of its lexeme, on.
    pub fn left_at(&self, place: RivalPlace, scalar: (LexemeId, LexState)) -> Result<Left> {
        self.0.map_or(Ok(Left::Something), |compared| compared.scalar_left(place, scalar))
    }
}

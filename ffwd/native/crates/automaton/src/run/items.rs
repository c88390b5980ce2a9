//! Items that later ones are compared with, for who reads tokens.

use smallvec::SmallVec;

use crate::error::EngineError;
use crate::json::array_state::Spare;
use crate::json::compared::Compared;
use crate::json::pointer::Rivals;
use crate::json::rival_place::{Beside, Left, NextPlace, RivalPlace};
use crate::run::automaton::Automaton;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::thread::Thread;
use ffwd_regular::expr::LexState;

/// What the items that came leave of those that must differ from them. Without JSON that is all.
#[derive(Clone, Copy)]
pub struct Items<'a>(Option<Compared<'a, Automaton>>);

impl Automaton {
    /// Items beside those that came.
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
    /// The stack without the items that came.
    pub fn without_history(&self, stack: StackId) -> Result<StackId, EngineError> {
        self.0.map_or(Ok(stack), |compared| compared.without_history(stack))
    }

    /// How earlier items restrict the tokens that a thread matches.
    pub fn rivals(&self, thread: &Thread) -> Result<Rivals, EngineError> {
        self.0.map_or(Ok(Rivals::None), |compared| compared.rivals(thread))
    }

    /// Whether a token certainly leads to no item that came.
    pub fn clears(&self, rivals: &Rivals, token: &[u8]) -> bool {
        self.0.is_none_or(|compared| rivals.clears(&compared, token))
    }

    /// Whether a token certainly leaves all items that came.
    pub fn leaves(&self, rivals: &Rivals, token: &[u8]) -> bool {
        self.0.is_none_or(|compared| rivals.are_left_by(&compared, token))
    }

    /// Whether it matters for what follows which value the item was that the stack stands after.
    pub fn spare(&self, stack: StackId) -> Result<Spare, EngineError> {
        self.0.map_or(Ok(Spare::None), |compared| compared.spare(stack))
    }

    /// Whether tokens that a thread of any history reads within its lexeme are beside all items that
    /// came, and whether the item is still endless where it stands.
    pub fn stays_endless(&self, thread: &Thread) -> Result<bool, EngineError> {
        self.0.map_or(Ok(true), |compared| compared.stays_endless(thread))
    }

    /// Whether the item that a stack stands in has values without end, whatever has come before.
    pub fn is_endless_at(&self, stack: StackId) -> Result<bool, EngineError> {
        self.0.map_or(Ok(true), |compared| compared.is_endless_at(stack))
    }

    /// What a thread writes of an item, beside the items that came.
    pub fn beside(&self, thread: &Thread) -> Result<Beside, EngineError> {
        self.0.map_or(Ok(Beside::Nothing), |compared| compared.beside(thread))
    }

    /// The place of a scalar after a byte more.
    pub fn next_place(&self, place: RivalPlace, byte: u8) -> NextPlace {
        self.0.map_or(NextPlace::Apart, |compared| compared.next_place(place, byte))
    }

    /// The bytes with which items that came go on from a place, and others; sorted.
    pub fn bytes_from(&self, place: RivalPlace) -> SmallVec<[u8; 16]> {
        self.0.map_or(SmallVec::new(), |compared| compared.bytes_from(place))
    }

    /// Whether what is written at a place is an item that came.
    pub fn is_item(&self, place: RivalPlace) -> bool {
        self.0.is_some_and(|compared| compared.is_item(place))
    }

    /// How many items have what is written at a place, at most: as it is, or also each of those that
    /// go on from there.
    pub fn most_items(&self, place: RivalPlace, goes_on: bool) -> u32 {
        self.0.map_or(u32::MAX, |compared| compared.most_items(place, goes_on))
    }

    /// What a scalar can become from a place, and a state of its lexeme, on.
    pub fn left_at(&self, place: RivalPlace, scalar: (u32, LexState)) -> Result<Left, EngineError> {
        self.0.map_or(Ok(Left::Something), |compared| compared.scalar_left(place, scalar))
    }
}

//! The threads of a configuration.

use smallvec::SmallVec;

use crate::stacks::ids::{KeyNodeId, LexemeId, StackId, TextId};
use ffwd_regular::expr::LexState;

/// The current lexeme of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadLexeme {
    /// The text is complete.
    End,
    /// The declared names of an object; the state is a [`KeyNodeId`].
    Key,
    /// A lexeme of the automaton.
    Lexeme(LexemeId),
    /// A set of tokens, of which one is taken as a whole.
    Tokens(u32),
    /// An escape in a string, whose character the lexeme before it will read, by its number in
    /// `run::escapes`.
    Escape(u32),
}

/// A lexeme in progress, and the stack of what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The current lexeme.
    pub lexeme: ThreadLexeme,
    /// The state of that, by its kind: see [`Self::lex_state`] and [`Self::key_node`].
    pub state: u32,
    /// What must follow.
    pub stack: StackId,
    /// The key so far, if keys must not repeat. [`TextId::EMPTY`] while the key is a prefix of a
    /// declared name, which determines it.
    pub text: TextId,
    /// The outermost current item with which later ones are compared.
    pub transcript: TextId,
}

impl Thread {
    pub(crate) const END: Self = Self {
        lexeme: ThreadLexeme::End,
        state: 0,
        stack: StackId::END,
        text: TextId::NONE,
        transcript: TextId::NONE,
    };

    /// In a state of a lexeme, with nothing recorded.
    pub(crate) fn of_lexeme(lexeme: LexemeId, state: LexState, stack: StackId) -> Self {
        let (lexeme, text) = (ThreadLexeme::Lexeme(lexeme), TextId::NONE);
        Self { lexeme, state: state.0, stack, text, transcript: TextId::NONE }
    }

    /// The state of a [`ThreadLexeme::Lexeme`].
    #[inline]
    pub fn lex_state(&self) -> LexState {
        LexState(self.state)
    }

    /// The state of a [`ThreadLexeme::Key`].
    #[inline]
    pub fn key_node(&self) -> KeyNodeId {
        KeyNodeId(self.state)
    }
}

/// The threads of one configuration, or of one that is not interned.
pub type Threads = SmallVec<[Thread; 4]>;

//! Stacks of frames, and the threads that stand on them, without the meaning of any frame.

pub(crate) mod cells;
pub(crate) mod frame;
pub(crate) mod ids;
pub(crate) mod lexemes;
pub(crate) mod on;
pub(crate) mod thread;

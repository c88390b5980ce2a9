//! Stacks of frames, and the threads that stand on them. Knows what no frame means.

pub(crate) mod frame;
pub(crate) mod thread;

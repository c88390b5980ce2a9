pub mod engine;
pub mod events;
pub mod explain;
pub mod fast_forward;
pub mod logits;
pub mod mask;
pub mod matcher;
pub mod saved;

pub mod error;
pub mod limits;
pub mod meter;
pub mod section;

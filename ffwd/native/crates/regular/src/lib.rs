pub mod expr;
pub mod regex;

pub mod bpe;
pub mod canonical;
pub mod pretokenizer;
pub mod streaming;
pub mod tokenizer;
pub mod vocabulary;

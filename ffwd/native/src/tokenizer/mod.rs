use crate::bpe::BpeTable; use crate::pretokenizer::PreTokenizer; use crate::vocabulary::TokenId;
#[derive(Debug)]
pub struct Tokenizer { table: BpeTable, pretokenizer: PreTokenizer }
impl Tokenizer {
    pub fn table(&self) -> &BpeTable { &self.table }
    pub fn pretokenizer(&self) -> &PreTokenizer { &self.pretokenizer }
    pub fn encode_part(&self, text: &[u8], out: &mut Vec<TokenId>) { self.table.encode_piece(text, out) }
}

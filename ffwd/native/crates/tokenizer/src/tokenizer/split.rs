//! The longest prefix of a text with a limited number of tokens.

use super::error::TextError;
use super::options::PartOptions;
use super::progress::Progress;
use super::Tokenizer;

/// The number of bytes read between two checks, and the size of a block in the search for the
/// split.
const BLOCK: usize = 64;

impl Tokenizer {
    /// The length in bytes of the longest prefix that ends at a character boundary and alone has at
    /// most `limit` tokens, special tokens as text. At least the first character, even if it has
    /// more tokens; 0 only for an empty text.
    ///
    /// A longer prefix can have fewer tokens than a shorter one, so this is not where the count
    /// first exceeds the limit. Reading stops as soon as no longer prefix can be within the limit.
    ///
    /// Under each hypothesis about the pieces, a longer text has the tokens before the open piece,
    /// and more. The longer open piece has one token more than one of its own prefixes, which is
    /// shorter by one token. So if no prefix that ends within the last bytes (as many as the
    /// longest token has) is below the limit, every longer one exceeds it.
    pub fn split_at(
        &self,
        text: &[u8],
        limit: usize,
        options: &PartOptions,
    ) -> Result<usize, TextError> {
        self.check_bytes(text)?;
        let boundaries = self.boundaries(options.pretokenize)?;
        let Some(&first) = text.first() else { return Ok(0) };
        let dummy = self.dummy_space.filter(|_| options.dummy_space);
        let spaced = usize::from(dummy.is_some_and(|dummy| dummy.is_before(first)));
        let mut progress = Progress::new(boundaries);
        progress.push(boundaries, self, &b" "[..spaced])?;
        let mut read = 0;
        while read < text.len() && !self.is_beyond(&mut progress, limit) {
            let block = &text[read..text.len().min(read + BLOCK)];
            progress.push(boundaries, self, block).map_err(|error| error.unshifted(spaced))?;
            read += block.len();
        }
        let complete = progress.complete() - spaced;
        if read == text.len() && complete < read {
            return Err(TextError::NotUtf8 { at: complete });
        }
        if options.normalize {
            self.normalizer.keeps(&text[..complete])?;
        }
        // Block by block backwards, and forwards within each.
        let mut end = complete;
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            progress.truncate(boundaries, self, start + spaced);
            let mut found = None;
            for at in start..end {
                progress.push(boundaries, self, &text[at..=at])?;
                if progress.complete() == at + 1 + spaced
                    && progress.count(boundaries, self) <= limit
                {
                    found = Some(at + 1);
                }
            }
            if let Some(found) = found {
                return Ok(found);
            }
            end = start;
        }
        let first = (1..text.len()).find(|&at| text[at] & 0xC0 != 0x80);
        Ok(first.unwrap_or(text.len()))
    }

    /// Whether every longer text has more than `limit` tokens.
    fn is_beyond(&self, progress: &mut Progress, limit: usize) -> bool {
        let longest = self.table.max_token_bytes();
        progress.all_lives(|text, live, long| {
            if live.before >= limit {
                return true;
            }
            if text.len() - live.start < longest {
                return false;
            }
            (text.len() - longest + 1..=text.len())
                .rev()
                .all(|end| live.before + long.count(self, text, live.start, end) >= limit)
        })
    }
}

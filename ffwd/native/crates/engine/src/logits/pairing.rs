//! The pairing of rows of logits with rows of the bitmask.

use thiserror::Error;

/// Rows that cannot be paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PairingError {
    /// Rows are paired one to one, and there are not equally many.
    #[error(
        "the logits have {logits} rows and the bitmask {masks}; where not every row of the logits \
         has one of its own, say which with indices and mask_rows"
    )]
    Counts {
        /// Rows of the logits.
        logits: usize,
        /// Rows of the bitmask.
        masks: usize,
    },
    /// As many rows of the bitmask must be given as rows of the logits.
    #[error("{given} mask_rows were given for {rows} rows of the logits")]
    Lengths {
        /// How many rows of the bitmask were given.
        given: usize,
        /// For how many rows of the logits.
        rows: usize,
    },
    /// A row is negative, or not less than the number of rows.
    #[error("row {row} of the {of} is out of range: there are {count}")]
    OutOfRange {
        /// `logits` or `bitmask`.
        of: &'static str,
        /// As it was given.
        row: i64,
        /// How many rows there are.
        count: usize,
    },
    /// Two masks were given for one row.
    #[error("row {row} of the logits is given twice")]
    Twice {
        /// The row of the logits.
        row: usize,
    },
}

/// Pairs of a row of the logits and a row of the mask, in the order of the logits.
///
/// `indices` are rows of the logits, by default all; `mask_rows` are the rows of the mask for them,
/// by default those of the same numbers.
pub fn pair(
    logits: usize,
    masks: usize,
    indices: Option<&[i64]>,
    mask_rows: Option<&[i64]>,
) -> Result<Vec<(usize, usize)>, PairingError> {
    let rows = indices.map_or(logits, <[i64]>::len);
    match mask_rows.map(<[i64]>::len) {
        Some(given) if given != rows => return Err(PairingError::Lengths { given, rows }),
        None if indices.is_none() && logits != masks => {
            return Err(PairingError::Counts { logits, masks })
        }
        _ => {}
    }
    let mut pairs = Vec::with_capacity(rows);
    for at in 0..rows {
        let row = indices.and_then(|rows| rows.get(at)).copied().unwrap_or(at as i64);
        let mask = mask_rows.and_then(|rows| rows.get(at)).copied().unwrap_or(row);
        pairs.push((within("logits", row, logits)?, within("bitmask", mask, masks)?));
    }
    pairs.sort_unstable();
    match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(PairingError::Twice { row: pair[0].0 }),
        None => Ok(pairs),
    }
}

fn within(of: &'static str, row: i64, count: usize) -> Result<usize, PairingError> {
    let found = usize::try_from(row).ok().filter(|&row| row < count);
    found.ok_or(PairingError::OutOfRange { of, row, count })
}

use super::*;
use proptest::prelude::*;

/// The slow twin: one bit after the other.
fn by_hand<T: Lane>(logits: &mut [T], words: &[u32], vocab_size: usize, blocked: T) {
    for (token, logit) in logits.iter_mut().enumerate() {
        let word = words.get(token / 32).copied().unwrap_or(0);
        if token >= vocab_size || word >> (token % 32) & 1 == 0 {
            *logit = blocked;
        }
    }
}

/// Words as masks have them: runs of zeros and ones, few bits, nearly all bits, anything.
fn word() -> impl Strategy<Value = u32> {
    let few = (0..32u32, 0..32u32).prop_map(|(a, b)| 1 << a | 1 << b);
    prop_oneof![
        4 => Just(0),
        4 => Just(u32::MAX),
        1 => few.clone(),
        2 => few.prop_map(|bits| !bits),
        1 => any::<u32>(),
    ]
}

fn words() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec((word(), 1..40usize), 0..12).prop_map(|runs| {
        runs.into_iter().flat_map(|(word, length)| std::iter::repeat_n(word, length)).collect()
    })
}

fn check<T: Lane>(
    logits: &[T],
    words: &[u32],
    vocab_size: usize,
    blocked: T,
    bits: impl Fn(&T) -> u64,
) {
    let (mut fast, mut slow) = (logits.to_vec(), logits.to_vec());
    mask_row(&mut fast, words, vocab_size, blocked);
    by_hand(&mut slow, words, vocab_size, blocked);
    assert!(fast.iter().map(&bits).eq(slow.iter().map(&bits)));
    // A position that is not written would show.
    let mut copied = slow.iter().rev().copied().collect::<Vec<T>>();
    mask_copy(&mut copied, logits, words, vocab_size, blocked);
    assert!(copied.iter().map(&bits).eq(slow.iter().map(&bits)));
    assert_eq!(is_starved(&slow, words, blocked), slow.iter().all(|logit| *logit == blocked));
}

proptest! {
    #[test]
    fn a_row_is_what_its_bits_say(
        words in words(),
        extra in -40..40i64,
        less in 0..50usize,
        seed in any::<u64>(),
    ) {
        let width = usize::try_from(words.len() as i64 * 32 + extra).unwrap_or(0);
        let vocab_size = (words.len() * 32).saturating_sub(less);
        // All bit patterns: NaN, infinities and subnormal numbers are copied like any other.
        let noise = |i: usize| (seed ^ i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let doubles: Vec<f64> = (0..width).map(|i| f64::from_bits(noise(i))).collect();
        let singles: Vec<f32> = (0..width).map(|i| f32::from_bits(noise(i) as u32)).collect();
        let halves: Vec<u16> = (0..width).map(|i| (noise(i) >> 7) as u16).collect();
        for vocab_size in [vocab_size, usize::MAX] {
            check(&doubles, &words, vocab_size, f64::NEG_INFINITY, |x| x.to_bits());
            check(&singles, &words, vocab_size, f32::NEG_INFINITY, |x| x.to_bits().into());
            check(&halves, &words, vocab_size, FLOAT16_MINUS_INFINITY, |&x| x.into());
            check(&halves, &words, vocab_size, BFLOAT16_MINUS_INFINITY, |&x| x.into());
        }
    }
}

#[test]
fn minus_infinities_have_the_right_bits() {
    // A bfloat16 is the upper half of a single.
    let single = f32::from_bits(u32::from(BFLOAT16_MINUS_INFINITY) << 16);
    assert_eq!(single, f32::NEG_INFINITY);
    // Sign, all five bits of the exponent, nothing else.
    assert_eq!(FLOAT16_MINUS_INFINITY, 1 << 15 | 0b11111 << 10);
}

fn work<'a>(
    batch: &'a mut [Vec<f32>],
    source: Option<&'a [f32]>,
    words: &'a [u32],
) -> Vec<Work<'a, f32>> {
    batch.iter_mut().map(|logits| Work { logits, source, words }).collect()
}

#[test]
fn any_number_of_threads_writes_the_same() {
    let words: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(0x9E37_79B9).rotate_left(i)).collect();
    let logits: Vec<f32> = (0..64 * 32 - 5).map(|i| i as f32).collect();
    let mut expected = logits.clone();
    by_hand(&mut expected, &words, 2000, f32::NEG_INFINITY);
    for threads in [None, NonZeroUsize::new(1), NonZeroUsize::new(3), NonZeroUsize::new(100)] {
        for rows in [0, 1, 9] {
            let mut batch = vec![logits.clone(); rows];
            let starved = apply(work(&mut batch, None, &words), f32::NEG_INFINITY, 2000, threads);
            assert!(batch.iter().all(|row| *row == expected));
            assert_eq!(starved, vec![false; rows]);
            let mut copies = vec![vec![0.5; logits.len()]; rows];
            apply(work(&mut copies, Some(&logits), &words), f32::NEG_INFINITY, 2000, threads);
            assert!(copies.iter().all(|row| *row == expected));
            let mut none = vec![vec![f32::NEG_INFINITY; logits.len()]; rows];
            let starved = apply(work(&mut none, None, &words), f32::NEG_INFINITY, 2000, threads);
            assert_eq!(starved, vec![true; rows]);
        }
    }
}

#[test]
fn rows_are_paired() {
    assert_eq!(pair(3, 3, None, None), Ok(vec![(0, 0), (1, 1), (2, 2)]));
    assert_eq!(pair(3, 5, Some(&[2, 0]), None), Ok(vec![(0, 0), (2, 2)]));
    assert_eq!(pair(9, 2, Some(&[7, 4]), Some(&[0, 1])), Ok(vec![(4, 1), (7, 0)]));
    assert_eq!(pair(2, 1, None, Some(&[0, 0])), Ok(vec![(0, 0), (1, 0)]));
    assert_eq!(pair(3, 1, Some(&[]), None), Ok(vec![]));
}

#[test]
fn rows_that_cannot_be_paired_are_named() {
    use PairingError::{Counts, Lengths, OutOfRange, Twice};
    assert_eq!(pair(3, 4, None, None), Err(Counts { logits: 3, masks: 4 }));
    assert_eq!(pair(3, 3, None, Some(&[0, 1])), Err(Lengths { given: 2, rows: 3 }));
    assert_eq!(pair(3, 3, Some(&[1]), Some(&[])), Err(Lengths { given: 0, rows: 1 }));
    assert_eq!(pair(3, 3, Some(&[1, 0, 1]), None), Err(Twice { row: 1 }));
    let out = |of, row, count| Err(OutOfRange { of, row, count });
    assert_eq!(pair(3, 3, Some(&[3]), None), out("logits", 3, 3));
    assert_eq!(pair(3, 2, Some(&[2]), None), out("bitmask", 2, 2));
    assert_eq!(pair(3, 2, Some(&[-1]), None), out("logits", -1, 3));
    assert_eq!(pair(3, 2, Some(&[0]), Some(&[-1])), out("bitmask", -1, 2));
}

#[test]
fn only_batches_with_much_to_write_get_threads() {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = |rows: usize, word: u32| {
        let words = vec![word; 1 << 15];
        let mut batch = vec![vec![0.0f32; 1 << 20]; rows];
        worthwhile_threads(&work(&mut batch, None, &words))
    };
    assert_eq!((threads(0, 0), threads(1, 0), threads(5, u32::MAX)), (1, 1, 1));
    assert_eq!(threads(3, 0), cores.min(3));
}

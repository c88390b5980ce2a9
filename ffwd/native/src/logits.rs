//! Masking of logits in numpy arrays that the caller owns.

use std::num::NonZeroUsize;

use bytemuck::Pod;
use numpy::ndarray::{ArrayBase, ArrayView2, Axis, Ix2, IxDyn, RawData};
use numpy::{
    BorrowError, Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use super::bitmask::Lent;
use super::errors::BitmaskError;
use super::released::Released;
use ffwd_engine::logits::{self, Lane, Work, BFLOAT16_MINUS_INFINITY, FLOAT16_MINUS_INFINITY};

fn error(message: impl ToString) -> PyErr {
    BitmaskError::new_err(message.to_string())
}

/// Checks that an array consists of rows of adjacent numbers, and that rows do not overlap.
fn check_rows(array: &Bound<'_, PyUntypedArray>, what: &str) -> PyResult<()> {
    let size = array.dtype().itemsize().max(1).cast_signed();
    let (rows, width, stride, step) = match (array.shape(), array.strides()) {
        (&[width], &[step]) => (1, width, 0, step),
        (&[rows, width], &[stride, step]) => (rows, width, stride, step),
        (other, _) => {
            return Err(error(format!(
                "{what} must have the shape [rows, width] or [width], not {other:?}"
            )))
        }
    };
    if rows == 0 || width == 0 {
        return Ok(());
    }
    if !array.is_aligned() || stride % size != 0 {
        return Err(error(format!("the memory of {what} must be aligned")));
    }
    if width > 1 && step != size {
        return Err(error(format!(
            "the rows of {what} must be contiguous, but their numbers are {step} bytes apart"
        )));
    }
    if rows > 1 && stride.unsigned_abs() < width * size.unsigned_abs() {
        return Err(error(format!("the rows of {what} must not overlap in memory")));
    }
    Ok(())
}

fn two_dimensional<S: RawData>(array: ArrayBase<S, IxDyn>) -> PyResult<ArrayBase<S, Ix2>> {
    let array = if array.ndim() == 1 { array.insert_axis(Axis(0)) } else { array };
    array.into_dimensionality::<Ix2>().map_err(error)
}

fn borrowed<T>(what: &str, array: Result<T, BorrowError>) -> PyResult<T> {
    array.map_err(|cause| error(format!("the memory of {what} cannot be used: {cause}")))
}

fn words_of<'a, T: Pod>(bitmask: &'a ArrayView2<'_, T>) -> PyResult<Vec<&'a [u32]>> {
    let rows = bitmask.outer_iter().map(|row| row.to_slice().map(bytemuck::cast_slice));
    rows.collect::<Option<_>>().ok_or_else(|| error("the rows of the bitmask must be contiguous"))
}

/// A request whose arguments are checked, except for the type of the logits.
struct Request<'a> {
    masks: &'a [&'a [u32]],
    pairs: Vec<(usize, usize)>,
    source: Option<&'a Bound<'a, PyUntypedArray>>,
    vocab_size: usize,
    threads: Option<NonZeroUsize>,
}

impl Request<'_> {
    fn carry_out<T: Element + Lane>(
        self,
        logits: &Bound<'_, PyArrayDyn<T>>,
        minus_infinity: T,
    ) -> PyResult<Vec<usize>> {
        let given = self.source.map(|array| array.cast::<PyArrayDyn<T>>());
        let given = given.transpose().map_err(|_| error("the source must be as the logits are"))?;
        let given = given.map(|array| borrowed("the source", array.try_readonly())).transpose()?;
        let given = given.as_ref().map(|array| two_dimensional(array.as_array())).transpose()?;
        let mut memory = borrowed("the logits", logits.try_readwrite())?;
        let mut array = two_dimensional(memory.as_array_mut())?;
        let mut pairs = self.pairs.into_iter().peekable();
        let mut work: Vec<Work<'_, T>> = Vec::with_capacity(pairs.len());
        let mut rows = Vec::with_capacity(pairs.len());
        for (at, row) in array.outer_iter_mut().enumerate() {
            if let Some((_, mask)) = pairs.next_if(|&(row, _)| row == at) {
                let uneven = || error("rows must be contiguous");
                let logits = row.into_slice().ok_or_else(uneven)?;
                let source = given.as_ref().map(|given| given.row(at).to_slice());
                let source = source.map(|row| row.ok_or_else(uneven)).transpose()?;
                work.extend(self.masks.get(mask).map(|words| Work { logits, source, words }));
                rows.push(at);
            }
        }
        let (vocab_size, threads) = (self.vocab_size, self.threads);
        let starved = || logits::apply(work, minus_infinity, vocab_size, threads);
        let starved = logits.py().released(starved);
        Ok(rows
            .into_iter()
            .zip(starved)
            .filter_map(|(row, starved)| starved.then_some(row))
            .collect())
    }
}

/// Mask logits in numpy arrays, as `ffwd.apply_token_bitmask_inplace` describes.
///
/// Args:
///     logits: float32 or float64, or uint16 with the bits of 16-bit floats.
///     bitmask: int32 or uint32.
///     indices: Rows of the logits.
///     mask_rows: The rows of the bitmask for them.
///     halves: "float16" or "bfloat16", the meaning of uint16.
///     vocab_size: The number of tokens.
///     threads: The most threads to use.
///     source: Of the shape and type of the logits: what is masked, instead of the logits.
///
/// Returns:
///     The rows of the logits in which every token that the mask allows has minus infinity.
///
/// Raises:
///     BitmaskError: As `ffwd.apply_token_bitmask_inplace`.
#[pyfunction]
#[pyo3(signature = (
    logits, bitmask, *, indices=None, mask_rows=None, halves=None, vocab_size=None, threads=None,
    source=None
))]
#[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
pub fn mask_logits(
    logits: &Bound<'_, PyUntypedArray>,
    bitmask: &Bound<'_, PyUntypedArray>,
    indices: Option<Vec<i64>>,
    mask_rows: Option<Vec<i64>>,
    halves: Option<&str>,
    vocab_size: Option<i64>,
    threads: Option<i64>,
    source: Option<&Bound<'_, PyUntypedArray>>,
) -> PyResult<Vec<usize>> {
    check_rows(logits, "the logits")?;
    if let Some(source) = source {
        check_rows(source, "the source")?;
        if source.shape() != logits.shape() {
            return Err(error("the source must have the shape of the logits"));
        }
    }
    check_rows(bitmask, "the bitmask")?;
    let _lent = Lent::new();
    let (signed, signed_view, unsigned, unsigned_view);
    let masks = if let Ok(array) = bitmask.cast::<PyArrayDyn<i32>>() {
        signed = borrowed("the bitmask", array.try_readonly())?;
        signed_view = two_dimensional(signed.as_array())?;
        words_of(&signed_view)?
    } else if let Ok(array) = bitmask.cast::<PyArrayDyn<u32>>() {
        unsigned = borrowed("the bitmask", array.try_readonly())?;
        unsigned_view = two_dimensional(unsigned.as_array())?;
        words_of(&unsigned_view)?
    } else {
        return Err(error(format!("a bitmask must be int32 or uint32, not {}", bitmask.dtype())));
    };
    let rows = if logits.ndim() == 1 { 1 } else { logits.shape().first().copied().unwrap_or(0) };
    let width = logits.shape().last().copied().unwrap_or(0);
    let covered = bitmask.shape().last().copied().unwrap_or(0).saturating_mul(32);
    let request = Request {
        pairs: logits::pair(rows, masks.len(), indices.as_deref(), mask_rows.as_deref())
            .map_err(error)?,
        masks: &masks,
        source,
        vocab_size: tokens(vocab_size, width, covered)?,
        threads: match threads.map(|threads| (threads, usize::try_from(threads))) {
            None => None,
            Some((_, Ok(threads @ 1..))) => NonZeroUsize::new(threads),
            Some((given, _)) => {
                return Err(error(format!("threads must be at least 1, but is {given}")))
            }
        },
    };
    if let Ok(logits) = logits.cast::<PyArrayDyn<f32>>() {
        return request.carry_out(logits, f32::NEG_INFINITY);
    }
    if let Ok(logits) = logits.cast::<PyArrayDyn<f64>>() {
        return request.carry_out(logits, f64::NEG_INFINITY);
    }
    match (logits.cast::<PyArrayDyn<u16>>(), halves) {
        (Ok(logits), Some("float16")) => request.carry_out(logits, FLOAT16_MINUS_INFINITY),
        (Ok(logits), Some("bfloat16")) => request.carry_out(logits, BFLOAT16_MINUS_INFINITY),
        _ => Err(error(format!(
            "logits must be float32, float64, float16 or bfloat16, not {}",
            logits.dtype()
        ))),
    }
}

/// Returns the number of tokens: the caller's, or the capacity of both arrays.
fn tokens(given: Option<i64>, width: usize, covered: usize) -> PyResult<usize> {
    let Some(given) = given else { return Ok(width.min(covered)) };
    match usize::try_from(given) {
        Ok(tokens) if tokens > width => {
            Err(error(format!("vocab_size is {tokens}, but the logits have only {width} columns")))
        }
        Ok(tokens) if tokens > covered => Err(error(format!(
            "vocab_size is {tokens}, but a row of the bitmask has only {covered} bits"
        ))),
        Ok(tokens @ 1..) => Ok(tokens),
        _ => Err(error(format!("vocab_size must be at least 1, but is {given}"))),
    }
}

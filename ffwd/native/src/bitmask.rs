//! Rows of bitmasks in memory that the caller owns.

use std::sync::atomic::{AtomicUsize, Ordering};

use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::errors::{self, BitmaskError};
use super::matcher::PyMatcher;
use super::released::Released;
use ffwd_engine::matcher::Matcher;

enum Memory<'py> {
    Signed(PyReadwriteArrayDyn<'py, i32>),
    Unsigned(PyReadwriteArrayDyn<'py, u32>),
}

/// How many [`Lent`] live. It changes only with the interpreter lock held.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// A bitmask that is read or written without the interpreter lock, as long as this lives.
pub struct Lent;

impl Lent {
    pub fn new() -> Self {
        LENT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A borrowed bitmask. It may be written without the interpreter lock.
pub struct Rows<'py> {
    memory: Memory<'py>,
    shape: (usize, usize),
    _lent: Lent,
}

fn error(message: impl Into<String>) -> PyErr {
    BitmaskError::new_err(message.into())
}

impl<'py> Rows<'py> {
    /// Borrows a numpy array, or the memory of a torch tensor on the CPU.
    pub fn of(bitmask: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(rows) = Self::of_array(bitmask)? {
            return Ok(rows);
        }
        // `Tensor.numpy` shares the memory; it fails for tensors elsewhere or with a gradient.
        let py = bitmask.py();
        let kind = bitmask.get_type();
        let Ok(numpy) = bitmask.getattr(pyo3::intern!(py, "numpy")) else {
            return Err(error(format!(
                "a bitmask must be an int32 or uint32 numpy array or torch tensor, not {kind}"
            )));
        };
        let array = numpy.call0().map_err(|cause| {
            error(format!("the memory of the {kind} cannot be shared with numpy: {cause}"))
        })?;
        Self::of_array(&array)?
            .ok_or_else(|| error(format!("{kind}.numpy() did not return a numpy array")))
    }

    fn of_array(bitmask: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let memory = if let Ok(array) = bitmask.cast::<PyArrayDyn<i32>>() {
            Memory::Signed(array.try_readwrite().map_err(|cause| error(cause.to_string()))?)
        } else if let Ok(array) = bitmask.cast::<PyArrayDyn<u32>>() {
            Memory::Unsigned(array.try_readwrite().map_err(|cause| error(cause.to_string()))?)
        } else if let Ok(array) = bitmask.cast::<numpy::PyUntypedArray>() {
            return Err(error(format!("a bitmask must be int32 or uint32, not {}", array.dtype())));
        } else {
            return Ok(None);
        };
        let (shape, contiguous) = match &memory {
            Memory::Signed(array) => (array.shape(), array.is_c_contiguous()),
            Memory::Unsigned(array) => (array.shape(), array.is_c_contiguous()),
        };
        let shape = match *shape {
            [words] => (1, words),
            [rows, words] => (rows, words),
            ref other => {
                return Err(error(format!(
                    "a bitmask must have the shape [rows, words] or [words], not {other:?}"
                )))
            }
        };
        if !contiguous {
            return Err(error("a bitmask must be C-contiguous"));
        }
        Ok(Some(Self { memory, shape, _lent: Lent::new() }))
    }

    /// Writes one row of at least `needed` words with the interpreter lock held, which takes a
    /// fraction of a borrow. Returns `None`, and writes nothing, for everything but a valid row of a
    /// numpy array while no bitmask is [`Lent`]: [`Rows`] say what is wrong.
    pub fn write_row<R>(
        bitmask: &Bound<'py, PyAny>,
        row: usize,
        needed: usize,
        write: impl FnOnce(&mut [u32]) -> R,
    ) -> Option<R> {
        if let Ok(array) = bitmask.cast::<PyArrayDyn<i32>>() {
            write_to(array, row, needed, |row| write(bytemuck::cast_slice_mut(row)))
        } else if let Ok(array) = bitmask.cast::<PyArrayDyn<u32>>() {
            write_to(array, row, needed, write)
        } else {
            None
        }
    }

    /// The numbers of rows and of words in each.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// All rows, one behind the other.
    pub fn words(&mut self) -> PyResult<&mut [u32]> {
        match &mut self.memory {
            Memory::Signed(array) => array
                .as_slice_mut()
                .map(bytemuck::cast_slice_mut)
                .map_err(|cause| error(cause.to_string())),
            Memory::Unsigned(array) => {
                array.as_slice_mut().map_err(|cause| error(cause.to_string()))
            }
        }
    }

    /// Refuses a row that there is not, or one of fewer words than needed.
    pub fn check(&self, row: usize, needed: usize) -> PyResult<()> {
        let (rows, words) = self.shape;
        if row >= rows {
            return Err(error(format!("row {row} is out of range: the bitmask has {rows} rows")));
        }
        if words < needed {
            return Err(error(format!(
                "a row of the bitmask has {words} words, but the vocabulary needs {needed}"
            )));
        }
        Ok(())
    }

    /// One row, of at least `needed` words.
    pub fn row(&mut self, row: usize, needed: usize) -> PyResult<&mut [u32]> {
        self.check(row, needed)?;
        let words = self.shape.1;
        self.words()?
            .get_mut(row * words..(row + 1) * words)
            .ok_or_else(|| error("the bitmask has less memory than its shape says"))
    }
}

/// Writes a row while the interpreter lock is held; `None` if it is no valid row or is borrowed.
fn write_to<T: Element, R>(
    array: &Bound<'_, PyArrayDyn<T>>,
    row: usize,
    needed: usize,
    write: impl FnOnce(&mut [T]) -> R,
) -> Option<R> {
    let (rows, words) = match *array.shape() {
        [words] => (1, words),
        [rows, words] => (rows, words),
        _ => return None,
    };
    if row >= rows || words < needed || !array.is_c_contiguous() {
        return None;
    }
    // SAFETY: the array lives, and its flags are read with the lock held. Nothing here writes its
    // memory without the lock, as none is lent, and `write` does not release the lock.
    #[allow(unsafe_code)]
    let row = unsafe {
        let flags = (*numpy::npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags;
        if flags & NPY_ARRAY_WRITEABLE == 0 || LENT.load(Ordering::Relaxed) > 0 {
            return None;
        }
        array.as_slice_mut().ok()?.get_mut(row * words..(row + 1) * words)?
    };
    Some(write(row))
}

/// Fill one row per matcher, in parallel, without the interpreter lock.
///
/// Args:
///     matchers: Any grammars and vocabularies.
///     bitmask: As for `Matcher.fill_bitmask`.
///     rows: The row of each matcher, all different; by default 0, 1, 2, …
///     threads: How many threads may compute masks at once; by default one per processor.
///
/// Raises:
///     BitmaskError: As for `Matcher.fill_bitmask`, a duplicate row, or fewer than one thread; no
///         row is written then.
///     LimitExceededError: A matcher exceeded a limit. Its `rows` lists the rows that were not
///         written, in order; all others were, and the error is that of the first.
#[pyfunction]
#[pyo3(signature = (matchers, bitmask, rows=None, *, threads=None))]
pub fn fill_bitmasks(
    py: Python<'_>,
    matchers: Vec<PyRef<'_, PyMatcher>>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
    threads: Option<i64>,
) -> PyResult<()> {
    let threads = match threads.map(usize::try_from) {
        None => None,
        Some(Ok(threads @ 1..)) => Some(threads),
        Some(_) => return Err(error("threads must be at least 1")),
    };
    let rows = rows.unwrap_or_else(|| (0..matchers.len()).collect());
    if rows.len() != matchers.len() {
        let counts = (rows.len(), matchers.len());
        return Err(error(format!("{} rows were given for {} matchers", counts.0, counts.1)));
    }
    let mut memory = Rows::of(bitmask)?;
    let mut order: Vec<(usize, &Matcher)> = Vec::with_capacity(rows.len());
    for (&row, matcher) in rows.iter().zip(&matchers) {
        let matcher = &matcher.matcher;
        memory.check(row, matcher.compiled().engine.vocabulary().mask_words())?;
        order.push((row, matcher));
    }
    order.sort_unstable_by_key(|&(row, _)| row);
    if let Some(pair) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(error(format!("row {} is given twice", pair[0].0)));
    }
    let words = memory.shape.1;
    let slice = memory.words()?;
    let mut pending = order.into_iter().peekable();
    let mut work: Vec<(&Matcher, &mut [u32])> = Vec::new();
    let mut places = Vec::new();
    for (at, row) in slice.chunks_mut(words.max(1)).enumerate() {
        if let Some((_, matcher)) = pending.next_if(|&(row, _)| row == at) {
            work.push((matcher, row));
            places.push(at);
        }
    }
    py.released(|| ffwd_engine::matcher::fill_bitmasks(work, threads)).map_err(|unfilled| {
        let rows: Vec<usize> = unfilled.rows.iter().map(|&at| places[at]).collect();
        errors::rows(py, &unfilled.error, &rows)
    })
}

//! Rows of bitmasks in memory that the caller owns.

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use parking_lot::Mutex;
use pyo3::prelude::*;

use super::errors::{self, BitmaskError};
use super::matcher::PyMatcher;
use super::released::Released;
use ffwd_engine::matcher::Matcher;

/// How many [`Lent`] live. It is locked while a single row is written. Threads wait for it with the
/// interpreter lock, so who holds it must not let go of that one.
static LENT: Mutex<usize> = Mutex::new(0);

/// Whether arrays can be borrowed without letting go of the interpreter lock.
static CAN_BORROW: AtomicBool = AtomicBool::new(false);

/// Borrows an array of its own, since the first borrow of a process lets go of the interpreter
/// lock while it finds or makes the flags that all extension modules share.
fn prepare_borrows(py: Python<'_>) -> PyResult<()> {
    if !CAN_BORROW.load(Ordering::Acquire) {
        let array = PyArray1::<u32>::zeros(py, 1, false);
        array.try_readwrite().map_err(|cause| error(cause.to_string()))?;
        CAN_BORROW.store(true, Ordering::Release);
    }
    Ok(())
}

/// Arrays that a call on many rows has to itself, as long as this lives.
pub struct Lent;

impl Lent {
    pub fn new() -> Self {
        *LENT.lock() += 1;
        Self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *LENT.lock() -= 1;
    }
}

/// The array of a bitmask. Any threads may write single rows of it, one each.
pub enum Bitmask<'py> {
    Signed(Bound<'py, PyArrayDyn<i32>>),
    Unsigned(Bound<'py, PyArrayDyn<u32>>),
}

enum Memory<'py> {
    Signed(PyReadwriteArrayDyn<'py, i32>),
    Unsigned(PyReadwriteArrayDyn<'py, u32>),
}

/// A bitmask that a call has to itself, also while others have the interpreter.
pub struct Rows<'py> {
    memory: Memory<'py>,
    shape: (usize, usize),
    _lent: Lent,
}

fn error(message: impl Into<String>) -> PyErr {
    BitmaskError::new_err(message.into())
}

impl<'py> Bitmask<'py> {
    /// Takes a numpy array, or the memory of a torch tensor on the CPU.
    #[inline]
    pub fn of(bitmask: &Bound<'py, PyAny>) -> PyResult<Self> {
        match Self::of_array(bitmask)? {
            Some(array) => Ok(array),
            None => Self::of_tensor(bitmask),
        }
    }

    fn of_tensor(bitmask: &Bound<'py, PyAny>) -> PyResult<Self> {
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

    #[inline]
    fn of_array(bitmask: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(array) = bitmask.cast::<PyArrayDyn<i32>>() {
            Ok(Some(Self::Signed(array.clone())))
        } else if let Ok(array) = bitmask.cast::<PyArrayDyn<u32>>() {
            Ok(Some(Self::Unsigned(array.clone())))
        } else if let Ok(array) = bitmask.cast::<numpy::PyUntypedArray>() {
            Err(error(format!("a bitmask must be int32 or uint32, not {}", array.dtype())))
        } else {
            Ok(None)
        }
    }

    /// Writes one row of at least `needed` words. Other threads may write other rows at the same
    /// time, and `write` must not call Python.
    ///
    /// # Errors
    /// There is no such row, it has fewer words, or a call has the array to itself.
    #[inline]
    pub fn write<R>(
        &self,
        row: usize,
        needed: usize,
        write: impl FnOnce(&mut [u32]) -> R,
    ) -> PyResult<R> {
        match self {
            Self::Signed(array) => {
                write_to(array, row, needed, |row| write(bytemuck::cast_slice_mut(row)))
            }
            Self::Unsigned(array) => write_to(array, row, needed, write),
        }
    }
}

/// The numbers of rows and of words in each.
fn shape_of<T: Element>(array: &Bound<'_, PyArrayDyn<T>>) -> PyResult<(usize, usize)> {
    let shape = match *array.shape() {
        [words] => (1, words),
        [rows, words] => (rows, words),
        ref other => {
            return Err(error(format!(
                "a bitmask must have the shape [rows, words] or [words], not {other:?}"
            )))
        }
    };
    if !array.is_c_contiguous() {
        return Err(error("a bitmask must be C-contiguous"));
    }
    Ok(shape)
}

/// Refuses a row that there is not, or one of fewer words than needed.
fn check((rows, words): (usize, usize), row: usize, needed: usize) -> PyResult<()> {
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

fn write_to<T: Element, R>(
    array: &Bound<'_, PyArrayDyn<T>>,
    row: usize,
    needed: usize,
    write: impl FnOnce(&mut [T]) -> R,
) -> PyResult<R> {
    let (rows, words) = shape_of(array)?;
    check((rows, words), row, needed)?;
    prepare_borrows(array.py())?;
    let lent = LENT.lock();
    // A borrow takes longer than most masks. It is needed where a call may have this very array.
    let mut borrowed;
    // SAFETY: the array lives. While `LENT` is locked and no array is lent, nothing else here reads
    // or writes the memory of an array, and `write` does not call Python.
    #[allow(unsafe_code)]
    let all = unsafe {
        let flags = (*numpy::npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr())).flags;
        if *lent == 0 && flags & NPY_ARRAY_WRITEABLE != 0 {
            array.as_slice_mut()
        } else {
            borrowed = array.try_readwrite().map_err(|cause| error(cause.to_string()))?;
            borrowed.as_slice_mut()
        }
    };
    let all = all.map_err(|cause| error(cause.to_string()))?;
    let row = all.get_mut(row * words..(row + 1) * words).ok_or_else(too_small)?;
    Ok(write(row))
}

fn too_small() -> PyErr {
    error("the bitmask has less memory than its shape says")
}

impl<'py> Rows<'py> {
    /// Borrows a bitmask.
    pub fn of(bitmask: &Bound<'py, PyAny>) -> PyResult<Self> {
        let bitmask = Bitmask::of(bitmask)?;
        let lent = Lent::new();
        let borrowed = |cause: numpy::BorrowError| error(cause.to_string());
        let (shape, memory) = match &bitmask {
            Bitmask::Signed(array) => {
                (shape_of(array)?, Memory::Signed(array.try_readwrite().map_err(borrowed)?))
            }
            Bitmask::Unsigned(array) => {
                (shape_of(array)?, Memory::Unsigned(array.try_readwrite().map_err(borrowed)?))
            }
        };
        Ok(Self { memory, shape, _lent: lent })
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
        check(self.shape, row, needed)
    }
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

//! Limits, the meters of compilations, and flags that cancel calls.

use std::time::Duration;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::errors;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::heap;
use ffwd_bounds::meter::{faults, Cancellation, Meter};
use ffwd_engine::engine::Engine;

/// The values of an `ffwd.Limits`; `None` for what is unlimited.
#[derive(FromPyObject)]
pub struct LimitsArgument {
    source_bytes: Option<usize>,
    nesting: Option<usize>,
    expression_nodes: Option<usize>,
    states: Option<usize>,
    stacks: Option<usize>,
    memory_bytes: Option<usize>,
    work_bytes: Option<usize>,
    compile_steps: Option<u64>,
    call_steps: Option<u64>,
    compile_seconds: Option<f64>,
    call_seconds: Option<f64>,
}

impl From<LimitsArgument> for Limits {
    fn from(limits: LimitsArgument) -> Self {
        let count = |count: Option<usize>| count.unwrap_or(usize::MAX);
        let steps = |steps: Option<u64>| steps.unwrap_or(u64::MAX);
        let time = |seconds: Option<f64>| {
            let time = seconds.map(Duration::try_from_secs_f64);
            time.and_then(Result::ok).unwrap_or(Duration::MAX)
        };
        Self {
            source_bytes: count(limits.source_bytes),
            nesting: count(limits.nesting),
            expression_nodes: count(limits.expression_nodes),
            states: count(limits.states),
            stacks: count(limits.stacks),
            memory_bytes: count(limits.memory_bytes),
            work_bytes: count(limits.work_bytes),
            compile_steps: steps(limits.compile_steps),
            call_steps: steps(limits.call_steps),
            compile_time: time(limits.compile_seconds),
            call_time: time(limits.call_seconds),
        }
    }
}

/// Return the default limits of a grammar: see `ffwd.Limits`.
#[pyfunction]
pub fn default_limits(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let limits = Limits::default();
    let values = PyDict::new(py);
    values.set_item("source_bytes", limits.source_bytes)?;
    values.set_item("nesting", limits.nesting)?;
    values.set_item("expression_nodes", limits.expression_nodes)?;
    values.set_item("states", limits.states)?;
    values.set_item("stacks", limits.stacks)?;
    values.set_item("memory_bytes", limits.memory_bytes)?;
    values.set_item("work_bytes", limits.work_bytes)?;
    values.set_item("compile_steps", limits.compile_steps)?;
    values.set_item("call_steps", limits.call_steps)?;
    values.set_item("compile_seconds", limits.compile_time.as_secs_f64())?;
    values.set_item("call_seconds", limits.call_time.as_secs_f64())?;
    Ok(values)
}

/// A flag with which one thread cancels calls on others.
///
/// After `cancel`, a compilation or a matcher's call that was given the flag raises
/// `CancellationError` within some thousand steps. Later calls raise it at once, unless their
/// result is cached. Nothing else changes: after `reset` the same call can be repeated.
#[pyclass(name = "Cancellation", module = "ffwd", frozen)]
pub struct PyCancellation {
    pub flag: Cancellation,
}

#[pymethods]
impl PyCancellation {
    #[new]
    fn new() -> Self {
        Self { flag: Cancellation::default() }
    }

    /// Cancel the calls that were given the flag.
    fn cancel(&self) {
        self.flag.cancel();
    }

    /// Allow calls again.
    fn reset(&self) {
        self.flag.reset();
    }

    /// Whether `cancel` was called, and `reset` was not called after it.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.flag.is_cancelled()
    }

    fn __repr__(&self) -> String {
        let is = if self.flag.is_cancelled() { "True" } else { "False" };
        format!("Cancellation(is_cancelled={is})")
    }
}

pub fn flag(cancellation: Option<&Bound<'_, PyCancellation>>) -> Option<Cancellation> {
    cancellation.map(|cancellation| cancellation.get().flag.clone())
}

/// The budget of one compilation, which may take several calls.
///
/// Its time starts when it is made.
#[pyclass(name = "CompileMeter", module = "ffwd._native", frozen)]
pub struct PyCompileMeter {
    pub limits: Limits,
    meter: Mutex<Meter>,
}

impl Default for PyCompileMeter {
    fn default() -> Self {
        Self::of(Limits::default(), None)
    }
}

impl PyCompileMeter {
    pub fn of(limits: Limits, cancellation: Option<Cancellation>) -> Self {
        Self { limits, meter: Mutex::new(Meter::compiling(&limits, cancellation)) }
    }

    /// Does a part of the work without the interpreter lock, because it may take long.
    pub fn run<T, E: From<LimitExceeded>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.meter.lock().run(work)
    }

    /// As [`Self::run`], for work that builds something for an engine.
    pub fn run_for<T, E: From<LimitExceeded>>(
        &self,
        engine: &Engine,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        engine.settle_after(self.run(work))
    }

    /// Counts the bytes of a text before it is read.
    pub fn read(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        self.meter.lock().read(bytes).map_err(|error| errors::limit(py, &error))
    }
}

#[pymethods]
impl PyCompileMeter {
    #[new]
    #[pyo3(signature = (limits=None, cancellation=None))]
    fn new(
        limits: Option<LimitsArgument>,
        cancellation: Option<&Bound<'_, PyCancellation>>,
    ) -> Self {
        Self::of(limits.map_or_else(Limits::default, Limits::from), flag(cancellation))
    }

    /// The number of steps done.
    #[getter]
    fn steps(&self) -> u64 {
        self.meter.lock().spent()
    }

    fn __repr__(&self) -> String {
        format!("CompileMeter(steps={})", self.steps())
    }
}

/// Inject a deadline on this thread after this many checks of a meter; for tests.
///
/// All calls with a meter count; `None` removes the fault. Returns how many checks were left of the
/// previous one.
#[pyfunction]
#[pyo3(signature = (charges))]
pub fn inject_fault(charges: Option<u64>) -> Option<u64> {
    let left = faults::left();
    faults::inject(charges);
    left
}

/// Inject a failing allocation on this thread, by its number; for tests.
///
/// Allocations of all calls with a meter count; `None` removes the fault. Returns how many were
/// left of the previous one.
#[pyfunction]
#[pyo3(signature = (allocations))]
pub fn inject_allocation_fault(allocations: Option<u64>) -> Option<u64> {
    let left = heap::faults::left();
    heap::faults::inject(allocations);
    left
}

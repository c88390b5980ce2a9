//! The interpreter lock released, and the process not forked meanwhile.

use std::time::Duration;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use ffwd_bounds::section;

/// How long a fork waits for what other threads have begun. Whatever has a limit ends before.
const AT_MOST: Duration = Duration::from_secs(60);

pub trait Released {
    /// Runs something with the interpreter lock released. A thread that forks waits until it is done.
    fn released<T, F>(self, work: F) -> T
    where
        F: Send + FnOnce() -> T,
        T: Send;
}

impl Released for Python<'_> {
    fn released<T, F>(self, work: F) -> T
    where
        F: Send + FnOnce() -> T,
        T: Send,
    {
        // Nowhere else, so that there is no work that a fork could cut in two.
        #[allow(clippy::disallowed_methods)]
        self.detach(|| {
            let _section = section::enter();
            work()
        })
    }
}

/// Has `os.fork` wait for what other threads do here. What is done with the interpreter lock held is
/// not going on while another thread forks.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    // Where there is no fork there is no such function.
    let Some(register) = os.getattr_opt("register_at_fork")? else { return Ok(()) };
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}

#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    // Released, for others may need it to come to an end: an `encode` function is Python's.
    #[allow(clippy::disallowed_methods)]
    let quiet = py.detach(|| section::before_fork(AT_MOST));
    if quiet {
        return Ok(());
    }
    let message = format!(
        "another thread has been at work in ffwd for {} seconds: do not use ffwd in the process that \
         is forked now, it may hang",
        AT_MOST.as_secs()
    );
    let message = std::ffi::CString::new(message)?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)
}

#[pyfunction]
fn after_fork_in_parent() {
    section::after_in_parent();
}

#[pyfunction]
fn after_fork_in_child() {
    section::after_in_child();
}

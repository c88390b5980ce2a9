//! Releases the interpreter lock, and keeps the process from forking meanwhile.

use std::time::Duration;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use ffwd_bounds::section;

/// The longest wait of a fork for work on other threads. Work with a limit ends earlier.
const AT_MOST: Duration = Duration::from_secs(60);

pub trait Released {
    /// Runs work without the interpreter lock. A thread that forks waits until it is done.
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
        // Only here, so that a fork interrupts no work.
        #[allow(clippy::disallowed_methods)]
        self.detach(|| {
            let _section = section::enter();
            work()
        })
    }
}

/// Makes `os.fork` wait for work on other threads. Work with the interpreter lock held cannot run
/// while another thread forks.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    // Platforms without fork lack this function.
    let Some(register) = os.getattr_opt("register_at_fork")? else { return Ok(()) };
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}

#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    // Released, because other work may need it to finish: an `encode` function is Python code.
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

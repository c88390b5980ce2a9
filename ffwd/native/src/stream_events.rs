//! What streams tell of rare events: a stop, and a text that ends within a character.
//!
//! A stream looks here only when such an event has happened, so that nothing is paid for a token.

use parking_lot::Mutex;
use pyo3::prelude::*;

static OBSERVER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Has a function called with each event of all streams: `(source, event)`, where the source is
/// what the stream was made with, and the event is `"stop_token"`, `"stop_string"` or
/// `"incomplete_utf8"`. None: no function.
///
/// Returns:
///     The function that was called until now, or None.
#[pyfunction]
#[pyo3(signature = (observer, /))]
pub fn observe_streams(observer: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    std::mem::replace(&mut *OBSERVER.lock(), observer)
}

/// A text ended within a character.
pub fn incomplete(py: Python<'_>, source: &Py<PyAny>) {
    tell(py, source, "incomplete_utf8");
}

/// A text stopped.
pub fn stop(py: Python<'_>, source: &Py<PyAny>, is_string: bool) {
    tell(py, source, if is_string { "stop_string" } else { "stop_token" });
}

fn tell(py: Python<'_>, source: &Py<PyAny>, event: &str) {
    // The function may itself use streams: it is not called with the lock held.
    let observer = OBSERVER.lock().as_ref().map(|observer| observer.clone_ref(py));
    if let Some(observer) = observer {
        if let Err(error) = observer.call1(py, (source, event)) {
            // A stream goes on whatever happens to those who watch it.
            error.write_unraisable(py, Some(observer.bind(py)));
        }
    }
}

//! Reports of rare events of streams: a stop, and a text that ends within a character.
//!
//! Streams call this module only after such an event, so tokens cost nothing.

use parking_lot::Mutex;
use pyo3::prelude::*;

static OBSERVER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Call a function with each event of all streams: `(source, event)`.
///
/// The source is the object that the stream was made with, and the event is `"stop_token"`,
/// `"stop_string"` or `"incomplete_utf8"`. None removes the function.
///
/// Returns:
///     The previous function, or None.
#[pyfunction]
#[pyo3(signature = (observer, /))]
pub fn observe_streams(observer: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    std::mem::replace(&mut *OBSERVER.lock(), observer)
}

/// Reports a text that ended within a character.
pub fn incomplete(py: Python<'_>, source: &Py<PyAny>) {
    tell(py, source, "incomplete_utf8");
}

/// Reports a stop.
pub fn stop(py: Python<'_>, source: &Py<PyAny>, is_string: bool) {
    tell(py, source, if is_string { "stop_string" } else { "stop_token" });
}

fn tell(py: Python<'_>, source: &Py<PyAny>, event: &str) {
    // The function may use streams itself: it is called without the lock.
    let observer = OBSERVER.lock().as_ref().map(|observer| observer.clone_ref(py));
    if let Some(observer) = observer {
        if let Err(error) = observer.call1(py, (source, event)) {
            // A stream continues whatever its observer raises.
            error.write_unraisable(py, Some(observer.bind(py)));
        }
    }
}

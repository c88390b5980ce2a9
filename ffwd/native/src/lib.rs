//! The boundary to Python: converts, releases the interpreter lock, and holds no logic.

mod allocator;
mod audit;
mod bitmask;
mod bpe;
mod bpe_incremental;
mod bpe_model;
mod bpe_parts;
mod bpe_texts;
mod builder;
mod decoder;
mod errors;
mod events;
mod explain;
mod grammar;
mod limits;
mod logits;
mod matcher;
mod model_file;
mod pattern;
mod released;
mod request;
mod request_rows;
mod stop_decoder;
mod stream_events;
mod streaming;
mod text_argument;
mod vocabulary;
mod writing;

use pyo3::prelude::*;

use ffwd_bounds::meter::heap::Metered;

// Grammars allocate many small values: the system's allocator takes a tenth of the time.
#[global_allocator]
static ALLOCATOR: Metered<allocator::Allocator> = Metered(allocator::Allocator);

// Objects that Python sees are safe to share or say that another thread uses them.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::audit::survey_tokens;
    #[pymodule_export]
    use super::bitmask::fill_bitmasks;
    #[pymodule_export]
    use super::bpe::PyBpe;
    #[pymodule_export]
    use super::bpe_incremental::{PyAppendEncoder, PyIntervalCounter, PyPrependEncoder};
    #[pymodule_export]
    use super::bpe_model::PyBpeModel;
    #[pymodule_export]
    use super::bpe_texts::{encode_batch, encode_parts, encode_with_offsets};
    #[pymodule_export]
    use super::builder::PyGrammarBuilder;
    #[pymodule_export]
    use super::decoder::PyDecoder;
    #[pymodule_export]
    use super::errors::{
        BitmaskError, BudgetError, CancellationError, DeadlineExceededError, FfwdError,
        GrammarError, InvalidSchemaError, LimitExceededError, SchemaError, SerializationError,
        StopSequenceError, StreamInUseError, TextError, TokenError, UnsatisfiableSchemaError,
        UnsupportedSchemaError, VocabularyError,
    };
    #[pymodule_export]
    use super::grammar::{
        compile_choice, compile_grammar, compile_json_schema, compile_language, compile_regex,
        json_schema_fidelity, PyCompiledGrammar,
    };
    #[pymodule_export]
    use super::limits::{
        default_limits, inject_allocation_fault, inject_fault, PyCancellation, PyCompileMeter,
    };
    #[pymodule_export]
    use super::logits::mask_logits;
    #[pymodule_export]
    use super::matcher::PyMatcher;
    #[pymodule_export]
    use super::model_file::{read_ranks, PyModelFile};
    #[pymodule_export]
    use super::pattern::text_chunks;
    #[pymodule_export]
    use super::request::{forced_table, PyEngineRequest, PyStepRows};
    #[pymodule_export]
    use super::request_rows::{fill_rows, fill_trees};
    #[pymodule_export]
    use super::stop_decoder::{PyHeld, PyStopDecoder, PyStopped, PyStoppedWithText, PyTextOutput};
    #[pymodule_export]
    use super::stream_events::observe_streams;
    #[pymodule_export]
    use super::streaming::{PyDecodeStream, PyTokenSequence};
    #[pymodule_export]
    use super::vocabulary::PyVocabulary;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::released::register(module)?;
        super::errors::set_defaults(module.py())
    }
}

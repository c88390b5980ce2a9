//! `fill_rows` and `fill_trees`: rows of bitmasks that an engine allocates anew for each step.

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::bitmask::Rows;
use super::errors::BitmaskError;
use super::released::Released;
use super::request::PyEngineRequest;
use ffwd_engine::request::{
    fill_step, Bounds, Drafts, Held, Outcome, Request, RequestRows, StepWork, Tree,
};

type Requests<'py> = Vec<(usize, PyRefMut<'py, PyEngineRequest>)>;

fn error(message: impl Into<String>) -> PyErr {
    BitmaskError::new_err(message.into())
}

/// The requests of a list with their indices, without those that are `None`.
fn requests_of<'py>(list: &Bound<'py, PyList>) -> PyResult<Requests<'py>> {
    let borrow = |(at, request): (usize, Bound<'py, PyAny>)| {
        Ok((at, request.cast_into::<PyEngineRequest>()?.try_borrow_mut()?))
    };
    list.iter().enumerate().filter(|(_, request)| !request.is_none()).map(borrow).collect()
}

fn needed(request: &Request) -> usize {
    request.matcher().compiled().engine.vocabulary().mask_words()
}

/// Fills the rows; returns the indices of refused requests, each of which has its place.
fn run(py: Python<'_>, work: Vec<StepWork<'_>>, places: &[usize], threads: usize) -> Vec<usize> {
    let outcomes = py.released(|| fill_step(work, threads));
    let refused = outcomes.into_iter().filter(|(_, outcome)| matches!(outcome, Outcome::Refused));
    refused.map(|(at, _)| places[at]).collect()
}

/// Fill one row per request, on several threads, without the interpreter lock.
///
/// Requests that have ended allow every token. If a limit is exceeded, the row allows one token,
/// and the request refuses what comes.
///
/// Args:
///     requests: `EngineRequest` objects, all different.
///     bitmask: As for `Matcher.fill_bitmask`. Other rows stay as they are.
///     rows: The row of each request, all different.
///     threads: How many threads may compute masks at once.
///
/// Returns:
///     The indices of the requests that exceeded a limit.
///
/// Raises:
///     TypeError: A request is of another class. Nothing has been written.
///     BitmaskError: A row that there is not, is too short, or is given twice. Nothing has been
///         written.
#[pyfunction]
#[pyo3(signature = (requests, bitmask, rows, *, threads=1))]
pub fn fill_rows(
    py: Python<'_>,
    requests: &Bound<'_, PyList>,
    bitmask: &Bound<'_, PyAny>,
    rows: Vec<usize>,
    threads: usize,
) -> PyResult<Vec<usize>> {
    let requests = requests_of(requests)?;
    let mut memory = Rows::of(bitmask)?;
    if rows.len() != requests.len() {
        let counts = (rows.len(), requests.len());
        return Err(error(format!("{} rows were given for {} requests", counts.0, counts.1)));
    }
    let mut order: Vec<_> = rows.into_iter().zip(requests).collect();
    order.sort_by_key(|&(row, _)| row);
    if let Some(pair) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(error(format!("row {} is given twice", pair[0].0)));
    }
    for (row, (_, request)) in &order {
        memory.check(*row, needed(&request.request))?;
    }
    let words = memory.shape().1.max(1);
    let places: Vec<usize> = order.iter().map(|&(_, (at, _))| at).collect();
    let mut held = vec![Held::default(); order.len()];
    let mut pending = order.iter_mut().zip(&mut held).peekable();
    let mut work = Vec::with_capacity(places.len());
    for (at, row) in memory.words()?.chunks_mut(words).enumerate() {
        if let Some(((_, (_, request)), held)) = pending.next_if(|((row, _), _)| *row == at) {
            work.push(StepWork {
                request: &mut request.request,
                drafts: Drafts::Chain(&[], Bounds::default()),
                rows: RequestRows::new(row, std::slice::from_mut(held)),
            });
        }
    }
    Ok(run(py, work, &places, threads))
}

/// Fill the rows of trees of drafts, a row for each node, without the interpreter lock.
///
/// The root of a tree, node 0, stands for the tokens that the request has accepted. The row of
/// another node is the mask after the tokens on the way to it. If one of them is not in the mask
/// before it, or ends the output, the row allows every token. So do all rows of a request that has
/// ended. All drafts are rolled back.
///
/// If a limit is exceeded at the root, all rows allow one token, and the request refuses what
/// comes; if it is at another node, its row allows one token.
///
/// Args:
///     requests: `EngineRequest` objects, all different, or None, whose rows stay as they are.
///     bitmask: As for `Matcher.fill_bitmask`: as many rows for each request as there are nodes.
///     tokens: A numpy array, int64 `[requests, nodes]`: the token of each node.
///     first_child: The same shape: the first child of each node, or -1.
///     next_sibling: The same shape: the next child of the same parent, or -1.
///     threads: How many threads may compute masks at once.
///
/// Returns:
///     The indices of the requests that exceeded a limit at their roots.
///
/// Raises:
///     TypeError: A request is of another class, or an array of another type. Nothing has been
///         written.
///     BitmaskError: Other shapes, or links that make no tree. Nothing has been written.
#[pyfunction]
#[pyo3(signature = (requests, bitmask, tokens, first_child, next_sibling, *, threads=1))]
pub fn fill_trees(
    py: Python<'_>,
    requests: &Bound<'_, PyList>,
    bitmask: &Bound<'_, PyAny>,
    tokens: PyReadonlyArray2<'_, i64>,
    first_child: PyReadonlyArray2<'_, i64>,
    next_sibling: PyReadonlyArray2<'_, i64>,
    threads: usize,
) -> PyResult<Vec<usize>> {
    let count = requests.len();
    let nodes = tokens.shape()[1];
    let all = [&tokens, &first_child, &next_sibling];
    if nodes == 0 || all.iter().any(|array| array.shape() != [count, nodes]) {
        return Err(error(format!("{count} requests need arrays of the shape [{count}, nodes]")));
    }
    let mut slices = [&[][..]; 3];
    for (slice, array) in slices.iter_mut().zip(all) {
        *slice = array.as_slice().map_err(|cause| error(cause.to_string()))?;
    }
    let [tokens, first_child, next_sibling] = slices;
    let mut requests = requests_of(requests)?;
    let mut memory = Rows::of(bitmask)?;
    let mut trees = Vec::with_capacity(requests.len());
    for (at, request) in &requests {
        let mine = at * nodes..(at + 1) * nodes;
        memory.check(mine.end - 1, needed(&request.request))?;
        let [tokens, first_child, next_sibling] =
            [tokens, first_child, next_sibling].map(|all| &all[mine.clone()]);
        let tree = Tree::new(tokens, first_child, next_sibling);
        trees.push(tree.map_err(|cause| error(format!("the drafts of request {at}: {cause}")))?);
    }
    let words = memory.shape().1.max(1);
    let mut held = vec![Held::default(); nodes * requests.len()];
    let places: Vec<usize> = requests.iter().map(|&(at, _)| at).collect();
    let mine = requests.iter_mut().zip(trees).zip(held.chunks_mut(nodes));
    let mut pending = mine.peekable();
    let mut work = Vec::with_capacity(places.len());
    for (at, rows) in memory.words()?.chunks_mut(words * nodes).enumerate() {
        if let Some((((_, request), tree), held)) =
            pending.next_if(|(((place, _), _), _)| *place == at)
        {
            work.push(StepWork {
                request: &mut request.request,
                drafts: Drafts::Tree(tree),
                rows: RequestRows::new(rows, held),
            });
        }
    }
    Ok(run(py, work, &places, threads))
}

//! What can be refused before anything runs. One rule is one function, with its reason above it.

mod fallible;
mod inputs;
mod keys;
mod parallelism;
mod reach;
mod time;
mod uids;

pub(crate) use fallible::{is_fallible, skips};

use crate::{diag::Errors, graph::Graph};

/// Applies all rules.
pub(crate) fn all(graph: Graph) -> Result<Graph, Errors> {
    let mut errors = Errors::default();
    reach::sources(&graph, &mut errors);
    reach::sinks(&graph, &mut errors);
    reach::helper_output(&graph, &mut errors);
    keys::keyed_streams(&graph, &mut errors);
    keys::exchange_last(&graph, &mut errors);
    inputs::once(&graph, &mut errors);
    uids::unique(&graph, &mut errors);
    parallelism::forward(&graph, &mut errors);
    parallelism::readers(&graph, &mut errors);
    parallelism::of_subtasks(&graph, &mut errors);
    parallelism::of_all(&graph, &mut errors);
    parallelism::below_max(&graph, &mut errors);
    time::windows(&graph, &mut errors);
    time::by_records(&graph, &mut errors);
    time::by_the_clock(&graph, &mut errors);
    time::late_output(&graph, &mut errors);
    time::triggers(&graph, &mut errors);
    time::folds(&graph, &mut errors);
    time::once(&graph, &mut errors);
    time::evictors(&graph, &mut errors);
    fallible::policies(&graph, &mut errors);
    fallible::keys(&graph, &mut errors);
    errors.finish(graph)
}

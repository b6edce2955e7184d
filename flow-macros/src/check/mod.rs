//! What can be refused before anything runs. One rule is one function, with its reason above it.

mod fallible;
mod keys;
mod reach;
mod uids;

pub(crate) use fallible::is_fallible;

use crate::{diag::Errors, graph::Graph};

/// Applies all rules.
pub(crate) fn all(graph: Graph) -> Result<Graph, Errors> {
    let mut errors = Errors::default();
    reach::sources(&graph, &mut errors);
    reach::sinks(&graph, &mut errors);
    reach::helper_output(&graph, &mut errors);
    keys::keyed_streams(&graph, &mut errors);
    keys::exchange_last(&graph, &mut errors);
    uids::unique(&graph, &mut errors);
    uids::forward_parallelism(&graph, &mut errors);
    uids::misplaced_parallelism(&graph, &mut errors);
    uids::exchange_parallelism(&graph, &mut errors);
    fallible::policies(&graph, &mut errors);
    fallible::keys(&graph, &mut errors);
    errors.finish(graph)
}

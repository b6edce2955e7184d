//! A pipeline's chains as text.

use std::fmt::Write;

use crate::{
    fuse::{Forms, Layout, Root, Step},
    graph::{Graph, NodeId},
};

/// One line per chain: where its records come from, its operators, and who else reads them.
pub(super) fn show(forms: &Forms) -> String {
    let mut text = String::new();
    match &forms.split {
        Some(split) => {
            layout(&mut text, "one subtask", &forms.graph, &forms.single);
            layout(&mut text, "several", &forms.graph, split);
        }
        None => layout(&mut text, "always", &forms.graph, &forms.single),
    }
    text
}

fn layout(text: &mut String, title: &str, graph: &Graph, layout: &Layout) {
    let uids =
        |ids: &[NodeId]| ids.iter().map(|id| graph.nodes[*id].uid.as_str()).collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "{title}");
    for step in &layout.steps {
        let line = match step {
            Step::Part(id) => format!("call {} of {}", graph.nodes[*id].uid, uids(&graph.nodes[*id].inputs)),
            Step::Chain(chain) => {
                // `@>` is an edge on which event time goes with the records.
                let edge = |id: NodeId| if graph.takes_time(id) { "@>" } else { ">" };
                let from = match chain.root {
                    Root::Source(_) => String::new(),
                    Root::Before(id) => format!("{} {} ", uids(&graph.nodes[id].inputs), edge(id)),
                    Root::After(id) => format!("{} {} ", graph.nodes[id].uid, edge(id)),
                };
                let parallelism = chain.parallelism.map(|n| format!(" x{n}")).unwrap_or_default();
                format!("{from}[{}]{parallelism}", uids(&chain.operators))
            }
        };
        let _ = writeln!(text, "    {line}");
    }
    if let Some(output) = graph.output {
        let _ = writeln!(text, "    return {}", graph.nodes[output].uid);
    }
}

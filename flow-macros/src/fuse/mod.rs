//! Cuts the graph into operator chains, in two forms: for one subtask, where exchanges vanish and chains fuse across
//! them, and for several.

mod cut;

use crate::{
    graph::{Graph, NodeId},
    parse::Shape,
    vocab::Kind,
};

/// A pipeline with its chains.
#[derive(Debug)]
pub(crate) struct Forms {
    pub(crate) graph: Graph,
    /// For one subtask.
    pub(crate) single: Layout,
    /// For several; `None` when that makes no difference.
    pub(crate) split: Option<Layout>,
}

/// The chains of one form, in the order of wiring.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    /// Whether this is the form for one subtask.
    pub(crate) single: bool,
    pub(crate) steps: Vec<Step>,
}

/// A step of the wiring.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// A chain.
    Chain(Chain),
    /// The call of a helper function.
    Part(NodeId),
}

/// Operators that share a loop.
#[derive(Debug, PartialEq)]
pub(crate) struct Chain {
    pub(crate) root: Root,
    /// In order; an exchange at the end belongs to the chain that sends.
    pub(crate) operators: Vec<NodeId>,
    pub(crate) parallelism: Option<usize>,
}

/// Where a chain gets its records from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A source, which is part of the chain.
    Source(NodeId),
    /// What was sent to this operator, which is the chain's first.
    Before(NodeId),
    /// What comes out of this operator, which is not part of the chain: an exchange, a helper function, an input.
    After(NodeId),
}

/// Makes both forms.
pub(crate) fn forms(graph: Graph) -> Forms {
    let single = layout(&graph, true);
    let split = layout(&graph, false);
    // An exchange straight into an operator with two inputs is no chain of its own, and yet an exchange.
    let exchanged = graph.nodes.iter().any(|node| {
        node.kind.two_inputs() && node.inputs.iter().any(|input| graph.nodes[*input].kind.exchange())
    });
    let split = (exchanged || split.steps != single.steps).then_some(split);
    Forms { graph, single, split }
}

fn layout(graph: &Graph, single: bool) -> Layout {
    let mut layout = Layout { single, steps: Vec::new() };
    for (id, node) in graph.nodes.iter().enumerate() {
        match node.kind {
            Kind::Source => layout.add(graph, Root::Source(id), id),
            Kind::Input => {}
            Kind::Part => {
                // Pass-through chains of streams that go from one helper function straight to the next.
                for &input in &node.inputs {
                    layout.pass(graph, input);
                }
                layout.steps.push(Step::Part(id));
            }
            kind if kind.two_inputs() => {
                for &input in &node.inputs {
                    if !layout.straight(graph, input, id) {
                        layout.pass(graph, input);
                    }
                }
                layout.add(graph, Root::Before(id), id);
            }
            _ => {
                for &input in &node.inputs {
                    layout.pass(graph, input);
                }
                let Some(&input) = node.inputs.first() else { continue };
                if layout.cuts(graph, input, id) {
                    layout.add(graph, Root::Before(id), id);
                } else if layout.ends(graph, input) {
                    layout.add(graph, Root::After(input), id);
                } else if let Some(chain) = layout.chain_of(input) {
                    chain.operators.push(id);
                }
            }
        }
    }
    if let Some(output) = graph.output {
        layout.pass(graph, output);
    }
    for chain in layout.chains() {
        let mut own = chain.operators.iter().filter(|id| !graph.nodes[**id].kind.exchange());
        chain.parallelism = match chain.root {
            // An exchange that is cut off from its sender runs where that does.
            Root::Before(id) if graph.nodes[id].kind.exchange() => {
                graph.nodes[id].inputs.first().and_then(|sender| graph.nodes[*sender].parallelism)
            }
            // Behind an exchange they share its subtasks, also with an operator that reads on from there.
            Root::After(id) if graph.nodes[id].kind.exchange() => graph.receivers(id),
            _ => own.find_map(|id| graph.nodes[*id].parallelism),
        };
    }
    layout
}

impl Layout {
    fn add(&mut self, _: &Graph, root: Root, id: NodeId) {
        let existing = self.chains().find(|chain| chain.root == root);
        match existing {
            Some(chain) => chain.operators.push(id),
            None => self.steps.push(Step::Chain(Chain { root, operators: vec![id], parallelism: None })),
        }
    }

    /// Makes sure that what comes out of `node` is read by a chain, though no operator may be in it.
    fn pass(&mut self, graph: &Graph, node: NodeId) {
        if self.ends(graph, node) && !self.chains().any(|chain| chain.root == Root::After(node)) {
            self.steps.push(Step::Chain(Chain {
                root: Root::After(node),
                operators: Vec::new(),
                parallelism: None,
            }));
        }
    }

    fn chains(&mut self) -> impl Iterator<Item = &mut Chain> {
        self.steps.iter_mut().filter_map(|step| match step {
            Step::Chain(chain) => Some(chain),
            Step::Part(_) => None,
        })
    }

    fn chain_of(&mut self, node: NodeId) -> Option<&mut Chain> {
        self.chains().find(|chain| chain.operators.contains(&node))
    }
}

impl Graph {
    /// The parallelism of the operators that read from `exchange`.
    pub(crate) fn receivers(&self, exchange: NodeId) -> Option<usize> {
        self.consumers(exchange).find_map(|id| self.nodes[id].parallelism)
    }

    /// The parallelisms that the pipeline sets on operators.
    pub(crate) fn explicit(&self) -> Vec<usize> {
        self.nodes.iter().filter_map(|node| node.parallelism).collect()
    }

    /// Whether this is a pipeline of its own, and no helper function.
    pub(crate) fn is_job(&self) -> bool {
        matches!(self.signature.shape, Shape::Job)
    }
}

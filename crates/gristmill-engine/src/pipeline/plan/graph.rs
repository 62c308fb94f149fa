//! Named stages -> a checked graph: every reference resolved, every misuse refused with stage and field.
//! Knows what each kind reads and gives; starts nothing.

use std::collections::HashMap;

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::{DataLoaderConfig, Item, Overflow, QueueConfig, StageConfig, StageKind};

/// What a kind gives, in one word and the plural.
pub(in crate::pipeline) fn given_name(kind: StageKind<'_>) -> &'static str {
    match gives(kind, 0) {
        Some(Item::Source) => "sources",
        other => other.map_or("nothing", Item::name),
    }
}

/// What an output of a kind gives.
fn gives(kind: StageKind<'_>, output: usize) -> Option<Item> {
    kind.outputs().get(output).map(|(_, item)| *item)
}

/// The output queues of a kind.
pub(in crate::pipeline) fn queues(kind: StageKind<'_>) -> Vec<&QueueConfig> {
    kind.outputs().into_iter().map(|(queue, _)| queue).collect()
}

/// One output of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::pipeline) struct Port {
    pub(in crate::pipeline) stage: usize,
    pub(in crate::pipeline) output: usize,
}

/// A stage with its kind and resolved inputs.
#[derive(Debug)]
pub(in crate::pipeline) struct Node<'a> {
    pub(in crate::pipeline) name: &'a str,
    pub(in crate::pipeline) kind: StageKind<'a>,
    pub(in crate::pipeline) inputs: Vec<Port>,
}

/// A checked graph.
#[derive(Debug)]
pub(in crate::pipeline) struct Graph<'a> {
    pub(in crate::pipeline) nodes: Vec<Node<'a>>,
    /// Alias and the batches it gives.
    pub(in crate::pipeline) outputs: Vec<(String, Port)>,
}

impl<'a> Graph<'a> {
    /// Resolves and checks every reference of `config`.
    pub(in crate::pipeline) fn new(config: &'a DataLoaderConfig) -> Result<Self> {
        let mut by_name = HashMap::new();
        for (i, stage) in config.stage.iter().enumerate() {
            if stage.name.is_empty() || stage.name.contains(['.', ':']) {
                return Err(Error::stage(&stage.name, format!("stage {i} needs a name without `.` and `:`")));
            }
            if by_name.insert(stage.name.as_str(), i).is_some() {
                return Err(Error::stage(&stage.name, "two stages have this name"));
            }
        }
        let kinds = config.stage.iter().map(StageConfig::kind).collect::<Result<Vec<_>>>()?;
        let find = |who: &str, field: &str, reference: &str| find(config, &kinds, &by_name, who, field, reference);
        let mut nodes = Vec::new();
        for (stage, &kind) in config.stage.iter().zip(&kinds) {
            check_queues(&stage.name, kind)?;
            let resolve = |text: &String| find(&stage.name, "input", text);
            let inputs = stage.input.iter().map(resolve).collect::<Result<Vec<_>>>()?;
            nodes.push(Node { name: &stage.name, kind, inputs });
        }
        let mut outputs: Vec<(String, Port)> = Vec::new();
        for text in &config.output {
            let (alias, reference) = text.split_once(':').unwrap_or(("", text));
            let port = find("", "output", reference)?;
            if outputs.iter().any(|(other, _)| other == alias) {
                return Err(Error::config("output", format!("two outputs have the alias `{alias}`")));
            }
            outputs.push((alias.to_owned(), port));
        }
        let graph = Graph { nodes, outputs };
        graph.check()?;
        Ok(graph)
    }

    fn check(&self) -> Result<()> {
        let mut readers: HashMap<Port, &str> = HashMap::new();
        for node in &self.nodes {
            let reads = node.kind.reads();
            let many = matches!(node.kind, StageKind::JoinPositions(_));
            match (reads.first(), node.inputs.len()) {
                (None, 0) | (Some(_), 1) => {}
                (Some(_), n) if many && n > 0 => {}
                (Some(_), 2) if matches!(node.kind, StageKind::ShufflingChunkPool(c) if c.cachehit_output.is_some()) => {
                }
                (None, _) => return Err(Error::field(node.name, "input", "this kind has no input")),
                (Some(item), n) => {
                    let text = format!("expected one stage that gives {}, found {n} inputs", item.name());
                    return Err(Error::field(node.name, "input", text));
                }
            }
            for (i, &port) in node.inputs.iter().enumerate() {
                self.check_edge(node, port, reads.get(i).or(reads.last()).copied(), &mut readers)?;
            }
        }
        self.check_cycles()?;
        for (alias, port) in &self.outputs {
            let stage = &self.nodes[port.stage];
            if gives(stage.kind, port.output) != Some(Item::Batch) {
                let text = format!("output `{alias}` is stage `{}`, which gives no batches", stage.name);
                return Err(Error::config("output", text));
            }
            self.claim(*port, "a loader output", &mut readers)?;
        }
        Ok(())
    }

    fn check_edge(
        &self,
        node: &Node<'a>,
        port: Port,
        reads: Option<Item>,
        readers: &mut HashMap<Port, &'a str>,
    ) -> Result<()> {
        let from = &self.nodes[port.stage];
        let gives = gives(from.kind, port.output);
        if gives.is_none() || gives != reads {
            let wanted = reads.map_or("nothing", Item::name);
            let given = gives.map_or("nothing", Item::name);
            let text = format!("expected {wanted}, but stage `{}` gives {given}", from.name);
            return Err(Error::field(node.name, "input", text));
        }
        if !gives.is_some_and(Item::is_reference) {
            self.claim(port, node.name, readers)?;
            if queues(from.kind)[port.output].overflow_behavior != Overflow::Block {
                let text = "dropping is done whole batches at a time: set it on the tensor generator's output";
                return Err(Error::field(from.name, "output.overflow_behavior", text));
            }
        }
        Ok(())
    }

    /// Refuses a stage that reads what it gives, however far around; the way back from an unpacker to its pool's cache is
    /// none: it is planned, not run.
    fn check_cycles(&self) -> Result<()> {
        let feeds = |port: &&Port| !self.is_request(**port);
        let mut readers = vec![Vec::new(); self.nodes.len()];
        let mut waits: Vec<usize> = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            node.inputs.iter().filter(feeds).for_each(|port| readers[port.stage].push(i));
            waits.push(node.inputs.iter().filter(feeds).count());
        }
        let mut ready: Vec<usize> = (0..waits.len()).filter(|i| waits[*i] == 0).collect();
        while let Some(i) = ready.pop() {
            for &reader in &readers[i] {
                waits[reader] -= 1;
                ready.extend((waits[reader] == 0).then_some(reader));
            }
        }
        match self.nodes.iter().zip(&waits).find(|(_, waits)| **waits > 0) {
            Some((node, _)) => {
                let text = "it reads, directly or by way of others, what it gives itself";
                Err(Error::field(node.name, "input", text))
            }
            None => Ok(()),
        }
    }

    /// Whether a port only carries requests: the way back from an unpacker to its pool's cache.
    pub(in crate::pipeline) fn is_request(&self, port: Port) -> bool {
        gives(self.nodes[port.stage].kind, port.output) == Some(Item::CacheRequest)
    }

    fn claim(&self, port: Port, reader: &'a str, readers: &mut HashMap<Port, &'a str>) -> Result<()> {
        if let Some(other) = readers.insert(port, reader) {
            let from = self.nodes[port.stage].name;
            let text = format!(
                "read by both `{other}` and `{reader}`; bytes have one reader: use a splitter before the pools"
            );
            return Err(Error::field(from, "output", text));
        }
        Ok(())
    }
}

fn find(
    config: &DataLoaderConfig,
    kinds: &[StageKind<'_>],
    by_name: &HashMap<&str, usize>,
    who: &str,
    field: &str,
    reference: &str,
) -> Result<Port> {
    let fault = |text: String| {
        if who.is_empty() { Error::config(field, text) } else { Error::field(who, field, text) }
    };
    let (name, output) = reference.split_once('.').unwrap_or((reference, ""));
    let Some(&stage) = by_name.get(name) else {
        let known = config.stage.iter().map(|s| s.name.as_str());
        let near = known.min_by_key(|known| strsim::damerau_levenshtein(known, name));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(fault(format!("no stage is called `{name}`{hint}")));
    };
    let queues = queues(kinds[stage]);
    match queues.iter().position(|queue| queue.name == output) {
        Some(output) => Ok(Port { stage, output }),
        None => {
            let known: Vec<String> = queues.iter().map(|queue| format!("`{}`", queue.name)).collect();
            Err(fault(format!("stage `{name}` has no output `{output}`; it has {}", known.join(", "))))
        }
    }
}

fn check_queues(stage: &str, kind: StageKind<'_>) -> Result<()> {
    let queues = queues(kind);
    for (i, queue) in queues.iter().enumerate() {
        if queue.queue_capacity == 0 {
            return Err(Error::field(stage, "output.queue_capacity", "expected at least 1"));
        }
        if queues[..i].iter().any(|other| other.name == queue.name) {
            return Err(Error::field(stage, "output.name", format!("two outputs are called `{}`", queue.name)));
        }
    }
    Ok(())
}

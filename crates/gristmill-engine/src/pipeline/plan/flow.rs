//! A checked graph -> its stages in flow order, with edges and with the outputs that each leads to: what views draw.
//! Names only; runs nothing and knows no number.

use std::collections::BTreeSet;

use gristmill_runtime::error::Result;
use gristmill_stages::config::DataLoaderConfig;

use crate::pipeline::plan::graph::{Graph, Port, given_name, queues};

/// One stage as a view sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pipeline) struct FlowStage {
    pub(in crate::pipeline) name: String,
    pub(in crate::pipeline) kind: &'static str,
    /// What it gives, in the plural, such as `frames`: also the name of the count of what it gave.
    pub(in crate::pipeline) gives: &'static str,
    /// Stages that it reads, each with the name of the output.
    pub(in crate::pipeline) inputs: Vec<(String, String)>,
    /// Aliases of the loader's outputs that it leads to.
    pub(in crate::pipeline) streams: Vec<String>,
}

/// The stages of a config, each after those that it reads; those of one output stand together.
pub(in crate::pipeline) fn flow(config: &DataLoaderConfig) -> Result<Vec<FlowStage>> {
    let graph = Graph::new(config)?;
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for (_, port) in &graph.outputs {
        upstream(&graph, port.stage, &mut seen, &mut order);
    }
    for stage in 0..graph.nodes.len() {
        upstream(&graph, stage, &mut seen, &mut order);
    }
    let mut stages: Vec<FlowStage> = order.iter().map(|&stage| describe(&graph, stage)).collect();
    for (alias, port) in &graph.outputs {
        let mut behind = Vec::new();
        upstream(&graph, port.stage, &mut BTreeSet::new(), &mut behind);
        for (place, stage) in order.iter().enumerate() {
            if behind.contains(stage) {
                stages[place].streams.push(alias.clone());
            }
        }
    }
    Ok(stages)
}

/// Appends a stage after all that it reads, leaving out what was `seen` and the way back to a cache. Keeps its own stack: a config may be deep.
fn upstream(graph: &Graph<'_>, from: usize, seen: &mut BTreeSet<usize>, order: &mut Vec<usize>) {
    let mut open = if seen.insert(from) { vec![(from, 0)] } else { Vec::new() };
    while let Some((stage, next)) = open.last_mut() {
        match graph.nodes[*stage].inputs.get(*next) {
            Some(input) => {
                *next += 1;
                if !graph.is_request(*input) && seen.insert(input.stage) {
                    open.push((input.stage, 0));
                }
            }
            None => {
                order.push(*stage);
                open.pop();
            }
        }
    }
}

fn describe(graph: &Graph<'_>, stage: usize) -> FlowStage {
    let node = &graph.nodes[stage];
    let input = |port: &Port| {
        let from = &graph.nodes[port.stage];
        (from.name.to_owned(), queues(from.kind)[port.output].name.clone())
    };
    FlowStage {
        name: node.name.to_owned(),
        kind: node.kind.name(),
        gives: given_name(node.kind),
        inputs: node.inputs.iter().map(input).collect(),
        streams: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{Lc0Preset, Weighted, lc0};

    #[test]
    fn stages_come_in_flow_order_with_edges_and_streams() {
        let directories = ["a", "b"].map(|name| Weighted { directory: name.into(), weight: 1.0 }).to_vec();
        let split = vec![("train".into(), 9), ("test".into(), 1)];
        let mut config = lc0(&Lc0Preset { directories, split, ..Lc0Preset::default() }).unwrap();
        config.stage.reverse();
        let stages = flow(&config).unwrap();
        assert_eq!(stages.len(), config.stage.len());
        let place = |name: &str| stages.iter().position(|stage| stage.name == name).unwrap();
        for stage in &stages {
            for (from, _) in &stage.inputs {
                assert!(place(from) < place(&stage.name), "{from} stands after {}", stage.name);
            }
        }
        let joined = stages.iter().find(|stage| stage.kind == "join_positions").unwrap();
        assert_eq!((joined.gives, joined.inputs.len(), joined.streams.len()), ("frames", 2, 1));
        let split = stages.iter().find(|stage| stage.kind == "chunk_source_splitter").unwrap();
        assert_eq!(split.streams, ["train", "test"]);
        assert_eq!(stages[place(&split.name) + 1].inputs, [(split.name.clone(), "train".to_owned())]);
    }

    #[test]
    fn a_stage_that_leads_nowhere_comes_last_and_depth_is_no_danger() {
        let mut config = lc0(&Lc0Preset {
            directories: vec![Weighted { directory: "a".into(), weight: 1.0 }],
            ..Lc0Preset::default()
        })
        .unwrap();
        let idle = |i: usize| gristmill_stages::config::StageConfig {
            name: format!("idle{i}"),
            input: vec![if i == 0 { "load".into() } else { format!("idle{}.x", i - 1) }],
            chunk_source_splitter: Some(gristmill_stages::config::ChunkSourceSplitterConfig {
                output: vec![gristmill_stages::config::QueueConfig { name: "x".into(), ..Default::default() }],
                weight: vec![1],
                ..Default::default()
            }),
            ..Default::default()
        };
        config.stage.extend((0..20_000).map(idle).rev());
        let stages = flow(&config).unwrap();
        let last = stages.last().unwrap();
        assert_eq!((last.name.as_str(), last.streams.len()), ("idle19999", 0));
    }
}

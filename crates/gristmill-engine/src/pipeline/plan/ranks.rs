//! `lanes`, `rank` and `world_size` of a config -> the lanes that this process runs, and which rows of a batch they give.
//! Deals a chain to lanes; whatever cannot be dealt is refused here, with what to do. Needs no fact about other ranks.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::handoff::WhenFull;
use gristmill_runtime::runtime::seed::Key;
use gristmill_stages::config::DataLoaderConfig;
use gristmill_stages::stage::lane::HashLane;

use crate::pipeline::plan::lane::{LanePlan, StepPlan};
use crate::pipeline::plan::{ChainPlan, DrawPlan};

/// Most lanes.
const MOST_LANES: u32 = 4096;

/// How a stream is dealt. Row g of the whole stream comes from lane g mod `lanes`, and lane l is run by rank l mod
/// `world`: so rank r has rows r, r + world, … of each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) lanes: u32,
    pub(crate) rank: u32,
    pub(crate) world: u32,
}

impl Ranks {
    /// What a config says. Errors: `Config` for numbers that do not go together, with those that do.
    pub(crate) fn of(config: &DataLoaderConfig) -> Result<Self> {
        let given = [config.lanes, config.rank, config.world_size];
        let [lanes, rank, world] = [given[0].unwrap_or(1), given[1].unwrap_or(0), given[2].unwrap_or(1)];
        if !(1..=MOST_LANES).contains(&lanes) {
            return Err(Error::config("lanes", format!("{lanes}; expected 1 to {MOST_LANES}, such as 48")));
        }
        if rank >= world {
            let text = format!("rank {rank} of {world}; ranks count from 0 to world_size - 1");
            return Err(Error::config("rank", text));
        }
        if !lanes.is_multiple_of(world) {
            let fit: Vec<String> = (1..=lanes).filter(|n| lanes.is_multiple_of(*n)).map(|n| n.to_string()).collect();
            let text = match lanes {
                1 => format!(
                    "{world} ranks cannot share one lane; set lanes = 48, which 1, 2, 3, 4, 6, 8, 12, 16, 24 or 48 ranks \
                     can share, or another multiple of {world}; or world_size = 1, for a stream that is this process's own"
                ),
                _ => format!("{world} ranks cannot share {lanes} lanes; expected one of {}", fit.join(", ")),
            };
            return Err(Error::config("world_size", text));
        }
        Ok(Ranks { lanes, rank, world })
    }

    /// The lanes of this rank, in the order of their rows.
    fn own(self) -> impl Iterator<Item = Option<HashLane>> {
        let lane = move |index| (self.lanes > 1).then_some(HashLane { index, of: self.lanes });
        (self.rank..self.lanes).step_by(self.world as usize).map(lane)
    }

    /// The row of the whole stream that is row `own` of this rank.
    pub(crate) fn row(self, own: u64) -> u64 {
        own * u64::from(self.world) + u64::from(self.rank)
    }

    /// A chain of one lane, as the config has it -> the lanes of this rank with their parts of each window.
    ///
    /// Errors: `Config` with the stage that is too small for that many lanes, or cannot be dealt.
    pub(in crate::pipeline) fn deal(self, chain: ChainPlan) -> Result<ChainPlan> {
        let world = self.world as usize;
        if !chain.batch_size.is_multiple_of(world) {
            let near = (chain.batch_size / self.lanes as usize).max(1) * self.lanes as usize;
            let text = format!(
                "{} rows for {world} ranks; it is the size of all ranks together, and they must divide it. {near} would do",
                chain.batch_size
            );
            return Err(Error::field(&chain.stage, "batch_size", text));
        }
        if world > 1 && chain.when_full != WhenFull::Block {
            let text = "several ranks must get the same batches, and what a full queue drops differs; use BLOCK";
            return Err(Error::field(&chain.stage, "overflow_behavior", text));
        }
        if self.lanes == 1 {
            return Ok(ChainPlan { ranks: self, ..chain });
        }
        let lanes = u64::from(self.lanes);
        let enough = |stage: &str, field: &str, size: u64, what: &str| match size < lanes {
            true => Err(Error::field(
                stage,
                field,
                format!("{size} {what} for {lanes} lanes; expected one for each, or fewer lanes"),
            )),
            false => Ok(()),
        };
        for branch in &chain.branches {
            let DrawPlan::Pool { window, .. } = branch.draw else {
                let text = "whole passes have no lanes, since these would end at different rows: let each rank make the \
                            passes by itself, with lanes = 1 and world_size = 1, or feed a pack";
                return Err(Error::stage(&branch.stage, text));
            };
            enough(&branch.stage, "chunk_pool_size", window.most(), "chunks")?;
            if let Some(cache) = branch.accept.as_ref().and_then(|accept| accept.cache).filter(|cache| cache.size > 0) {
                enough(&branch.stage, "position_cache_size", cache.size, "positions")?;
            }
        }
        for StepPlan { stage, shared, .. } in &chain.steps {
            enough(stage, shared.field, shared.size, shared.of)?;
        }
        let (mut branches, mut plans) = (Vec::new(), Vec::new());
        for lane in self.own().flatten() {
            plans.push(LanePlan { lane: Some(lane) });
            for branch in &chain.branches {
                let mut branch = branch.clone();
                (branch.lane, branch.counts_anchor) = (Some(lane), plans.len() == 1);
                if let DrawPlan::Pool { window, limit } = &mut branch.draw {
                    *window = window.part(lane.share(window.most()), self.lanes);
                    let part = limit.map(|limit| limit.part(self.lanes)).transpose();
                    *limit = part.map_err(|error| error.in_stage(&branch.stage))?;
                }
                if let Some(cache) = branch.accept.as_mut().and_then(|accept| accept.cache.as_mut()) {
                    (cache.size, cache.window) = (lane.share(cache.size), lane.share(cache.window).max(1));
                }
                branches.push(branch);
            }
        }
        Ok(ChainPlan { batch_size: chain.batch_size / world, ranks: self, lanes: plans, branches, ..chain })
    }
}

/// The key of a stage's draws, of one lane where there are several.
pub(in crate::pipeline) fn key(root: u64, stage: &str, lane: Option<HashLane>) -> Key {
    let key = Key::new(root, stage);
    lane.map_or(key, |lane| lane.key(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(lanes: u32, rank: u32, world_size: u32) -> Result<Ranks> {
        let [lanes, rank, world_size] = [lanes, rank, world_size].map(Some);
        Ranks::of(&DataLoaderConfig { lanes, rank, world_size, ..DataLoaderConfig::default() })
    }

    #[test]
    fn the_rows_of_a_rank_are_those_of_its_lanes() {
        for world in [1, 2, 3, 4, 6, 8, 12, 24] {
            for rank in 0..world {
                let ranks = ranks(24, rank, world).unwrap();
                let own: Vec<u32> = ranks.own().flatten().map(|lane| lane.index).collect();
                for row in 0..100 {
                    let of_stream = ranks.row(row);
                    assert_eq!(of_stream % u64::from(world), u64::from(rank));
                    assert_eq!((of_stream % 24) as u32, own[row as usize % own.len()], "{ranks:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_shared_is_refused_with_what_can() {
        let text = |found: Result<Ranks>| found.unwrap_err().to_string();
        assert!(text(ranks(48, 0, 5)).contains("one of 1, 2, 3, 4, 6, 8, 12, 16, 24, 48"));
        assert!(text(ranks(1, 0, 4)).contains("lanes = 48"));
        assert!(text(ranks(48, 4, 4)).contains("rank 4 of 4"));
        assert!(text(ranks(0, 0, 1)).contains("expected 1 to 4096"));
        assert_eq!(Ranks::of(&DataLoaderConfig::default()).unwrap(), Ranks { lanes: 1, rank: 0, world: 1 });
    }
}

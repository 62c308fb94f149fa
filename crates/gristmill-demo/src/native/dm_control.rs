//! Pickled lists of trajectories of dm_control -> stacks of frames, actions, rewards.

use gristmill_bytes::container::pickle::{PickleLimits, parse};
use gristmill_bytes::error::{Error, Kind, Result};

use super::Semantics;
use super::episode::{Episode, done_at_the_end, observed};
use super::object::{attribute, cut_by_limit, frames, infos, truth, wanted};
use crate::budget::Budget;
use crate::trajectory::{End, Trajectories};

/// Reads the unpacked bytes of a `.pkl.gz`: `obs` and `next_obs` of `stack` frames, oldest first, zeros before the start.
///
/// In the strict form `next_obs[t]` is the stack that ends with the frame after step t; in the compatible one it is stacked by
/// itself, so that its first `stack - 1` steps hold zeros where `obs` holds frames.
///
/// Errors: what the unpickler says; `Empty` without trajectories, `Missing`, `WrongSize`, `TooLarge` beyond `max` bytes.
pub fn dm_control(bytes: &[u8], stack: usize, semantics: Semantics, max: usize) -> Result<Trajectories> {
    let pickle = parse(bytes, &PickleLimits { max_bytes: max })?;
    let list = pickle.items(pickle.root()).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| Error::new(Kind::Empty, "expected a list of trajectories, and at least one"))?;
    let (mut all, budget) = (Trajectories::new(max), Budget::new(max));
    for (i, id) in list.iter().enumerate() {
        let read = || -> Result<Episode> {
            let raw = frames(&pickle, wanted(&pickle, *id, "obs")?, "obs", &budget)?;
            raw.fits_stacked(stack, max)?;
            let acts = frames(&pickle, wanted(&pickle, *id, "acts")?, "acts", &budget)?;
            let rews = attribute(&pickle, *id, "rews");
            let rews = rews.map(|rews| frames(&pickle, rews, "rews", &budget)).transpose()?;
            let steps = acts.len();
            if raw.len() != steps + 1 {
                let detail = format!("{} observations of {steps} steps; expected one more", raw.len());
                return Err(Error::new(Kind::WrongSize, detail));
            }
            let (obs, next_obs) = match semantics {
                Semantics::Strict => {
                    let whole = raw.stacked(stack, false)?;
                    (whole.slice(0, steps), whole.slice(1, steps))
                }
                Semantics::Compat => {
                    (raw.slice(0, steps).stacked(stack, false)?, raw.slice(1, steps).stacked(stack, false)?)
                }
            };
            let over = attribute(&pickle, *id, "terminal").and_then(|flag| truth(&pickle, flag)).unwrap_or(true);
            let cut = !over || cut_by_limit(&pickle, attribute(&pickle, *id, "infos"));
            let infos = attribute(&pickle, *id, "infos").map(|list| infos(&pickle, list, &budget)).transpose()?;
            let infos = infos.flatten();
            let (obs, next_obs) = observed(obs, next_obs);
            let end = if cut { End::Truncated } else { End::Terminated };
            Ok(Episode { obs, next_obs: Some(next_obs), acts, rews, infos, dones: done_at_the_end(steps), end })
        };
        budget.meanwhile(|| read().and_then(|episode| episode.add(semantics, &mut all))).map_err(|e| e.in_chunk(i))?;
    }
    Ok(all)
}

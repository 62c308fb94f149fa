//! Pickled Procgen demonstrations: lists of arrays, one for each trajectory -> stacks of frames.

use gristmill_bytes::container::pickle::{Id, Pickle, PickleLimits, parse};
use gristmill_bytes::error::{Error, Kind, Result};

use super::Semantics;
use super::episode::{Episode, observed};
use super::object::{frames, wanted};
use crate::budget::Budget;
use crate::frames::Frames;
use crate::trajectory::{End, Trajectories};

/// Reads the bytes of a `.pickle`: `obs` and `next_obs` of `stack` frames, oldest first.
///
/// The strict form ends each trajectory, fills stacks with zeros before its start, and has its own last frame as the last
/// `next_obs` where the file holds one (else the last step is left out: nothing says what followed it). The compatible form
/// treats all trajectories as one: stacks and `next_obs` reach across their ends.
///
/// Errors: what the unpickler says; `Missing`, `WrongSize`, `Empty`, `TooLarge` beyond `max` bytes.
pub fn procgen(bytes: &[u8], stack: usize, semantics: Semantics, max: usize) -> Result<Trajectories> {
    let pickle = parse(bytes, &PickleLimits { max_bytes: max })?;
    let budget = Budget::new(max);
    let column = |name: &str| column(&pickle, name, &budget);
    let (obs, acts, rews, dones) = (column("obs")?, column("acts")?, column("rews")?, column("dones")?);
    if obs.is_empty() || [&acts, &rews, &dones].iter().any(|other| other.len() != obs.len()) {
        let detail = format!("{} observation lists, {} of actions: expected as many, and some", obs.len(), acts.len());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    obs.iter().try_for_each(|frames| frames.fits_stacked(stack, max))?;
    let mut all = Trajectories::new(max);
    if semantics == Semantics::Compat {
        let together = obs.iter().map(|frames| frames.bytes.len()).sum::<usize>();
        budget.take(together.saturating_mul(stack) / 2)?;
        return as_one(obs, &acts, &rews, &dones, stack, all);
    }
    for (i, (obs, acts)) in obs.iter().zip(&acts).enumerate() {
        let read = || -> Result<Episode> {
            let obs = obs.channels_first()?.stacked(stack, false)?;
            let steps = acts.len().min(obs.len().saturating_sub(1));
            let over = dones[i].len() == steps && dones[i].bytes.last().is_some_and(|flag| *flag != 0);
            let ends = (0..steps).map(|t| t + 1 == steps).collect();
            let (now, next) = observed(obs.slice(0, steps), obs.slice(1, steps));
            let end = if over { End::Terminated } else { End::Truncated };
            let rews = Some(rews[i].slice(0, steps.min(rews[i].len())));
            Ok(Episode {
                obs: now,
                next_obs: Some(next),
                acts: acts.slice(0, steps),
                rews,
                infos: None,
                dones: ends,
                end,
            })
        };
        read().and_then(|episode| episode.add(semantics, &mut all)).map_err(|e| e.in_chunk(i))?;
    }
    Ok(all)
}

fn as_one(
    obs: Vec<Frames>,
    acts: &[Frames],
    rews: &[Frames],
    dones: &[Frames],
    stack: usize,
    mut all: Trajectories,
) -> Result<Trajectories> {
    let raw = joined(&obs)?.channels_first()?;
    let steps = raw.len().saturating_sub(1);
    let (acts, rews, dones) = (joined(acts)?, joined(rews)?, joined(dones)?);
    let steps = steps.min(acts.len()).min(dones.len());
    let (now, next) = observed(raw.slice(0, steps).stacked(stack, false)?, raw.slice(1, steps).stacked(stack, false)?);
    let flags = (0..steps).map(|t| dones.get(t).iter().any(|b| *b != 0)).collect();
    let (acts, rews) = (acts.slice(0, steps), Some(rews.slice(0, steps)));
    let episode =
        Episode { obs: now, next_obs: Some(next), acts, rews, infos: None, dones: flags, end: End::Terminated };
    episode.add(Semantics::Compat, &mut all)?;
    all.end(End::Truncated);
    Ok(all)
}

fn column(pickle: &Pickle<'_>, name: &str, budget: &Budget) -> Result<Vec<Frames>> {
    let id = wanted(pickle, pickle.root(), name)?;
    let list = pickle.items(id).ok_or_else(|| Error::new(Kind::Unsupported, format!("`{name}` is no list")))?;
    list.iter().map(|id: &Id| frames(pickle, *id, name, budget)).collect()
}

fn joined(parts: &[Frames]) -> Result<Frames> {
    let mut all = parts.first().cloned().ok_or_else(|| Error::new(Kind::Empty, "no trajectories"))?;
    for part in &parts[1..] {
        if (part.scalar, &part.shape) != (all.scalar, &all.shape) {
            let detail = format!("trajectories of shapes {:?} and {:?}", all.shape, part.shape);
            return Err(Error::new(Kind::WrongSize, detail));
        }
        all.bytes.extend_from_slice(&part.bytes);
    }
    Ok(all)
}

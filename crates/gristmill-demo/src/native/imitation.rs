//! Trajectories of the imitation library, pickled or as `.npz` -> frames as they are: no stacks, any shape.

use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::error::{Error, Kind, Result};

use super::Semantics;
use super::dm_control::dm_control;
use super::episode::{Episode, done_at_the_end, observed};
use super::object::{npz_frames, npz_objects, repickled};
use crate::budget::Budget;
use crate::frames::Frames;
use crate::trajectory::{End, Trajectories};

/// Reads a pickled list of trajectories; a missing `terminal` means that the episode ended.
///
/// Errors: as for the other pickled lists of trajectories.
pub fn imitation(bytes: &[u8], semantics: Semantics, max: usize) -> Result<Trajectories> {
    dm_control(bytes, 1, semantics, max)
}

/// Reads an `.npz`: all observations and actions concatenated, `indices` between the actions of two trajectories.
///
/// Errors: `Missing` for an array that is not there, `WrongSize` where lengths or indices do not fit each other, `TooLarge`
/// beyond `max` bytes.
pub fn imitation_npz(bytes: &[u8], semantics: Semantics, max: usize) -> Result<Trajectories> {
    let npz = Npz::open(bytes)?;
    let budget = Budget::new(max);
    let obs = npz_frames(&npz, "obs", &budget)?;
    let acts = npz_frames(&npz, "acts", &budget)?;
    let terminal = npz_frames(&npz, "terminal", &budget)?;
    let indices = npz_frames(&npz, "indices", &budget)?;
    let has_rewards = npz.names().iter().any(|name| name == "rews");
    let rews = if has_rewards { Some(npz_frames(&npz, "rews", &budget)?) } else { None };
    let mut ends = Vec::with_capacity(terminal.len());
    for i in 0..indices.len() {
        let index = indices.scalar.number(indices.get(i)).filter(|n| *n >= 0.0);
        ends.push(index.ok_or_else(|| Error::new(Kind::WrongSize, "`indices` are not whole numbers"))? as usize);
    }
    ends.push(acts.len());
    let fits = ends.len() == terminal.len() && obs.len() == acts.len() + ends.len();
    if !fits || !ends.is_sorted() || ends.iter().any(|end| *end > acts.len()) {
        let detail = format!(
            "{} observations, {} actions, {} indices, {} ends: expected one observation more for each trajectory",
            obs.len(),
            acts.len(),
            indices.len(),
            terminal.len()
        );
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let infos = match npz.names().iter().any(|name| name == "infos") {
        true => npz_objects(&npz, "infos", &budget, |pickle, items| {
            items.iter().map(|item| repickled(pickle, *item, &budget)).collect::<Result<Vec<_>>>()
        })
        .map(Some)?,
        false => None,
    };
    if let Some(infos) = infos.as_ref().filter(|infos| infos.len() != acts.len()) {
        let detail = format!("{} infos and {} actions", infos.len(), acts.len());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let mut all = Trajectories::new(max);
    let mut infos = infos.map(Vec::into_iter);
    let mut start = 0;
    for (i, end) in ends.into_iter().enumerate() {
        let steps = end - start;
        let part = |frames: &Frames, from: usize| frames.slice(from, steps);
        let (obs, next_obs) = observed(part(&obs, start + i), part(&obs, start + i + 1));
        let over = terminal.get(i).first().is_some_and(|flag| *flag != 0);
        let episode = Episode {
            obs,
            next_obs: Some(next_obs),
            acts: part(&acts, start),
            rews: rews.as_ref().map(|rews| part(rews, start)),
            infos: infos.as_mut().map(|all| all.by_ref().take(steps).collect()),
            dones: done_at_the_end(steps),
            end: if over { End::Terminated } else { End::Truncated },
        };
        episode.add(semantics, &mut all).map_err(|e| e.in_chunk(i))?;
        start = end;
    }
    Ok(all)
}

//! An `.npz` of pickled Atari trajectories -> channels-first frames.

use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::error::{Error, Kind, Result};

use super::Semantics;
use super::episode::{Episode, observed};
use super::object::{frames, npz_objects, wanted};
use crate::budget::Budget;
use crate::trajectory::{End, Trajectories};

/// Reads the file: one object array of dictionaries `states`, `actions`, `dones`, lists of one length. The last state is only
/// the next observation of the step before.
///
/// Real files hold fragments of fixed length without a single true `dones`. The strict form ends each fragment, as truncated;
/// the compatible one leaves its ends invisible.
///
/// Errors: what the unpickler says; `Missing`, `WrongSize`, `Empty`, `TooLarge` beyond `max` bytes.
pub fn atari(bytes: &[u8], semantics: Semantics, max: usize) -> Result<Trajectories> {
    let npz = Npz::open(bytes)?;
    let [name] = npz.names() else {
        let names = npz.names().join("`, `");
        return Err(Error::new(Kind::Unsupported, format!("expected one array of trajectories, found `{names}`")));
    };
    let name = name.clone();
    let budget = Budget::new(max);
    npz_objects(&npz, &name, &budget, |pickle, list| {
        if list.is_empty() {
            return Err(Error::new(Kind::Empty, "no trajectories"));
        }
        let mut all = Trajectories::new(max);
        for (i, id) in list.iter().enumerate() {
            let read = || -> Result<Episode> {
                let states = frames(pickle, wanted(pickle, *id, "states")?, "states", &budget)?.channels_first()?;
                let actions = frames(pickle, wanted(pickle, *id, "actions")?, "actions", &budget)?;
                let flags = frames(pickle, wanted(pickle, *id, "dones")?, "dones", &budget)?;
                let steps = states.len().saturating_sub(1);
                if actions.len() != steps + 1 || flags.len() != steps + 1 {
                    let detail = format!("{} states, {} actions, {} dones", states.len(), actions.len(), flags.len());
                    return Err(Error::new(Kind::WrongSize, detail));
                }
                let mut dones: Vec<bool> = (0..steps).map(|t| flags.get(t).iter().any(|b| *b != 0)).collect();
                let over = dones.last() == Some(&true);
                if let (Semantics::Strict, Some(last)) = (semantics, dones.last_mut()) {
                    *last = true;
                }
                let (obs, next_obs) = observed(states.slice(0, steps), states.slice(1, steps));
                let end = if over { End::Terminated } else { End::Truncated };
                Ok(Episode {
                    obs,
                    next_obs: Some(next_obs),
                    acts: actions.slice(0, steps),
                    rews: None,
                    infos: None,
                    dones,
                    end,
                })
            };
            budget
                .meanwhile(|| read().and_then(|episode| episode.add(semantics, &mut all)))
                .map_err(|e| e.in_chunk(i))?;
        }
        all.end(End::Truncated);
        Ok(all)
    })
}

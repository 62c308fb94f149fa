//! A MineRL `rendered.npz` and the frames of its video -> trajectories. The video itself is decoded elsewhere.

use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::error::{Error, Kind, Result};

use super::Semantics;
use super::episode::{Episode, observed};
use super::object::npz_frames;
use crate::budget::Budget;
use crate::frames::Frames;
use crate::trajectory::{End, Trajectories};

/// Reads actions and rewards of a recording; `pov` holds its frames, (H, W, 3), one more than there are actions. Where there are
/// more, as in real recordings, those at the front were filmed before the first action, and are left out; where there are as many
/// as actions, the last step is left out in the strict form, and the last frame repeated in the compatible one. Without frames there
/// is no `obs`, and every step is kept.
///
/// Errors: `Missing` for an array that is not there, `WrongSize` where lengths do not fit, `TooLarge` beyond `max` bytes.
pub fn minecraft(rendered: &[u8], pov: Option<&Frames>, semantics: Semantics, max: usize) -> Result<Trajectories> {
    let npz = Npz::open(rendered)?;
    let budget = Budget::new(max);
    let acts = npz_frames(&npz, "action$vector", &budget)?;
    let rews = npz_frames(&npz, "reward", &budget)?;
    let mut steps = acts.len();
    let shown = pov.map_or(steps, Frames::len);
    if shown < steps || rews.len() != steps || steps == 0 {
        let detail = format!(
            "{steps} actions, {} rewards, {shown} frames of video; expected as many rewards, and more frames",
            rews.len()
        );
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let (obs, next_obs) = match pov {
        None => (Vec::new(), Vec::new()),
        Some(pov) => {
            let kept = shown.min(steps + 1);
            let mut pov = pov.slice(shown - kept, kept).channels_first()?;
            match semantics {
                Semantics::Strict if shown == steps => steps -= 1,
                Semantics::Compat if shown == steps => {
                    let last = pov.get(steps - 1).to_vec();
                    pov.bytes.extend_from_slice(&last);
                }
                _ => {}
            }
            observed(pov.slice(0, steps), pov.slice(1, steps))
        }
    };
    let episode = Episode {
        obs,
        next_obs: Some(next_obs),
        acts: acts.slice(0, steps),
        rews: (semantics == Semantics::Strict).then(|| rews.slice(0, steps)),
        infos: None,
        dones: (0..steps).map(|t| t + 1 == steps).collect(),
        end: End::Truncated,
    };
    let mut all = Trajectories::new(max);
    episode.add(semantics, &mut all)?;
    Ok(all)
}

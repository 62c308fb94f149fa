//! The arrays of one episode -> its frames: `obs`, `next_obs`, `acts`, `dones`, and `truncated`, `rews`, `infos` where they belong.
//! Lengths are compared before anything is copied.

use std::borrow::Cow;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use super::Semantics;
use crate::frames::Frames;
use crate::trajectory::{End, Trajectories};
use crate::value::{Extra, Value};

/// Observations by field.
pub(super) type Fields = Vec<(String, Frames)>;

/// One episode, or a fragment of one.
#[derive(Debug)]
pub(super) struct Episode {
    /// Observations by field: `obs` alone, or one field for each view. All of T, or of T + 1.
    pub(super) obs: Fields,
    /// The observations after each step, by the same fields; `None` where `obs` has one more, and each is the one after.
    pub(super) next_obs: Option<Fields>,
    /// Actions.
    pub(super) acts: Frames,
    /// Rewards, where there are any.
    pub(super) rews: Option<Frames>,
    /// What the environment said after each step, where it was kept.
    pub(super) infos: Option<Vec<Extra>>,
    /// `dones`, one for each step.
    pub(super) dones: Vec<bool>,
    /// How it ended.
    pub(super) end: End,
}

/// `dones` of an episode that ends with its last step.
pub(super) fn done_at_the_end(steps: usize) -> Vec<bool> {
    (0..steps).map(|t| t + 1 == steps).collect()
}

impl Episode {
    /// Adds its frames.
    ///
    /// Errors: `WrongSize` where its arrays have not the same length; what [`Trajectories::push`] gives.
    pub(super) fn add(mut self, semantics: Semantics, to: &mut Trajectories) -> Result<()> {
        let infos = self.infos.take();
        let steps = self.dones.len();
        let more = usize::from(self.next_obs.is_none());
        let arrays = self.obs.iter().map(|(name, frames)| (name.as_str(), frames, more));
        let next = self.next_obs.iter().flatten().map(|(name, frames)| (name.as_str(), frames, 0));
        let arrays = arrays.chain(next).chain([("acts", &self.acts, 0)]);
        for (name, frames, more) in arrays.chain(self.rews.as_ref().map(|rews| ("rews", rews, 0))) {
            if frames.len() != steps + more {
                let detail =
                    format!("`{name}` has {} steps, the episode {steps}", frames.len() - more.min(frames.len()));
                return Err(Error::new(Kind::WrongSize, detail));
            }
        }
        if let Some(infos) = infos.as_ref().filter(|infos| infos.len() != steps) {
            let detail = format!("`infos` has {} steps, the episode {steps}", infos.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let mut infos = infos.into_iter().flatten();
        for t in 0..steps {
            let array = |frames| step(frames, t);
            let flag = |value: bool| Value::scalar(Scalar::Bool, &[u8::from(value)]);
            let mut values: Vec<(String, Value<'_>)> =
                self.obs.iter().map(|(name, frames)| (name.clone(), array(frames))).collect();
            match &self.next_obs {
                Some(next) => values.extend(next.iter().map(|(name, frames)| (name.clone(), array(frames)))),
                None => {
                    values.extend(self.obs.iter().map(|(name, frames)| (format!("next_{name}"), step(frames, t + 1))))
                }
            }
            values.push(("acts".to_owned(), array(&self.acts)));
            values.push(("dones".to_owned(), flag(self.dones[t])));
            if semantics == Semantics::Strict {
                let cut = self.end == End::Truncated && t + 1 == steps;
                values.push(("truncated".to_owned(), flag(cut)));
            }
            if let Some(rews) = &self.rews {
                values.push(("rews".to_owned(), array(rews)));
            }
            if let Some(info) = infos.next() {
                values.push(("infos".to_owned(), Value::Extra(info)));
            }
            to.push(values).map_err(|e| e.in_frame(t))?;
            if self.dones[t] && t + 1 < steps {
                to.end(End::Terminated);
            }
        }
        // Where nothing marks its end, the compatible form lets the next episode continue it.
        if semantics == Semantics::Strict || self.dones.last() == Some(&true) {
            to.end(self.end);
        }
        Ok(())
    }
}

fn step(frames: &Frames, t: usize) -> Value<'_> {
    Value::Array { scalar: frames.scalar, shape: frames.shape.clone(), bytes: Cow::Borrowed(frames.get(t)) }
}

/// `obs` and `next_obs` of raw frames, one more than there are steps.
pub(super) fn observed(obs: Frames, next_obs: Frames) -> (Fields, Fields) {
    (vec![("obs".to_owned(), obs)], vec![("next_obs".to_owned(), next_obs)])
}

//! Demonstrations as the projects that made them kept them -> trajectories of `obs`, `next_obs`, `acts`, `dones`, ...
//! Episodes end where they ended; [`Semantics::Compat`] gives what older loaders made of the same bytes instead.

mod atari;
mod dictionary;
mod dm_control;
mod episode;
mod imitation;
mod magical;
mod minecraft;
mod object;
mod procgen;

pub use atari::atari;
pub use dictionary::dictionary;
pub use dm_control::dm_control;
pub use imitation::{imitation, imitation_npz};
pub use magical::{About, Magical, magical};
pub use minecraft::minecraft;
pub use procgen::procgen;

/// How the ends of episodes and the frames around them are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Semantics {
    /// `dones` ends every episode, `truncated` beside it says which were cut; `next_obs[t]` is `obs[t + 1]`; no stack reaches
    /// across an end (the default).
    #[default]
    Strict,
    /// As the loaders of the originals had it, faults included: no `truncated`.
    Compat,
}

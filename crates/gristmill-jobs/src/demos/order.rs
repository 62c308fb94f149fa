//! How many trajectories, which, and in which order: numbers only. Draws come from the seed, never from the data.

use gristmill_engine::error::{Error, Result};
use gristmill_engine::runtime::seed::Key;

/// Which trajectories are taken, in which order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice {
    /// This many trajectories, all of them ended; absent: every one.
    pub n_traj: Option<u64>,
    /// Draw them at random; else the first are taken.
    pub sample: bool,
    /// Bring them into an order that is drawn.
    pub shuffle: bool,
}

/// The trajectories that are chosen, in order. `done` says of each whether it ended: one that did not has to stay the last,
/// since nothing else keeps it from running into the next.
///
/// Errors: `Config` where there are fewer.
pub(super) fn choose(choice: &Choice, seed: u64, done: &[bool]) -> Result<Vec<usize>> {
    let mut chosen: Vec<usize> = (0..done.len()).collect();
    if let Some(n) = choice.n_traj {
        chosen.retain(|i| done[*i]);
        let there = chosen.len();
        if n == 0 || n > there as u64 {
            let detail = format!("{n} were wanted, and only {there} trajectories have an end marked by `dones`");
            return Err(Error::config("n_traj", detail));
        }
        if choice.sample {
            shuffle(&mut chosen, Key::new(seed, "trajectories drawn"));
        }
        chosen.truncate(usize::try_from(n).unwrap_or(usize::MAX));
        chosen.sort_unstable();
    }
    if choice.shuffle {
        let movable = chosen.iter().take_while(|i| done[**i]).count();
        shuffle(&mut chosen[..movable], Key::new(seed, "order of trajectories"));
    }
    Ok(chosen)
}

/// Fisher and Yates, from the end.
fn shuffle(these: &mut [usize], key: Key) {
    for i in (1..these.len()).rev() {
        let j = key.at(i as u64).below(i as u64 + 1) as usize;
        these.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_of_ended_ones_and_follow_the_seed() {
        let done = [true, true, true, true, true, false];
        let choose = |n_traj, sample, shuffle, seed| choose(&Choice { n_traj, sample, shuffle }, seed, &done);
        assert_eq!(choose(None, false, false, 1).unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(choose(Some(2), false, false, 1).unwrap(), [0, 1]);
        let shuffled = choose(None, false, true, 1).unwrap();
        assert_eq!((shuffled[5], shuffled.clone()), (5, choose(None, false, true, 1).unwrap()));
        assert_eq!(shuffled, PINNED);
        assert_ne!(shuffled, choose(None, false, true, 2).unwrap());
        let drawn: Vec<_> = (0..20).map(|seed| choose(Some(2), true, false, seed).unwrap()).collect();
        assert!(drawn.iter().all(|two| two[0] < two[1] && two[1] < 5));
        assert!(drawn.iter().any(|two| *two != drawn[0]));
        assert!(choose(Some(6), false, false, 1).is_err() && choose(Some(0), false, false, 1).is_err());
    }

    const PINNED: [usize; 6] = [3, 1, 2, 4, 0, 5];
}

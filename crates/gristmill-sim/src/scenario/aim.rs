//! The upper bits of a number -> the fault and the state that its world aims at: what the world needs for both, and what happens once the
//! state comes. A number without such bits aims at nothing.

use super::{Deed, EVENTFUL, Given, Scenario};
use crate::chooser::Chooser;
use crate::coverage::{Fault, Pair, State, pairs};

/// Bits of a number below those that name a pair.
const BITS: u32 = 40;

/// What a world aims at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aim {
    /// The state that it waits for.
    pub state: State,
    /// Steps with that state that it lets pass.
    pub after: u64,
    /// What happens then.
    pub deeds: Vec<Deed>,
}

/// The number of a world that is made of `seed` and aims at a pair. `None` if the number has no room for it.
pub fn number(seed: u64, pair: Pair) -> Option<u64> {
    let place = pairs().position(|other| other == pair)? as u64;
    (seed >> BITS == 0).then_some((place + 1) << BITS | seed)
}

/// The pair that the world of a number aims at.
pub fn of(number: u64) -> Option<Pair> {
    pairs().nth((number >> BITS).checked_sub(1)? as usize)
}

impl Scenario {
    /// Makes this a world in which the pair can be, and aims at it.
    pub(crate) fn aim_at(&mut self, (fault, state): Pair, c: &mut Chooser) {
        let deeds = self.deeds_of(fault, c);
        let after = if c.once_in(2) { 0 } else { c.below(12) };
        self.aim = Some(Aim { state, after, deeds });
        if c.once_in(4) {
            let at = c.below(EVENTFUL);
            self.deeds.push((at, Deed::Crash));
            self.deeds.sort_by_key(|(at, _)| *at);
        }
        // A world that is stopped early may not come to the state, and a long one takes long.
        (self.stop_at, self.batches) = (None, self.batches.min(12));
        self.crashes.retain(|batch| *batch < 12);
        match state {
            State::Resumed if self.crashes.is_empty() => self.crashes.push(0),
            State::WindowFull => {
                (self.pool, self.law) = (Some(self.lanes.max(2).into()), None);
                self.files.extend((0..2).map(|i| late(c, 5000 + i)));
            }
            State::ReservoirEmpty | State::ReservoirPart | State::ReservoirFull => {
                self.reservoir = self.reservoir.clamp(self.lanes.max(2) as usize, 12);
            }
            _ => {}
        }
    }

    /// What makes a fault happen soon. A world that has to watch its folder for that does so.
    fn deeds_of(&mut self, fault: Fault, c: &mut Chooser) -> Vec<Deed> {
        let file = c.below(self.files.len() as u64) as usize;
        let arrives = Deed::Arrive(late(c, 4000));
        let watched = match fault {
            Fault::Stale => vec![Deed::Stale, Deed::Lose],
            Fault::Repeated => vec![Deed::Repeated, Deed::Lose],
            Fault::HintsLost => vec![Deed::Lose],
            Fault::HintsDoubled => vec![Deed::Double, arrives],
            Fault::Arrived => vec![arrives],
            Fault::Grew => vec![Deed::Grow(late(c, 4000))],
            Fault::Replaced if c.once_in(2) => vec![Deed::Swap(file, 4001)],
            Fault::Replaced => vec![Deed::Replace(file, 4001)],
            Fault::Vanished => vec![Deed::Vanish(file)],
            Fault::Renamed => vec![Deed::Rename(file)],
            Fault::Away if self.watch || c.once_in(2) => vec![Deed::Away, Deed::Lose],
            Fault::Away => return vec![Deed::Away],
            Fault::ClockBack => return vec![Deed::Behind],
            Fault::Broken => return vec![Deed::Break(file, true)],
            // A file that is open stays readable; another one of its name does not open.
            Fault::Forbidden if self.watch || c.once_in(2) => vec![Deed::Break(file, false), Deed::Replace(file, 4001)],
            Fault::Forbidden => return vec![Deed::Break(file, false)],
            Fault::Throttled => return vec![Deed::Throttle(c.within(1, 6) as u32)],
            Fault::Short => return vec![Deed::Short],
            Fault::Crashed => return vec![Deed::Crash],
            Fault::Stopped => return vec![Deed::Stop],
            Fault::Stalled => return vec![Deed::Stall(c.below(200))],
        };
        self.watch = true;
        self.pool.get_or_insert_with(|| c.within(2, 12));
        watched
    }
}

/// A file that comes later.
fn late(c: &mut Chooser, content: u64) -> Given {
    let boards = c.within(1, 300) as usize;
    Given { name: format!("late{}-{content}.bf", c.below(30)), content, boards, damage: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_pair_and_its_seed() {
        for (i, pair) in pairs().enumerate() {
            let number = number(7 + i as u64, pair).unwrap();
            assert_eq!(of(number), Some(pair));
            assert!(Scenario::new(number).aim.is_some());
        }
        assert_eq!(of(1 << 39), None);
        assert_eq!(of(u64::MAX), None, "no such pair");
        assert_eq!(number(1 << 40, (Fault::Broken, State::Running)), None);
    }
}

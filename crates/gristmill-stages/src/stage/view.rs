//! A row of a table and the bounds of its game -> the steps that stand for it, and which of them there are.
//! Numbers only: it reads no byte, and nothing reaches across the end of a game.

use std::ops::Range;

use gristmill_runtime::runtime::intervals::Intervals;

/// Steps at fixed distances from a row, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    offsets: Vec<i64>,
}

impl Window {
    /// The window of these distances; none unless there is one at least and they ascend.
    pub fn new(offsets: Vec<i64>) -> Option<Self> {
        let fits = !offsets.is_empty() && offsets.is_sorted_by(|a, b| a < b);
        fits.then_some(Window { offsets })
    }

    /// How many steps it has.
    pub fn steps(&self) -> usize {
        self.offsets.len()
    }

    /// The places in the window, from and to, whose steps lie in the game that is rows `game` and has `row`.
    pub fn within(&self, row: u64, game: &Range<u64>) -> Range<usize> {
        let (back, ahead) = reach(row, game);
        self.offsets.partition_point(|o| *o < -back)..self.offsets.partition_point(|o| *o <= ahead)
    }

    /// The step at place `i` of the window; the nearest of the game where there is none.
    pub fn step(&self, i: usize, row: u64, game: &Range<u64>) -> u64 {
        let (back, ahead) = reach(row, game);
        row.saturating_add_signed(self.offsets[i].clamp(-back, ahead))
    }

    /// The rows of `game` whose window lies in it wholly.
    pub fn whole(&self, game: &Range<u64>) -> Range<u64> {
        let (first, last) = (self.offsets[0], self.offsets[self.offsets.len() - 1]);
        let start = game.start.saturating_add(first.min(0).unsigned_abs());
        let end = game.end.saturating_sub(last.max(0).unsigned_abs());
        // A window that lies wholly after or before its row may leave the game on the other side.
        start.min(game.end)..end.max(start.min(game.end))
    }
}

/// How far a row is from the first and the last of its game.
fn reach(row: u64, game: &Range<u64>) -> (i64, i64) {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    (number(row.saturating_sub(game.start)), number(game.end.saturating_sub(row.saturating_add(1))))
}

/// Those of `rows` whose windows, all of them, lie wholly in their game, which `game` finds.
pub fn whole(rows: &Intervals, windows: &[Window], mut game: impl FnMut(u64) -> Range<u64>) -> Intervals {
    let mut kept = Intervals::default();
    pieces(rows, &mut game, |piece, game| {
        let inner = windows.iter().map(|window| window.whole(&game));
        let inner = inner.fold(piece, |all, one| all.start.max(one.start)..all.end.min(one.end));
        kept.push(inner.start, inner.end);
    });
    kept
}

/// How trajectories become rows of `length` steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// Steps of a row.
    pub length: u64,
    /// Whether a longer trajectory gives all its steps, in several rows; else its first ones.
    pub split: bool,
    /// Whether only rows that are full count.
    pub full: bool,
}

/// The first steps of all rows that trajectories of which `rows` has a step give; and the length of the longest.
pub fn trajectories(rows: &Intervals, cutting: Cutting, mut game: impl FnMut(u64) -> Range<u64>) -> (Intervals, u64) {
    let (mut first, mut longest, mut seen) = (Intervals::default(), 0, None);
    let Cutting { length, split, full } = cutting;
    pieces(rows, &mut game, |_, game| {
        if seen.replace(game.start) == Some(game.start) {
            return;
        }
        longest = longest.max(game.end - game.start);
        let mut start = game.start;
        while start < game.end {
            let steps = length.min(game.end - start);
            if !full || steps == length {
                first.push(start, start + 1);
            }
            if !split {
                break;
            }
            start += steps.max(1);
        }
    });
    (first, longest)
}

/// Goes over `rows` game by game: the rows of each that are among them, range by range.
fn pieces(rows: &Intervals, game: &mut impl FnMut(u64) -> Range<u64>, mut each: impl FnMut(Range<u64>, Range<u64>)) {
    for (start, end) in rows.iter() {
        let mut at = start;
        while at < end {
            let game = game(at);
            // A row beyond all games stands alone, so that there is an end to it.
            let next = game.end.clamp(at + 1, end);
            each(at..next, game);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bounds of games of these lengths.
    fn games(lengths: &[u64]) -> Vec<Range<u64>> {
        lengths.iter().scan(0, |at, len| Some(std::mem::replace(at, *at + len)..*at)).collect()
    }

    fn holding(games: &[Range<u64>]) -> impl FnMut(u64) -> Range<u64> + '_ {
        |row| games.iter().find(|game| game.contains(&row)).cloned().unwrap_or(row..row)
    }

    fn ranges(rows: &[bool]) -> Intervals {
        let mut made = Intervals::default();
        (0..).zip(rows).filter(|(_, kept)| **kept).for_each(|(row, _)| made.push(row, row + 1));
        made
    }

    fn all(rows: &Intervals) -> Vec<u64> {
        (0..rows.len()).map(|i| rows.row(i)).collect()
    }

    proptest! {
        #[test]
        fn windows_are_what_the_definition_says(
            lengths in prop::collection::vec(1u64..9, 1..6),
            offsets in prop::collection::btree_set(-9i64..10, 1..6),
            kept in prop::collection::vec(any::<bool>(), 48),
        ) {
            let games = games(&lengths);
            let offsets: Vec<i64> = offsets.into_iter().collect();
            let window = Window::new(offsets.clone()).unwrap();
            let frames: u64 = lengths.iter().sum();
            let rows = ranges(&kept[..frames as usize]);
            let mut complete = Vec::new();
            for game in &games {
                for row in game.clone() {
                    let steps: Vec<i64> = offsets.iter().map(|o| row as i64 + o).collect();
                    let (first, last) = (game.start as i64, game.end as i64 - 1);
                    let there: Vec<bool> = steps.iter().map(|step| (first..=last).contains(step)).collect();
                    let within = window.within(row, game);
                    prop_assert_eq!((0..steps.len()).map(|i| within.contains(&i)).collect::<Vec<_>>(), there.clone());
                    for (i, step) in steps.iter().enumerate() {
                        prop_assert_eq!(window.step(i, row, game), (*step).clamp(first, last) as u64);
                    }
                    if there.iter().all(|there| *there) && kept[row as usize] {
                        complete.push(row);
                    }
                }
            }
            prop_assert_eq!(all(&whole(&rows, &[window], holding(&games))), complete);
        }

        #[test]
        fn trajectories_are_cut_split_and_left_out_as_said(
            lengths in prop::collection::vec(1u64..12, 1..6),
            length in 1u64..6,
            kept in prop::collection::vec(any::<bool>(), 60),
            split in any::<bool>(),
            full in any::<bool>(),
        ) {
            let games = games(&lengths);
            let rows = ranges(&kept[..lengths.iter().sum::<u64>() as usize]);
            let mut expected = Vec::new();
            let mut longest = 0;
            for game in games.iter().filter(|game| (*game).clone().any(|row| kept[row as usize])) {
                longest = longest.max(game.end - game.start);
                let starts: Vec<u64> = game.clone().step_by(length as usize).collect();
                let starts = if split { starts } else { starts[..1].to_vec() };
                expected.extend(starts.into_iter().filter(|start| !full || start + length <= game.end));
            }
            let (first, found) = trajectories(&rows, Cutting { length, split, full }, holding(&games));
            prop_assert_eq!((all(&first), found), (expected, longest));
        }
    }

    #[test]
    fn what_does_not_ascend_is_no_window_and_far_distances_reach_nothing() {
        for offsets in [vec![], vec![1, 1], vec![0, -1]] {
            assert_eq!(Window::new(offsets), None);
        }
        let far = Window::new(vec![i64::MIN, 0, i64::MAX]).unwrap();
        assert_eq!((far.within(5, &(3..9)), far.whole(&(3..9)).is_empty()), (1..2, true));
        assert_eq!([0, 1, 2].map(|i| far.step(i, 5, &(3..9))), [3, 5, 8]);
    }
}

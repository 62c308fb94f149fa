//! Step rows of a run, last first -> what each move gained, the discounted return from there on, and rows of both.
//! Holds the arithmetic of the value sidecar and the two-hot form of its targets; knows no file.

use std::sync::{Arc, LazyLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use super::moves::{Move, slide, slide_nibbles};
use super::row::StepRow;

/// Bytes of a value row.
pub const VALUE_BYTES: usize = 24;

/// Name of the field of a value row that training aims at where nothing else is said.
pub const TARGET: &str = "return_scaled";

/// A number of a value row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the names are the fields of the row")]
pub enum ValueField {
    Reward,
    RewardScaled,
    ReturnRaw,
    #[default]
    ReturnScaled,
}

impl ValueField {
    /// Its name in the row.
    pub fn name(self) -> &'static str {
        match self {
            ValueField::Reward => "reward",
            ValueField::RewardScaled => "reward_scaled",
            ValueField::ReturnRaw => "return_raw",
            ValueField::ReturnScaled => TARGET,
        }
    }
}

/// Maximum number of bins of a two-hot target.
pub const MOST_TWO_HOT_BINS: usize = 65_536;

const FIELDS: [(&str, Scalar, &[usize]); 6] = [
    ("run_id", Scalar::U32, &[]),
    ("step_index", Scalar::U32, &[]),
    ("reward", Scalar::F32, &[]),
    ("reward_scaled", Scalar::F32, &[]),
    ("return_raw", Scalar::F32, &[]),
    (TARGET, Scalar::F32, &[]),
];

/// The layout of value rows: 24 bytes, packed, which aligned would be the same.
pub fn value_layout() -> &'static Arc<Layout> {
    static LAYOUT: LazyLock<Arc<Layout>> =
        LazyLock::new(|| Arc::new(Layout::packed(&FIELDS).expect("a constant list of distinct fields")));
    &LAYOUT
}

/// What stands beside a step row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueRow {
    /// That of the step row.
    pub run_id: u32,
    /// That of the step row.
    pub step_index: u32,
    /// Sum of the tiles that the move made, in points of the game's score.
    pub reward: f32,
    /// The reward times `reward_scale`.
    pub reward_scaled: f32,
    /// The reward and all later ones of the run, discounted: G.
    pub return_raw: f32,
    /// h(G), see [`rescaled`].
    pub return_scaled: f32,
}

impl ValueRow {
    /// Its bytes, little-endian.
    pub fn to_bytes(&self) -> [u8; VALUE_BYTES] {
        let floats = [self.reward, self.reward_scaled, self.return_raw, self.return_scaled];
        let words = [self.run_id, self.step_index].into_iter().chain(floats.map(f32::to_bits));
        let mut out = [0; VALUE_BYTES];
        out.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        out
    }

    /// The row of these bytes.
    pub fn from_bytes(bytes: &[u8; VALUE_BYTES]) -> Self {
        let word = |i: usize| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let [reward, reward_scaled, return_raw, return_scaled] = [2, 3, 4, 5].map(|i| f32::from_bits(word(i)));
        ValueRow { run_id: word(0), step_index: word(1), reward, reward_scaled, return_raw, return_scaled }
    }
}

/// What the move of a row gained: the sum of the tiles that its merges made, exact above 65536 too. A move that changes
/// nothing gains 0.
///
/// Errors: `OutOfRange` for a move other than 0 to 3.
pub fn reward(row: &StepRow) -> Result<u32> {
    let Some(mv) = Move::from_index(row.move_dir) else {
        let detail = format!("move {}, expected 0 (up) to 3 (right): no reward without a move", row.move_dir);
        return Err(Error::new(Kind::OutOfRange, detail));
    };
    if row.tile_65536_mask == 0
        && let Some((_, gain)) = slide_nibbles(row.board, mv)
    {
        return Ok(gain);
    }
    // At most eight merges of two tiles of 65536.
    Ok(slide(&row.decoded_board(), mv)?.map_or(0, |slid| slid.gain as u32))
}

/// By which numbers values are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueOptions {
    /// Discount of the next reward, 0 to 1.
    pub gamma: f64,
    /// Factor of `reward_scaled`; the returns are of the rewards as they are.
    pub reward_scale: f64,
    /// Share of the return itself in [`rescaled`], 0 to 1.
    pub epsilon: f64,
}

impl Default for ValueOptions {
    fn default() -> Self {
        ValueOptions { gamma: 0.997, reward_scale: 1.0, epsilon: 0.001 }
    }
}

impl ValueOptions {
    /// Refuses numbers by which values would not be finite.
    ///
    /// Errors: the name of the option, and what is expected.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let refuse = |name, found: f64, expected| Err((name, format!("{found}, expected {expected}")));
        match self {
            Self { gamma, .. } if !(0.0..=1.0).contains(gamma) => refuse("gamma", *gamma, "0 to 1"),
            Self { epsilon, .. } if !(0.0..=1.0).contains(epsilon) => refuse("epsilon", *epsilon, "0 to 1"),
            Self { reward_scale, .. } if !(*reward_scale > 0.0 && *reward_scale <= 1e30) => {
                refuse("reward_scale", *reward_scale, "a number above 0, at most 1e30")
            }
            _ => Ok(()),
        }
    }
}

/// h(G) = sqrt(G + 1) - 1 + epsilon G: returns of all magnitudes brought near to each other.
///
/// Errors: `OutOfRange` for a return that is negative, which no game of 2048 has, or not finite.
pub fn rescaled(value: f64, epsilon: f64) -> Result<f64> {
    if !(0.0..f64::INFINITY).contains(&value) {
        return Err(Error::new(Kind::OutOfRange, format!("a return of {value}, expected 0 or more")));
    }
    Ok((value + 1.0).sqrt() - 1.0 + epsilon * value)
}

/// The value rows of runs, taken in from the last row of the last run to the first of the first.
#[derive(Debug, Clone)]
pub struct Returns {
    options: ValueOptions,
    /// Run of the row that was taken in before, and the return there.
    following: Option<(u32, f64)>,
}

impl Returns {
    /// Of options that were [checked](ValueOptions::check).
    pub fn new(options: ValueOptions) -> Self {
        Returns { options, following: None }
    }

    /// The values of the row before the one that was taken in last; the last row of its run where that one is of another.
    ///
    /// Errors: as [`rescaled`].
    pub fn before(&mut self, run_id: u32, step_index: u32, reward: u32) -> Result<ValueRow> {
        let ValueOptions { gamma, reward_scale, epsilon } = self.options;
        let later = self.following.filter(|(run, _)| *run == run_id).map_or(0.0, |(_, later)| later);
        let reward = f64::from(reward);
        let value = reward + gamma * later;
        self.following = Some((run_id, value));
        Ok(ValueRow {
            run_id,
            step_index,
            reward: reward as f32,
            reward_scaled: (reward * reward_scale) as f32,
            return_raw: value as f32,
            return_scaled: rescaled(value, epsilon)? as f32,
        })
    }
}

/// The numbers that the bins of two-hot targets stand for: evenly spaced from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    low: f64,
    step: f64,
    bins: usize,
}

impl Default for Support {
    /// The whole numbers 0 to 600.
    fn default() -> Self {
        Support { low: 0.0, step: 1.0, bins: 601 }
    }
}

impl Support {
    /// `bins` numbers from `low` to `high`.
    ///
    /// Errors: `OutOfRange` unless `low` is below `high`, both are finite, and there are 2 to [`MOST_TWO_HOT_BINS`] bins.
    pub fn new(low: f64, high: f64, bins: usize) -> Result<Self> {
        let step = (high - low) / (bins.max(2) - 1) as f64;
        if !(low.is_finite() && step > 0.0 && step.is_finite() && (2..=MOST_TWO_HOT_BINS).contains(&bins)) {
            let detail = format!(
                "{bins} bins from {low} to {high}; expected 2 to {MOST_TWO_HOT_BINS}, from a number to a higher one"
            );
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        Ok(Support { low, step, bins })
    }

    /// How many bins there are.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// The two-hot form of a value: the bin at or below it, and the share of its weight that the next bin has, so that the
    /// mean of the bins is the value. The share is below 1, and 0 in the last bin; what lies outside counts as the nearest end.
    pub fn two_hot(&self, value: f32) -> (usize, f32) {
        let last = (self.bins - 1) as f64;
        let place = ((f64::from(value) - self.low) / self.step).clamp(0.0, last);
        let bin = place.floor();
        match (place - bin) as f32 {
            share if share < 1.0 => (bin as usize, share),
            _ => (bin as usize + 1, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::g2048::Board;

    fn moved(board: Board, mv: Move) -> StepRow {
        let packed = board.pack();
        let (board, tile_65536_mask) = (packed.board, packed.mask);
        StepRow { board, tile_65536_mask, move_dir: mv.index() as u8, ..StepRow::default() }
    }

    #[test]
    fn rewards_are_the_tiles_that_were_made() {
        let pairs =
            |cells: &[(usize, u8)]| cells.iter().fold(Board::EMPTY, |board, &(cell, rank)| board.with(cell, rank));
        let two = pairs(&[(0, 1), (1, 1), (4, 2), (5, 2)]);
        assert_eq!(reward(&moved(two, Move::Left)), Ok(12));
        assert_eq!(reward(&moved(two, Move::Right)), Ok(12));
        assert_eq!(reward(&moved(two, Move::Up)), Ok(0), "a move without a merge");
        assert_eq!(reward(&moved(pairs(&[(0, 15), (1, 15)]), Move::Left)), Ok(65536));
        let masked = moved(pairs(&[(3, 16), (15, 16)]), Move::Down);
        assert_eq!((masked.tile_65536_mask, reward(&masked)), (0x8008, Ok(131_072)));
        let full = Board::new([16; 16]).unwrap();
        assert_eq!(reward(&moved(full, Move::Up)), Ok(8 * 131_072));
        assert_eq!(reward(&moved(pairs(&[(0, 3)]), Move::Left)), Ok(0), "a move that changes nothing");
        let none = StepRow { move_dir: 255, ..moved(two, Move::Left) };
        assert_eq!(reward(&none).unwrap_err().kind(), Kind::OutOfRange);
    }

    fn values(rows: &[(u32, u32)], options: ValueOptions) -> Vec<ValueRow> {
        let mut returns = Returns::new(options);
        let mut values: Vec<_> =
            (0..rows.len()).rev().map(|i| returns.before(rows[i].0, i as u32, rows[i].1).unwrap()).collect();
        values.reverse();
        values
    }

    #[test]
    fn returns_end_with_their_run() {
        let options = ValueOptions { gamma: 0.5, reward_scale: 2.0, epsilon: 0.1 };
        let values = values(&[(0, 4), (0, 8), (0, 16), (1, 0)], options);
        let column = |of: fn(&ValueRow) -> f32| values.iter().map(of).collect::<Vec<_>>();
        assert_eq!(column(|row| row.return_raw), [12.0, 16.0, 16.0, 0.0]);
        assert_eq!(column(|row| row.reward), [4.0, 8.0, 16.0, 0.0]);
        assert_eq!(column(|row| row.reward_scaled), [8.0, 16.0, 32.0, 0.0]);
        assert_eq!(column(|row| row.return_scaled), [3.805_551_2, 4.723_105_4, 4.723_105_4, 0.0]);
        assert_eq!(values.iter().map(|row| (row.run_id, row.step_index)).next_back(), Some((1, 3)));
    }

    /// The rest of case 15.
    #[test]
    fn returns_that_no_game_has_are_refused() {
        for wrong in [-2.0, -0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(rescaled(wrong, 0.1).unwrap_err().kind(), Kind::OutOfRange, "{wrong}");
        }
        assert_eq!((rescaled(0.0, 0.1), rescaled(3.0, 0.0)), (Ok(0.0), Ok(1.0)));
    }

    #[test]
    fn options_that_give_no_numbers_are_refused() {
        let plain = ValueOptions::default();
        assert_eq!((plain.gamma, plain.reward_scale, plain.epsilon, plain.check()), (0.997, 1.0, 0.001, Ok(())));
        for (options, name) in [
            (ValueOptions { gamma: 1.5, ..plain }, "gamma"),
            (ValueOptions { gamma: f64::NAN, ..plain }, "gamma"),
            (ValueOptions { reward_scale: 0.0, ..plain }, "reward_scale"),
            (ValueOptions { reward_scale: f64::INFINITY, ..plain }, "reward_scale"),
            (ValueOptions { epsilon: -0.1, ..plain }, "epsilon"),
        ] {
            assert_eq!(options.check().unwrap_err().0, name);
        }
    }

    #[test]
    fn ends_of_the_support_hold_what_lies_beyond() {
        for (value, bin) in [(0.0, 0), (-3.0, 0), (600.0, 600), (1e9, 600), (17.0, 17)] {
            assert_eq!(Support::default().two_hot(value), (bin, 0.0), "{value}");
        }
        assert_eq!(Support::default().two_hot(599.75), (599, 0.75));
        let halves = Support::new(-1.0, 1.0, 5).unwrap();
        for (value, expected) in
            [(-7.0, (0, 0.0)), (-0.75, (0, 0.5)), (0.5, (3, 0.0)), (1.0, (4, 0.0)), (9.0, (4, 0.0))]
        {
            assert_eq!(halves.two_hot(value), expected, "{value}");
        }
        assert_eq!(Support::new(0.0, 600.0, 601).unwrap(), Support::default());
        for (low, high, bins) in
            [(0.0, 0.0, 5), (1.0, 0.0, 5), (0.0, 1.0, 1), (f64::NAN, 1.0, 5), (0.0, f64::INFINITY, 5)]
        {
            assert!(Support::new(low, high, bins).is_err(), "{low} {high} {bins}");
        }
        assert!(Support::new(0.0, 1.0, MOST_TWO_HOT_BINS + 1).is_err());
    }

    proptest! {
        #[test]
        fn two_bins_have_the_value_as_their_mean(value in 0f32..=600.0) {
            let (bin, share) = Support::default().two_hot(value);
            prop_assert!((0.0..1.0).contains(&share) && bin + usize::from(share > 0.0) < Support::default().bins());
            prop_assert_eq!(bin as f64 + f64::from(share), f64::from(value));
        }

        #[test]
        fn rows_come_back_from_their_bytes(bytes in prop::array::uniform24(any::<u8>())) {
            let row = ValueRow::from_bytes(&bytes);
            prop_assert_eq!(row.to_bytes(), bytes);
            prop_assert_eq!(value_layout().size(), VALUE_BYTES);
            prop_assert_eq!(row.step_index, u32::from_le_bytes(bytes[4..8].try_into().unwrap()));
        }

        /// Against the sum that the definition says, and in pieces of any runs.
        #[test]
        fn returns_are_discounted_sums(
            rows in prop::collection::vec((0u32..3, 0u32..5000), 0..40), gamma in 0f64..=1.0
        ) {
            let mut rows = rows;
            rows.sort_by_key(|(run, _)| *run);
            let found = values(&rows, ValueOptions { gamma, ..ValueOptions::default() });
            for (i, row) in found.iter().enumerate() {
                let later = rows[i..].iter().take_while(|(run, _)| *run == rows[i].0);
                let sum: f64 = later.zip(0i32..).map(|((_, reward), t)| f64::from(*reward) * gamma.powi(t)).sum();
                prop_assert!((f64::from(row.return_raw) - sum).abs() <= 1e-6 * sum.max(1.0), "{} {sum}", row.return_raw);
            }
        }
    }
}

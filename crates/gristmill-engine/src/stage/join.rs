//! Several streams of rows -> one: each row comes from a seeded weighted choice among those not ended.
//! A choice depends on the row's ordinal alone, so it never matters which stream is ready first.

use serde::{Deserialize, Serialize};

use super::QueueConfig;
use crate::runtime::options::options;
use crate::runtime::seed::Key;

/// What a join does when one of its inputs has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhausted {
    /// Leave it out and share its weight among the others (the default).
    #[default]
    Drop,
    /// Start its passes again.
    Restart,
    /// End the output.
    Stop,
}

options! {
    /// Joins streams of frames: each frame comes from a seeded weighted choice of input (§1.9).
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct JoinPositionsConfig {
        /// Weights parallel to the stage's inputs; equal when empty.
        batches weight: Vec<f64>,
        /// What happens when an input ends.
        batches exhausted: Exhausted,
        /// Where the frames go.
        table output: QueueConfig,
    }
}

/// A weighted join.
#[derive(Debug, Clone)]
pub struct Join {
    key: Key,
    weights: Vec<f64>,
    when_exhausted: Exhausted,
    ordinal: u64,
}

impl Join {
    /// A join of as many inputs as there are weights.
    pub fn new(key: Key, weights: Vec<f64>, when_exhausted: Exhausted) -> Self {
        Join { key, weights, when_exhausted, ordinal: 0 }
    }

    /// The input of the next row; `None` when all have ended. Call [`Join::took`] once the row is taken.
    pub fn choose(&self) -> Option<usize> {
        if let [only] = self.weights[..] {
            return (only > 0.0).then_some(0);
        }
        self.key.at(self.ordinal).weighted(&self.weights)
    }

    /// The chosen row was taken: on to the next.
    pub fn took(&mut self) {
        self.ordinal += 1;
    }

    /// An input has ended. Returns whether it is to start again.
    pub fn exhausted(&mut self, input: usize) -> bool {
        match self.when_exhausted {
            Exhausted::Restart => return true,
            Exhausted::Drop => self.weights[input] = 0.0,
            Exhausted::Stop => self.weights.fill(0.0),
        }
        false
    }

    /// The ordinal of the next row and the weights left: all there is to save.
    pub fn state(&self) -> (u64, Vec<f64>) {
        (self.ordinal, self.weights.clone())
    }

    /// Goes on from a state. `None` when it has another number of inputs.
    pub fn restore(&mut self, ordinal: u64, weights: &[f64]) -> Option<()> {
        (weights.len() == self.weights.len()).then(|| {
            self.ordinal = ordinal;
            self.weights.copy_from_slice(weights);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_proportion_and_weights_are_shared_out() {
        let mut join = Join::new(Key::new(4, "join"), vec![0.7, 0.3], Exhausted::Drop);
        let mut counts = [0u32; 2];
        for _ in 0..20_000 {
            counts[join.choose().unwrap()] += 1;
            join.took();
        }
        assert!((13_750..14_250).contains(&counts[0]), "{counts:?}");
        assert!(!join.exhausted(0));
        assert_eq!(join.choose(), Some(1));
        assert!(!join.exhausted(1));
        assert_eq!(join.choose(), None);
    }

    #[test]
    fn stop_and_restart_do_what_they_say() {
        let mut join = Join::new(Key::new(4, "join"), vec![1.0, 1.0], Exhausted::Stop);
        assert!(!join.exhausted(1));
        assert_eq!(join.choose(), None);
        let mut join = Join::new(Key::new(4, "join"), vec![1.0], Exhausted::Restart);
        assert!(join.exhausted(0));
        assert_eq!(join.choose(), Some(0));
    }
}

//! Several streams of rows -> one: each row comes from a seeded weighted choice among those not ended.
//! A choice depends on the row's ordinal alone, so it never matters which stream is ready first.

use std::collections::VecDeque;

use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use super::{Later, QueueConfig, Row, RowStep, Standing};
use crate::options::options;

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

/// Weights from a frame on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaterWeights {
    /// The first frame that the join chooses by them, above 0. It counts frames of all lanes.
    pub frame: u64,
    /// Weights parallel to the stage's inputs.
    pub weight: Vec<f64>,
}

options! {
    /// Joins streams of frames: each frame comes from a seeded weighted choice of input.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct JoinPositionsConfig {
        /// Weights parallel to the stage's inputs; equal when empty.
        batches weight: Vec<f64>,
        /// The weights that follow those, in ascending order of their frames.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        batches later: Vec<LaterWeights>,
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
    /// 0 for an input that has ended.
    weights: Vec<f64>,
    /// Weights that follow, by the ordinal from which they hold, all above 0; and how many of them have come.
    later: Vec<(u64, Vec<f64>)>,
    changed: usize,
    when_exhausted: Exhausted,
    ordinal: u64,
    /// Rows that were joined since the start.
    joined: u64,
    /// Ordinal and weights at the consumer's mark, then at each later one.
    marks: VecDeque<(u64, Vec<f64>)>,
}

impl Join {
    /// A join of as many inputs as there are weights.
    pub fn new(key: Key, weights: Vec<f64>, when_exhausted: Exhausted) -> Self {
        let marks = VecDeque::from([(0, weights.clone())]);
        Join { key, weights, later: Vec::new(), changed: 0, when_exhausted, ordinal: 0, joined: 0, marks }
    }

    /// The same with weights that follow, by the ordinal of the first row that they choose.
    #[must_use]
    pub fn changing(mut self, later: Vec<(u64, Vec<f64>)>) -> Self {
        self.later = later;
        self.reweigh();
        self.marks = VecDeque::from([(self.ordinal, self.weights.clone())]);
        self
    }

    /// Takes the weights that hold by now. An input that has ended stays so.
    fn reweigh(&mut self) {
        while let Some((_, weights)) = self.later.get(self.changed).filter(|(at, _)| *at <= self.ordinal) {
            let live = self.weights.iter_mut().zip(weights).filter(|(own, _)| **own > 0.0);
            live.for_each(|(own, weight)| *own = *weight);
            self.changed += 1;
        }
    }

    /// The input of the next row; `None` when all have ended. It stays so until a row is offered.
    pub fn choose(&self) -> Option<usize> {
        if let [only] = self.weights[..] {
            return (only > 0.0).then_some(0);
        }
        self.key.at(self.ordinal).weighted(&self.weights)
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
}

impl RowStep for Join {
    fn offer(&mut self, rows: &mut Vec<Row>, _: &mut Vec<Row>, _: &[u64]) {
        self.ordinal += rows.len() as u64;
        self.joined += rows.len() as u64;
        self.reweigh();
    }

    fn mark(&mut self) -> usize {
        self.marks.push_back((self.ordinal, self.weights.clone()));
        0
    }

    fn advance(&mut self) {
        if self.marks.len() > 1 {
            self.marks.pop_front();
        }
    }

    fn later(&self) -> Later {
        let (ordinal, weights) = self.marks.front().cloned().unwrap_or_else(|| (self.ordinal, self.weights.clone()));
        Box::new(move || Standing { own: serde_json::json!([ordinal, weights]), rows: Vec::new() })
    }

    fn restore(&mut self, standing: Standing) -> Result<(), String> {
        let (ordinal, weights): (u64, Vec<f64>) = serde_json::from_value(standing.own).map_err(|e| e.to_string())?;
        if weights.len() != self.weights.len() {
            return Err("it has another number of weights".to_owned());
        }
        (self.ordinal, self.weights) = (ordinal, weights);
        self.changed = self.later.partition_point(|(at, _)| *at <= ordinal);
        self.marks = VecDeque::from([(self.ordinal, self.weights.clone())]);
        Ok(())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("frames", self.joined)]
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::encode::Provenance;

    use super::*;

    const ROW: Row = Row { slot: 0, branch: 0, from: Provenance { source: 0, chunk: 0, frame: 0 } };

    #[test]
    fn rows_come_in_proportion_and_weights_are_shared_out() {
        let mut join = Join::new(Key::new(4, "join"), vec![0.7, 0.3], Exhausted::Drop);
        let mut counts = [0u32; 2];
        for _ in 0..20_000 {
            counts[join.choose().unwrap()] += 1;
            join.offer(&mut vec![ROW], &mut Vec::new(), &[]);
        }
        assert!((13_750..14_250).contains(&counts[0]), "{counts:?}");
        assert!(!join.exhausted(0));
        assert_eq!(join.choose(), Some(1));
        assert!(!join.exhausted(1));
        assert_eq!(join.choose(), None);
    }

    #[test]
    fn weights_change_at_their_row_and_what_has_ended_stays_so() {
        let later = vec![(100, vec![1e-12, 1.0]), (200, vec![1.0, 1e-12])];
        let new = || Join::new(Key::new(4, "join"), vec![1.0, 1.0], Exhausted::Drop).changing(later.clone());
        let run = |join: &mut Join, rows: usize| -> Vec<usize> {
            let mut one = || {
                let chosen = join.choose().unwrap();
                join.offer(&mut vec![ROW], &mut Vec::new(), &[]);
                chosen
            };
            (0..rows).map(|_| one()).collect()
        };
        let (mut join, mut plain) = (new(), Join::new(Key::new(4, "join"), vec![1.0, 1.0], Exhausted::Drop));
        let all = run(&mut join, 300);
        assert_eq!(all[..100], run(&mut plain, 100));
        assert!(all[100..200].iter().all(|input| *input == 1) && all[200..].iter().all(|input| *input == 0));
        for at in [0, 1, 99, 100, 101, 199, 200, 250] {
            let (mut first, mut again) = (new(), new());
            run(&mut first, at);
            first.mark();
            first.advance();
            again.restore(first.later()()).unwrap();
            assert_eq!(run(&mut again, 300 - at), all[at..], "from {at}");
        }
        let mut ended = new();
        ended.exhausted(1);
        assert!(run(&mut ended, 300).iter().all(|input| *input == 0));
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

//! How much of what came a pool draws from, and how often: the window's law and the limit of draws for each arrival.
//! Pure data: what fits together is judged by `pipeline`.

use serde::{Deserialize, Serialize};

use crate::options::options;

options! {
    /// A window that grows with the number `n` of chunks that came: all of them up to `least`, then
    /// `least * (1 + slope * ((n / least)^power - 1) / power)`, rounded down.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WindowLawConfig {
        /// Number of chunks up to which the window has all of them; at least 1.
        batches least: u64,
        /// Chunks that the window grows by for each new chunk at `least`: above 0, at most 1.
        #[serde(default = "slope")]
        batches slope: f64,
        /// How the growth slows down: above 0, at most 1; at 1 it does not.
        #[serde(default = "power")]
        batches power: f64,
    }
}

options! {
    /// Draws that a pool makes for each chunk that comes: a draw waits while `chunks * samples_per_insert - draws` would fall
    /// below `min_diff`, and a new file waits while one more chunk would bring it above `max_diff`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RateLimitConfig {
        /// Draws for each chunk: above 0.
        batches samples_per_insert: f64,
        /// Chunks that must have come before the first draw.
        #[serde(default = "min_size")]
        batches min_size_to_sample: u64,
        /// What is left of the allowed draws at the least; below 0 it allows as many in advance.
        #[serde(default)]
        batches min_diff: f64,
        /// Allowed draws that may be left when a file is taken in; none waits when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batches max_diff: Option<f64>,
    }
}

fn slope() -> f64 {
    0.4
}

fn power() -> f64 {
    0.75
}

fn min_size() -> u64 {
    1
}

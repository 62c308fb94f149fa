//! The queue after a stage, as a configuration has it: its name, how long it is, what becomes of what does not fit.
//! Pure data; the queues themselves are in `runtime`.

use serde::{Deserialize, Serialize};

use crate::options::options;

/// What a full queue does with a new item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Overflow {
    /// Wait for room (the default).
    #[default]
    Block,
    /// Discard the new item, and count it.
    DropNew,
    /// Discard the oldest item, and count it.
    KeepNewest,
}

options! {
    /// A stage's output: its name and how many items may wait in it.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct QueueConfig {
        /// Name of the output; empty for the only one.
        batches name: String,
        /// Items that may wait.
        speed queue_capacity: usize,
        /// What happens when it is full.
        batches overflow_behavior: Overflow,
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig { name: String::new(), queue_capacity: 4, overflow_behavior: Overflow::Block }
    }
}

/// The queues that a field of a stage's configuration stands for.
pub trait Queues {
    /// Each of them.
    fn queues(&self) -> impl Iterator<Item = &QueueConfig>;
}

impl Queues for QueueConfig {
    fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        std::iter::once(self)
    }
}

impl Queues for Option<QueueConfig> {
    fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        self.iter()
    }
}

impl Queues for Vec<QueueConfig> {
    fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        self.iter()
    }
}

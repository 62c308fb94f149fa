//! What stands for one row of a batch, as data: the steps around it, it and a later one, or its whole trajectory.
//! Read and written here; what is senseless or does not fit the table is refused by `pipeline`.

use serde::{Deserialize, Serialize};

/// What stands where a game has no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pad {
    /// The nearest step that there is (the default).
    #[default]
    Edge,
    /// Zeros.
    Zero,
    /// Nothing: rows that would need it are left out of the epoch.
    Drop,
}

/// What becomes of trajectories that are longer than a row has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Longer {
    /// They are refused before anything runs (the default).
    #[default]
    Refuse,
    /// Their first steps are shown.
    Cut,
    /// They give several rows, one after the other; only the last may be padded.
    Split,
}

/// A view of the steps of games; a row of the batch is named by one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum View {
    /// The steps at `offsets` from each row, with an axis of time after that of the batch.
    Window {
        /// Distances in steps, ascending.
        offsets: Vec<i64>,
        /// What stands beyond the ends of the game.
        #[serde(default)]
        pad: Pad,
        /// The tensors that have the axis of time; all when empty. The others are of the row alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tensors: Vec<String>,
    },
    /// Each row, and under names that begin with `next_` the one that many steps later.
    Next {
        /// How many, at least 1.
        steps: u64,
        /// What stands after the end of the game.
        #[serde(default)]
        pad: Pad,
    },
    /// Whole trajectories, with an axis of time after that of the batch.
    Trajectory {
        /// Steps of a row.
        length: u64,
        /// What stands after the end of shorter ones.
        #[serde(default)]
        pad: Pad,
        /// What becomes of longer ones.
        #[serde(default)]
        longer: Longer,
    },
}

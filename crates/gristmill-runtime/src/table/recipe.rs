//! How rows were selected of a pack, as data: what a state or a ledger needs for the same rows to be found again.
//! Names no folder: a pack is known by its identity, wherever it lies. Selects nothing itself.

use std::sync::Arc;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};

use crate::runtime::packed;

/// A pack and what was done to select some of its rows, first to last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The identity of the pack, hexadecimal.
    pub pack: String,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step of a selection. `second` is the side of a split: `val`, where that is true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Runs or games that SQL names.
    Where {
        /// A condition or a query.
        sql: String,
        /// What its question marks stand for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        params: Vec<Param>,
    },
    /// Rows by value; bounds are inclusive.
    Filter {
        /// Lowest and highest `step_index`.
        step_index: (Option<u64>, Option<u64>),
        /// Lowest and highest `max_rank`.
        max_rank: (Option<u64>, Option<u64>),
        /// Names of valuations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valuation: Option<Vec<String>>,
    },
    /// A side of a split at random.
    Split {
        /// Share of the second side.
        val: f64,
        /// Seed of the split.
        seed: u64,
        /// Which side.
        second: bool,
    },
    /// A side of a split by SQL.
    SplitWhere {
        /// What names the second side.
        sql: String,
        /// What its question marks stand for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        params: Vec<Param>,
        /// Which side.
        second: bool,
    },
    /// A side of a split by ids of runs.
    SplitRuns {
        /// Those of the second side.
        #[serde(with = "packed")]
        ids: Vec<u64>,
        /// Which side.
        second: bool,
    },
    /// A side of a split into three at random.
    SplitThree {
        /// Share of the val side.
        val: f64,
        /// Share of the test side.
        test: f64,
        /// Seed of the split.
        seed: u64,
        /// Which side.
        side: ThreeWay,
    },
    /// A fold at random: its own runs, or all others.
    Fold {
        /// How many folds there are.
        of: u32,
        /// Seed of the split.
        seed: u64,
        /// Which one, from 0.
        fold: u32,
        /// Whether its own runs.
        second: bool,
    },
    /// What a mark of the pack marks.
    Marked {
        /// The mark.
        name: String,
    },
    /// What a mark of the pack does not mark.
    Without {
        /// The mark.
        name: String,
    },
    /// Frames of a pack of rows, games of a chunk pack, by place in the selection so far: what a slice of each was before
    /// frames and games had a step each. Still written for these two, so that runs with such ledgers resume.
    Slice {
        /// The first.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// Frames of a chunk pack, by place.
    Frames {
        /// The first.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// Games of a pack of rows, by place.
    Games {
        /// The first.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// With the values beside the rows.
    Values,
    /// Rows of several packs, mixed: how those of each were selected. The only step.
    Mixed {
        /// By pack.
        of: Vec<Recipe>,
    },
}

/// A side of a split into three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of the sides")]
pub enum ThreeWay {
    Train,
    Val,
    Test,
}

/// A value bound to a question mark of SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Param {
    /// Values as SQLite has them, as data.
    pub fn of(values: &[Value]) -> Vec<Self> {
        let one = |value: &Value| match value.clone() {
            Value::Null => Param::Null,
            Value::Integer(n) => Param::Integer(n),
            Value::Real(x) => Param::Real(x),
            Value::Text(text) => Param::Text(text),
            Value::Blob(bytes) => Param::Blob(bytes),
        };
        values.iter().map(one).collect()
    }

    /// Data as SQLite has it.
    pub fn values(params: &[Self]) -> Vec<Value> {
        let one = |param: &Param| match param.clone() {
            Param::Null => Value::Null,
            Param::Integer(n) => Value::Integer(n),
            Param::Real(x) => Value::Real(x),
            Param::Text(text) => Value::Text(text),
            Param::Blob(bytes) => Value::Blob(bytes),
        };
        params.iter().map(one).collect()
    }
}

impl Recipe {
    /// How rows of several packs were selected, which together have an identity.
    pub fn mixed(of: Vec<Recipe>, identity: u64) -> Self {
        Recipe { pack: format!("{identity:016x}"), steps: vec![Step::Mixed { of }] }
    }

    /// All of a pack with this identity.
    pub fn all(pack: u64) -> Arc<Self> {
        Arc::new(Recipe { pack: format!("{pack:016x}"), steps: Vec::new() })
    }

    /// The same with one more step.
    #[must_use]
    pub fn then(&self, step: Step) -> Arc<Self> {
        let steps = self.steps.iter().cloned().chain([step]).collect();
        Arc::new(Recipe { pack: self.pack.clone(), steps })
    }
}

//! What a stage over rows is: it takes runs of rows and gives runs of rows, holds some, and can say where it stood at any batch.
//! Moves references and numbers; bytes stay in their slots.

use std::fmt::Debug;

use gristmill_format::encode::Provenance;
use gristmill_runtime::runtime::seed::Key;

/// A row on its way from a block to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Where its record lies.
    pub slot: u32,
    /// The input that it came by.
    pub branch: u32,
    /// Where it came from.
    pub from: Provenance,
}

/// What a state says of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Its own counters.
    pub own: serde_json::Value,
    /// The rows that it holds, in its order.
    pub rows: Vec<Row>,
}

/// Where a step stood at the oldest mark, found without the step.
pub type Later = Box<dyn FnOnce() -> Standing + Send>;

/// A gauge of a step: name, value, and what it is at most.
pub type GaugeOf = (&'static str, u64, Option<u64>);

/// A step over the rows of one lane.
///
/// A function of the rows offered and of its own key. Marks are made at the ends of batches; the oldest of them is what a
/// consumer has, so a step must be able to say where it stood there, whatever was offered since.
pub trait RowStep: Debug + Send {
    /// How many rows it takes in before one may come out.
    fn room(&self) -> usize {
        0
    }

    /// Takes a run of rows and leaves in `rows` what comes out, in order; at most as many rows as came in. What it lets go
    /// for good is added to `dropped`. `keys` has, by slot, what stands for a row's position, where the stage reads positions.
    fn offer(&mut self, rows: &mut Vec<Row>, dropped: &mut Vec<Row>, keys: &[u64]);

    /// One of the rows that it still holds, at the end of the stream.
    fn drain(&mut self) -> Option<Row> {
        None
    }

    /// Why no row will ever come out, where that is so: the stream ends with it.
    fn stuck(&self) -> Option<String> {
        None
    }

    /// A batch is complete: where it stands now may be asked for later. Returns how many changes were noted since the mark
    /// before.
    fn mark(&mut self) -> usize;

    /// The oldest mark is that of the consumer: what led to it may be forgotten.
    fn advance(&mut self);

    /// Where it stood at the consumer's mark.
    fn later(&self) -> Later;

    /// Takes over a standing.
    ///
    /// Errors: what does not fit.
    fn restore(&mut self, standing: Standing) -> Result<(), String>;

    /// The rows that it holds, or held at the consumer's mark or later; some of them many times.
    fn rows(&self) -> Box<dyn Iterator<Item = &Row> + '_> {
        Box::new(std::iter::empty())
    }

    /// How many rows it holds now.
    fn held(&self) -> usize {
        0
    }

    /// What it says of itself; always the same names.
    fn gauges(&self) -> Vec<GaugeOf> {
        Vec::new()
    }

    /// What it counted since the start; always the same names. `frames` is how many rows it gave.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}

/// A size that the lanes of a stream share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// The option that says it.
    pub field: &'static str,
    /// How large it is in all lanes.
    pub size: u64,
    /// What it counts, in the plural.
    pub of: &'static str,
}

/// The configuration of a stage over rows.
pub trait RowStage: Debug + Send + Sync {
    /// The size that lanes share.
    ///
    /// Errors: the option that cannot be, and why.
    fn shared(&self) -> Result<Shared, (&'static str, String)>;

    /// Slots that rows take which a step holds whose part of that size is `share`.
    fn slots(&self, _share: u64) -> usize {
        0
    }

    /// Bytes that such a step takes beside slots.
    fn bytes(&self, _share: u64) -> u64 {
        0
    }

    /// Whether a step may drop rows.
    fn drops(&self) -> bool {
        false
    }

    /// Whether what stands for a row's position is read from its record.
    fn reads_positions(&self) -> bool {
        false
    }

    /// The step of one lane, with the key of its draws and its part of the size.
    fn step(&self, key: Key, share: u64) -> Box<dyn RowStep>;
}

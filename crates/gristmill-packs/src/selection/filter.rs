//! Bounds on fields of records, and the frames of a pack -> those whose records lie within all of them.
//! Reads each frame once, a block at a time.

use gristmill_format::Error as FormatError;

use crate::pack::runs::{Number, SCANNED};
use crate::pack_table::PackTable;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::FrameTable;

/// Which of the selected frames are meant; bounds are inclusive, what is not set lets every frame through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lowest and highest `step_index`.
    pub step_index: (Option<u64>, Option<u64>),
    /// Lowest and highest `max_rank`.
    pub max_rank: (Option<u64>, Option<u64>),
    /// Names of valuations.
    pub valuation: Option<Vec<String>>,
}

impl Filter {
    /// Those of `rows` that pass.
    pub(super) fn passing(&self, pack: &dyn PackTable, table: &dyn FrameTable, rows: &Intervals) -> Result<Intervals> {
        let test = Test::new(self, pack, table)?;
        let mut passing = Intervals::default();
        let mut numbers = Vec::with_capacity(SCANNED as usize);
        let mut records = Vec::new();
        for (start, end) in rows.iter() {
            for first in (start..end).step_by(SCANNED as usize) {
                numbers.clear();
                numbers.extend(first..end.min(first + SCANNED));
                records.resize(numbers.len() * table.layout().size(), 0);
                table.gather(&numbers, &mut records)?;
                for (row, record) in (first..).zip(records.chunks_exact(table.layout().size())) {
                    if test.passes(record) {
                        passing.push(row, row + 1);
                    }
                }
            }
        }
        Ok(passing)
    }
}

/// A filter made ready for the records of one pack.
struct Test {
    ranges: Vec<(Number, u64, u64)>,
    /// Which valuation ids pass.
    valuations: Option<(Number, [bool; 256])>,
}

impl Test {
    fn new(filter: &Filter, pack: &dyn PackTable, table: &dyn FrameTable) -> Result<Self> {
        // Self-play rows have their own name for the step.
        let number = |option: &str, name: &str| {
            let layout = table.layout();
            let own = if name == "step_index" && layout.field(name).is_none() { "step_idx" } else { name };
            let lacking = |e: FormatError| Error::config(option, format!("{} (form: {})", e.detail(), pack.form()));
            Number::new(layout, own).map_err(lacking)
        };
        let mut ranges = Vec::new();
        for (name, (low, high)) in [("step_index", filter.step_index), ("max_rank", filter.max_rank)] {
            if low.is_some() || high.is_some() {
                ranges.push((number(name, name)?, low.unwrap_or(0), high.unwrap_or(u64::MAX)));
            }
        }
        let valuations = match &filter.valuation {
            None => None,
            Some(names) => {
                let valuation_type = number("valuation", "valuation_type")?;
                let (known, mut passing) = (pack.names_of_valuations(), [false; 256]);
                for name in names {
                    let Some(id) = known.iter().position(|known| known == name) else {
                        let known = known.join(", ");
                        return Err(Error::config("valuation", format!("`{name}` is none of this pack's: {known}")));
                    };
                    passing[id & 255] = true;
                }
                Some((valuation_type, passing))
            }
        };
        Ok(Test { ranges, valuations })
    }

    fn passes(&self, record: &[u8]) -> bool {
        let within = |(number, low, high): &(Number, u64, u64)| (*low..=*high).contains(&number.of(record));
        self.ranges.iter().all(within)
            && self.valuations.as_ref().is_none_or(|(number, passing)| passing[number.of(record) as usize & 255])
    }
}

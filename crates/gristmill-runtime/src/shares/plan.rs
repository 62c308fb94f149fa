//! The inputs of a job, in its order -> contiguous shares that are even in bytes; and the plan of all shares, with a name that no
//! other plan has. A function of names, sizes, options and version: the same on every machine.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::portion::number_of;
use super::share::Share;
use crate::lineage::WRITER;

/// An input that is never cut: a file, or files that make one data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Path below the input, with `/`. A unit of several files has a name that no other unit has.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// How many inputs it counts as.
    pub inputs: u64,
}

impl Unit {
    /// Its weight in a share; an empty file has some, too.
    pub fn weight(&self) -> u128 {
        u128::from(self.bytes.max(1))
    }
}

/// The units of a share. The shares of a job follow each other and have each unit once. The bytes of a share differ from an even
/// part by at most the largest unit.
pub fn cut(units: &[Unit], share: Share) -> Range<usize> {
    let total: u128 = units.iter().map(Unit::weight).sum();
    let number = u128::from(share.number() - 1);
    let (mut before, mut range) = (0, 0..0);
    for unit in units {
        // The share in which the middle of the unit lies.
        let at = number_of(2 * before + unit.weight(), share, total);
        range.start += usize::from(at < number);
        range.end += usize::from(at <= number);
        before += unit.weight();
    }
    range
}

/// The plan of all shares of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// XXH3-64 of the fields below, as 16 hexadecimal digits.
    pub name: String,
    /// The job, such as `pack`.
    pub job: String,
    /// Name and version of the program.
    pub writer: String,
    /// The number of shares.
    pub shares: u32,
    /// The options that change a byte of the output.
    pub options: BTreeMap<String, Value>,
    /// The number of inputs.
    pub inputs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// XXH3-128, as 32 hexadecimal digits: of each input in order its name, a zero byte, and 8 bytes of its length.
    pub inputs_xxh3_128: String,
}

impl Plan {
    /// The plan of a job.
    pub fn new(job: &str, options: BTreeMap<String, Value>, units: &[Unit], shares: u32) -> Self {
        let mut hash = Xxh3::new();
        for unit in units {
            hash.update(unit.name.as_bytes());
            hash.update(&[0]);
            hash.update(&unit.bytes.to_le_bytes());
        }
        let mut plan = Plan {
            name: String::new(),
            job: job.to_owned(),
            writer: WRITER.to_owned(),
            shares,
            options,
            inputs: units.iter().map(|unit| unit.inputs).sum(),
            bytes: units.iter().fold(0, |sum, unit| sum.saturating_add(unit.bytes)),
            inputs_xxh3_128: format!("{:032x}", hash.digest128()),
        };
        plan.name = plan.hash();
        plan
    }

    fn hash(&self) -> String {
        let unnamed = Plan { name: String::new(), ..self.clone() };
        format!("{:016x}", xxh3_64(&serde_json::to_vec(&unnamed).unwrap_or_default()))
    }

    /// Whether its name is the hash of its fields.
    pub fn is_whole(&self) -> bool {
        self.name == self.hash()
    }

    /// How the plan of other shares differs from this one, in words.
    pub fn differs(&self, theirs: &Plan) -> String {
        let mut said = Vec::new();
        let mut say = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                said.push(format!("{what}: {theirs} there, {ours} now"));
            }
        };
        say("the job", self.job.clone(), theirs.job.clone());
        say("the version", self.writer.clone(), theirs.writer.clone());
        say("the number of shares", self.shares.to_string(), theirs.shares.to_string());
        let names = self.options.keys().chain(theirs.options.keys().filter(|name| !self.options.contains_key(*name)));
        for name in names {
            let shown = |plan: &Plan| plan.options.get(name).unwrap_or(&Value::Null).to_string();
            say(name, shown(self), shown(theirs));
        }
        let inputs = |plan: &Plan| format!("{} of {} bytes", plan.inputs, plan.bytes);
        say("inputs", inputs(self), inputs(theirs));
        if said.is_empty() {
            said.push("names or sizes of inputs changed".to_owned());
        }
        said.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::seed::Key;

    fn units(sizes: impl IntoIterator<Item = u64>) -> Vec<Unit> {
        sizes.into_iter().enumerate().map(|(i, bytes)| Unit { name: format!("g{i}"), bytes, inputs: 1 }).collect()
    }

    fn all(units: &[Unit], of: u32) -> Vec<Range<usize>> {
        (1..=of).map(|number| cut(units, Share::new(number, of).unwrap())).collect()
    }

    #[test]
    fn shares_are_even_in_bytes_and_not_in_files() {
        assert_eq!(all(&units([10, 10, 10, 10]), 2), [0..2, 2..4]);
        assert_eq!(all(&units([30, 10, 10, 10]), 2), [0..1, 1..4]);
        assert_eq!(all(&units([0, 0, 0]), 3), [0..1, 1..2, 2..3]);
        assert_eq!(all(&units([100]), 3), [0..0, 0..1, 1..1]);
        assert_eq!(all(&units([]), 2), [0..0, 0..0]);
        let huge = u64::MAX;
        assert_eq!(all(&units([huge, huge, huge]), 3), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn every_input_is_in_one_share_and_none_is_off_by_more_than_the_largest() {
        for case in 0..2000 {
            let mut draws = Key::new(case, "shares").at(0);
            let largest = 1 << draws.below(30);
            let units = units((0..draws.below(60)).map(|_| draws.below(largest)).collect::<Vec<_>>());
            let of = 1 + draws.below(80) as u32;
            let (shares, mut next) = (all(&units, of), 0);
            let weigh = |units: &[Unit]| units.iter().map(Unit::weight).sum::<u128>();
            let most = units.iter().map(Unit::weight).max().unwrap_or(0);
            for share in shares {
                assert_eq!(share.start, next, "case {case}");
                next = share.end;
                let (bytes, all) = (weigh(&units[share]), weigh(&units));
                let of = u128::from(of);
                assert!(bytes * of <= all + most * of && (bytes + most) * of >= all, "case {case}: {bytes} of {all}");
            }
            assert_eq!(next, units.len(), "case {case}");
        }
    }

    #[test]
    fn the_name_of_a_plan_is_of_all_that_changes_a_byte() {
        let options = |rows: u64| BTreeMap::from([("shard_rows".to_owned(), Value::from(rows))]);
        let plan = Plan::new("pack", options(9), &units([3, 4]), 5);
        assert_eq!(plan, Plan::new("pack", options(9), &units([3, 4]), 5));
        let mut renamed = units([3, 4]);
        renamed[1].name.push('x');
        for (other, says) in [
            (Plan::new("stats", options(9), &units([3, 4]), 5), "the job: stats there, pack now"),
            (Plan::new("pack", options(8), &units([3, 4]), 5), "shard_rows: 8 there, 9 now"),
            (Plan::new("pack", BTreeMap::new(), &units([3, 4]), 5), "shard_rows: null there, 9 now"),
            (Plan::new("pack", options(9), &units([3, 5]), 5), "inputs: 2 of 8 bytes there, 2 of 7 bytes now"),
            (Plan::new("pack", options(9), &units([4, 3]), 5), "names or sizes of inputs changed"),
            (Plan::new("pack", options(9), &renamed, 5), "names or sizes of inputs changed"),
            (Plan::new("pack", options(9), &units([3, 4]), 6), "the number of shares: 6 there, 5 now"),
        ] {
            assert_ne!(plan.name, other.name, "{says}");
            assert_eq!(plan.differs(&other), says);
            assert!(other.is_whole() && !Plan { shares: 77, ..other }.is_whole());
        }
        let golden = Plan { writer: "gristmill 1".to_owned(), ..plan };
        assert_eq!(
            golden.hash(),
            "21c447a048522ad4",
            "another name parts shares of one version that two machines made"
        );
    }
}

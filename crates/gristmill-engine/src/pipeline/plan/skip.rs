//! The ranges of a configuration -> which batches of one output are left out. Sorted ranges of numbers, nothing else.

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::Skip;

/// Batches of one output that are left out: ranges in order, none touching the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Skips(Vec<(u64, u64)>);

impl Skips {
    /// What a configuration leaves out of each of its outputs.
    ///
    /// Errors: `Config` for a range that names no output of these, or none where there are several.
    pub(crate) fn of(skips: &[Skip], outputs: &[String]) -> Result<Vec<Skips>> {
        let mut found = vec![Vec::new(); outputs.len()];
        for skip in skips {
            let named = match &skip.output {
                Some(name) => outputs.iter().position(|output| output == name),
                None => (outputs.len() == 1).then_some(0),
            };
            let Some(output) = named else {
                let outputs = outputs.join(", ");
                let text =
                    format!("{skip} names no output of this loader; expected NAME:FIRST..END with one of: {outputs}");
                return Err(Error::config("skip", text));
            };
            found[output].push((skip.first, skip.end));
        }
        Ok(found.into_iter().map(Skips::new).collect())
    }

    /// All batches below `end`.
    pub(crate) fn below(end: u64) -> Self {
        Skips(if end > 0 { vec![(0, end)] } else { Vec::new() })
    }

    fn new(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, end) in ranges {
            match joined.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((first, end)),
            }
        }
        Skips(joined)
    }

    /// Whether a batch is left out.
    pub(crate) fn has(&self, batch: u64) -> bool {
        self.beyond(batch) != batch
    }

    /// The first batch from `batch` on that is not left out.
    pub(crate) fn beyond(&self, batch: u64) -> u64 {
        let at = self.0.partition_point(|(_, end)| *end <= batch);
        self.0.get(at).filter(|(first, _)| *first <= batch).map_or(batch, |(_, end)| *end)
    }

    /// What is left out below `batch`.
    pub(crate) fn before(&self, batch: u64) -> Vec<(u64, u64)> {
        self.0.iter().filter(|(first, _)| *first < batch).map(|(first, end)| (*first, batch.min(*end))).collect()
    }

    /// The batch after the last range.
    pub(crate) fn end(&self) -> u64 {
        self.0.last().map_or(0, |(_, end)| *end)
    }

    /// How a state that left out `saved` before batch `batch` differs from this; `None` where it does not.
    pub(crate) fn difference(&self, saved: &[(u64, u64)], batch: u64) -> Option<String> {
        let now = self.before(batch);
        let text = |ranges: &[(u64, u64)]| match ranges {
            [] => "none".to_owned(),
            ranges => ranges.iter().map(|(first, end)| format!("{first}..{end}")).collect::<Vec<_>>().join(", "),
        };
        (saved != now).then(|| {
            let why = "what was left out is part of what was trained on; only later batches can still be left out";
            format!("skip before batch {batch}: saved {}, configured {} ({why})", text(saved), text(&now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(ranges: &[&str]) -> Skips {
        let ranges: Vec<Skip> = ranges.iter().map(|text| text.parse().unwrap()).collect();
        Skips::of(&ranges, &[String::new()]).unwrap().remove(0)
    }

    #[test]
    fn ranges_are_joined_and_looked_up() {
        let skips = skips(&["7..9", "3..5", "4..6", "9..10"]);
        let left: Vec<u64> = (0..12).filter(|batch| !skips.has(*batch)).collect();
        assert_eq!(left, [0, 1, 2, 6, 10, 11]);
        assert_eq!([0, 3, 5, 6, 7, 9, 10, 99].map(|batch| skips.beyond(batch)), [0, 6, 6, 6, 10, 10, 10, 99]);
        assert_eq!((skips.before(3), skips.before(5), skips.before(8)), (vec![], vec![(3, 5)], vec![(3, 6), (7, 8)]));
        assert_eq!((skips.end(), Skips::default().end()), (10, 0));
        assert_eq!(skips.difference(&[(3, 5)], 5), None);
        assert!(skips.difference(&[], 5).unwrap().contains("before batch 5: saved none, configured 3..5"));
    }

    #[test]
    fn all_batches_below_a_number_are_one_range_or_none() {
        let below = Skips::below(3);
        assert_eq!([0, 2, 3].map(|batch| below.beyond(batch)), [3, 3, 3]);
        assert_eq!((below.before(9), Skips::below(0)), (vec![(0, 3)], Skips::default()));
    }

    #[test]
    fn several_outputs_are_named() {
        let outputs = ["train".to_owned(), "test".to_owned()];
        let of = |text: &str| Skips::of(&[text.parse().unwrap()], &outputs);
        assert!(of("test:3..5").unwrap()[1].has(4) && !of("test:3..5").unwrap()[0].has(4));
        for wrong in ["3..5", "other:3..5"] {
            assert!(of(wrong).unwrap_err().to_string().contains("train, test"));
        }
    }
}

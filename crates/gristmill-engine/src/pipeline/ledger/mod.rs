//! The ledger of a run: what each process delivered, batch by batch and as digests that know no order (docs/format/ledger.md).
//! Records and digests here; `book` writes them, `account` reads what all processes wrote and says what survived.

mod account;
mod book;
mod files;

use std::collections::BTreeMap;
use std::io::BufRead;

use gristmill_runtime::runtime::sealed;
use gristmill_runtime::table::Recipe;
use gristmill_stages::config::LastBatch;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::pipeline::resume::state::compared;

pub use account::{Account, Kept, Process};
pub(in crate::pipeline) use book::Book;
pub(in crate::pipeline) use files::FileHashes;

/// Version of the ledger; raised whenever its meaning changes.
const VERSION: u32 = 1;

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A process begins.
    Begin(Box<Begin>),
    /// It delivered batches.
    Delivered(Delivered),
    /// It is about to save the first state of the run. Once that is there, [`Entry::State`] follows.
    Saving {
        /// Per output, the batch that it resumes with.
        at: BTreeMap<String, u64>,
        /// The path or URL of its file.
        to: String,
    },
    /// It gave out a state.
    State {
        /// Per output, the batch that it resumes with.
        at: BTreeMap<String, u64>,
    },
    /// An output has ended.
    Ended {
        /// Alias of the output.
        output: String,
        /// The number after its last batch.
        batch: u64,
    },
}

/// How a process came to where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// At the beginning.
    Start,
    /// From a saved state: what was delivered from there on has not survived.
    State,
    /// By number: what was delivered before has survived.
    Seek,
}

/// The begin of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// Version of the ledger.
    pub version: u32,
    /// Which start of the run this is, from 1; the ranks of one start share it.
    pub order: u64,
    /// Which rank it is.
    pub rank: u64,
    /// Of how many.
    pub world_size: u64,
    /// How it came here.
    pub by: By,
    /// Per output, the batch that it begins with.
    pub from: BTreeMap<String, u64>,
    /// Per output, batches that are left out: first, and the one after the last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skip: BTreeMap<String, Vec<(u64, u64)>>,
    /// What decides the batches.
    pub plan: PlanOf,
}

/// What decides the batches of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PlanOf {
    /// Rows of a pack by number.
    Rows {
        /// The part of the configuration that says which row stands where, with the seed.
        config: serde_json::Value,
        /// Passes over the rows; none for no end. Each start may have others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epochs: Option<u64>,
        /// What becomes of the last partial batch; each start may have another.
        last_batch: LastBatch,
        /// Hash of the pack and of the selected rows, hexadecimal.
        data: String,
        /// How many rows that are.
        rows: u64,
        /// How they were selected.
        selection: Recipe,
    },
    /// A stream.
    Stream {
        /// The part of the configuration that changes batches.
        config: serde_json::Value,
        /// Root of every random draw.
        seed: u64,
    },
}

impl Begin {
    /// A process of a rank and a world size; `from` are the batches that each output begins with, `skip` those left out.
    pub(in crate::pipeline) fn new(
        (rank, world_size): (u64, u64),
        by: By,
        from: BTreeMap<String, u64>,
        skip: BTreeMap<String, Vec<(u64, u64)>>,
        plan: PlanOf,
    ) -> Self {
        Begin { version: VERSION, order: 0, rank, world_size, by, from, skip, plan }
    }
}

impl PlanOf {
    /// The seed of the run.
    fn seed(&self) -> Option<u64> {
        match self {
            PlanOf::Rows { config, .. } => config.get("seed")?.as_u64(),
            PlanOf::Stream { seed, .. } => Some(*seed),
        }
    }

    /// Whether two processes are of one run: all that decides the batches is the same.
    fn agrees(&self, other: &PlanOf) -> bool {
        match (self, other) {
            (PlanOf::Rows { config: a, data: c, .. }, PlanOf::Rows { config: b, data: d, .. }) => (a, c) == (b, d),
            (PlanOf::Stream { config: a, seed: c }, PlanOf::Stream { config: b, seed: d }) => {
                (compared(a), c) == (compared(b), d)
            }
            (a, b) => a == b,
        }
    }
}

/// Batches that were delivered without a gap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivered {
    /// Alias of the output.
    pub output: String,
    /// The first.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
    /// What was in them, per epoch of a pack; of a stream in all.
    pub digests: Vec<Digest>,
}

/// Frames in no order: how many, the sum of their hashes modulo 2^128, and all hashes exclusive-or.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// The epoch; absent in streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// How many.
    pub frames: u64,
    /// Sum of hashes.
    #[serde(with = "hexadecimal")]
    pub sum: u128,
    /// Exclusive-or of hashes.
    #[serde(with = "hexadecimal")]
    pub xor: u128,
}

impl Digest {
    fn add(&mut self, hash: u128) {
        self.frames += 1;
        self.sum = self.sum.wrapping_add(hash);
        self.xor ^= hash;
    }

    /// Adds the frames of another.
    pub fn merge(&mut self, other: &Digest) {
        self.frames += other.frames;
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
    }
}

/// Digests by epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digests(BTreeMap<Option<u64>, Digest>);

impl Digests {
    fn of(&mut self, epoch: Option<u64>) -> &mut Digest {
        self.0.entry(epoch).or_insert_with(|| Digest { epoch, ..Digest::default() })
    }

    /// Adds rows of a pack: their numbers in the table, in an epoch.
    pub fn rows(&mut self, epoch: u64, rows: impl Iterator<Item = u64>) {
        let digest = self.of(Some(epoch));
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&epoch.to_le_bytes());
        for row in rows {
            bytes[..8].copy_from_slice(&row.to_le_bytes());
            digest.add(xxh3_128(&bytes));
        }
    }

    /// Adds a frame of a stream: the hash of its file's name, its chunk there, its place in that.
    pub fn frame(&mut self, file: u64, chunk: u32, frame: u32) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&file.to_le_bytes());
        bytes[8..12].copy_from_slice(&chunk.to_le_bytes());
        bytes[12..].copy_from_slice(&frame.to_le_bytes());
        self.of(None).add(xxh3_128(&bytes));
    }

    /// Adds all of another.
    pub fn merge<'a>(&mut self, other: impl IntoIterator<Item = &'a Digest>) {
        other.into_iter().for_each(|digest| self.of(digest.epoch).merge(digest));
    }

    /// Epoch by epoch.
    pub fn iter(&self) -> impl Iterator<Item = &Digest> {
        self.0.values()
    }

    /// That of one epoch.
    pub fn epoch(&self, epoch: u64) -> Option<&Digest> {
        self.0.get(&Some(epoch))
    }
}

/// Reads the entries of one ledger, as far as they are whole.
///
/// Errors: as [`sealed::read`]; `InvalidData` for one that does not begin with a process, or of another version.
pub fn read(from: &mut impl BufRead) -> std::io::Result<Vec<Entry>> {
    let (entries, _) = sealed::read::<Entry>(from)?;
    let invalid = |text: String| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    match entries.first() {
        Some(Entry::Begin(_)) | None => {}
        Some(_) => return invalid("line 1: a ledger begins with a process".to_owned()),
    }
    for (line, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Begin(begin) if begin.version != VERSION => {
                return invalid(format!("line {}: version {} is not {VERSION}", line + 1, begin.version));
            }
            Entry::Delivered(Delivered { first, end, .. }) if first >= end => {
                return invalid(format!("line {}: batches {first} to {end} are none", line + 1));
            }
            _ => {}
        }
    }
    Ok(entries)
}

mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{number:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map_err(|_| D::Error::custom(format!("`{text}` is no hexadecimal number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(config: serde_json::Value, seed: u64) -> PlanOf {
        PlanOf::Stream { config, seed }
    }

    fn rows(seed: u64, data: &str, epochs: Option<u64>) -> PlanOf {
        let selection = Recipe { pack: "01".into(), steps: Vec::new() };
        let config = serde_json::json!({"seed": seed});
        PlanOf::Rows { config, epochs, last_batch: LastBatch::Drop, data: data.into(), rows: 5, selection }
    }

    /// The digest of the ledger page.
    #[test]
    fn digests_are_those_of_the_page_in_any_order_and_any_parts() {
        let page = include_str!("../../../../../docs/format/ledger.md");
        let line = page.lines().find(|line| line.contains(r#"{"delivered":"#)).unwrap();
        let Entry::Delivered(expected) = serde_json::from_str(&line[17..]).unwrap() else { panic!("{line}") };
        let mut whole = Digests::default();
        whole.rows(0, 0..5);
        assert_eq!(whole.iter().copied().collect::<Vec<_>>(), expected.digests);
        assert_eq!(serde_json::to_string(&Entry::Delivered(expected)).unwrap(), &line[17..]);
        let (mut first, mut last) = (Digests::default(), Digests::default());
        last.rows(0, [4, 0].into_iter());
        first.rows(0, [2, 1, 3].into_iter());
        first.merge(last.iter());
        assert_eq!(first, whole);
        first.rows(1, 0..1);
        assert_eq!((first.epoch(0), first.epoch(1).unwrap().frames), (whole.epoch(0), 1));
        assert_eq!((first.epoch(2), first.iter().count()), (None, 2));
        assert_ne!(first.epoch(1).unwrap().sum, {
            whole = Digests::default();
            whole.rows(0, 0..1);
            whole.epoch(0).unwrap().sum
        });
    }

    #[test]
    fn a_frame_is_its_file_its_chunk_and_its_place() {
        let of = |frames: &[(u64, u32, u32)]| {
            let mut digests = Digests::default();
            frames.iter().for_each(|(file, chunk, frame)| digests.frame(*file, *chunk, *frame));
            *digests.iter().next().unwrap()
        };
        let hash = xxh3_128(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(of(&[(1, 2, 3)]), Digest { epoch: None, frames: 1, sum: hash, xor: hash });
        assert_eq!(of(&[(1, 2, 3), (1, 2, 3)]), Digest { epoch: None, frames: 2, sum: hash.wrapping_mul(2), xor: 0 });
    }

    #[test]
    fn one_run_has_one_seed_one_config_and_one_pack() {
        assert_eq!((rows(9, "00", None).seed(), stream(serde_json::json!({}), 7).seed()), (Some(9), Some(7)));
        assert!(rows(9, "00", None).agrees(&rows(9, "00", Some(2))), "each start may have other epochs");
        assert!(!rows(9, "00", None).agrees(&rows(8, "00", None)));
        assert!(!rows(9, "00", None).agrees(&rows(9, "01", None)));
        let lanes = |lanes: u64| serde_json::json!({"lanes": lanes});
        assert!(stream(lanes(2), 7).agrees(&stream(lanes(2), 7)));
        assert!(!stream(lanes(2), 7).agrees(&stream(lanes(3), 7)));
        assert!(!stream(lanes(2), 7).agrees(&stream(lanes(2), 8)));
        assert!(!stream(lanes(2), 9).agrees(&rows(9, "00", None)));
    }

    #[test]
    fn what_no_writer_wrote_is_refused_with_its_line() {
        let read_ = |entries: &[&Entry]| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ledger");
            let mut lines = sealed::SealedLines::create(&path).unwrap();
            entries.iter().for_each(|entry| lines.append(entry).unwrap());
            read(&mut &std::fs::read(&path).unwrap()[..]).map_err(|e| e.to_string())
        };
        let first = |version| {
            let begin = Begin::new((0, 1), By::Start, BTreeMap::new(), BTreeMap::new(), rows(9, "00", None));
            Entry::Begin(Box::new(Begin { version, ..begin }))
        };
        let batches = |first, end| Entry::Delivered(Delivered { output: "".into(), first, end, digests: Vec::new() });
        let (begin, one) = (first(VERSION), batches(4, 5));
        assert_eq!(read_(&[]), Ok(Vec::new()));
        assert_eq!(read_(&[&begin, &one, &begin]), Ok(vec![begin.clone(), one.clone(), begin.clone()]));
        assert_eq!(read_(&[&one]), Err("line 1: a ledger begins with a process".into()));
        assert_eq!(read_(&[&begin, &first(2)]), Err("line 2: version 2 is not 1".into()));
        for none in [batches(5, 5), batches(6, 5)] {
            let error = read_(&[&begin, &one, &none]).unwrap_err();
            assert!(error.starts_with("line 3: batches"), "{error}");
        }
    }
}

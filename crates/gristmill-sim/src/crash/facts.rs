//! What a process learns about files -> after every crash its side index says nothing that is not so, knows what whole records of it say,
//! and takes in again what was lost. By docs/format/side-index.md.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use gristmill_engine::facts::Facts;
use gristmill_engine::store::FileStat;
use gristmill_format::container::tar::{Slot, TarIndex};
use gristmill_format::head::Head;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::kept::{Keeps, Left};
use super::process::{Deed, Ended};
use super::tree::{Node, Tree};
use crate::chooser::Chooser;
use crate::less::Less;

/// The kinds of facts that are learnt: tar members, frame counts, weights, heads.
const KINDS: [u8; 4] = [1, 2, 3, 5];
const WEIGHER: u64 = 77;

/// A fact about a version of a file; of kinds that have them, about one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Fact {
    file: u32,
    version: u32,
    kind: u8,
    chunk: u32,
}

/// What a process learns, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learning {
    /// Facts; now and then what was learnt is written.
    steps: Vec<Option<Fact>>,
}

impl Fact {
    /// The file as it is then.
    fn about(self) -> FileStat {
        let name = format!("games/{}.tar", self.file).into();
        let (version, inode) = (u64::from(self.version), u64::from(self.file) + 100);
        FileStat { name, size: 1000 + version, mtime_ns: version as i64, device: 1, inode }
    }

    /// A number that no other fact has.
    fn number(self) -> u32 {
        self.version * 10_000 + self.file * 1000 + self.chunk * 10 + u32::from(self.kind)
    }

    fn head(self) -> Head {
        let number = self.number();
        let len = NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Head { stored: u64::from(number) << 20, len, sums: [number; 7] }
    }

    /// An index of one member for each number up to the version, or none where no tar has these.
    fn tar(self) -> Option<TarIndex> {
        let (mut names, mut slots) = (String::new(), Vec::new());
        for i in 0..=u64::from(self.version) {
            names += &format!("games/{}-{i}.gz", self.number());
            slots.push(Slot { offset: 512 * (i + 1), len: u64::from(self.number()), name_end: names.len() as u32 });
        }
        TarIndex::from_parts(names, slots, Vec::new()).ok()
    }

    fn learn(self, facts: &Facts) {
        let (about, chunk) = (self.about(), self.chunk as usize);
        match self.kind {
            1 => self.tar().iter().for_each(|tar| facts.record_tar(&about, tar)),
            2 => facts.record_frames(&about, chunk, self.number() as usize),
            3 => facts.record_weight(&about, WEIGHER, chunk, self.number() as f32),
            _ => facts.record_head(&about, chunk, self.head()),
        }
    }

    /// Whether it is known; an error where something else is.
    fn known(self, facts: &Facts) -> Result<bool, String> {
        let (about, chunk) = (self.about(), self.chunk as usize);
        let (known, right) = match self.kind {
            1 => facts.tar(&about).map(|tar| (true, Some(tar) == self.tar())),
            2 => facts.frames(&about, chunk).map(|frames| (true, frames == self.number())),
            3 => facts.weight(&about, WEIGHER, chunk).map(|weight| (true, weight == self.number() as f32)),
            _ => facts.head(&about, chunk).map(|head| (true, head == self.head())),
        }
        .unwrap_or((false, true));
        if right { Ok(known) } else { Err(format!("the side index says of {self:?} what is not so")) }
    }
}

impl Learning {
    fn facts(&self) -> impl Iterator<Item = Fact> {
        self.steps.iter().flatten().copied()
    }

    /// The facts of the newest version of each file.
    fn newest(&self) -> BTreeSet<Fact> {
        let newest: BTreeMap<u32, u32> = self.facts().map(|fact| (fact.file, fact.version)).collect();
        self.facts().filter(|fact| newest.get(&fact.file) == Some(&fact.version)).collect()
    }

    fn open(root: &Path) -> Result<Facts, String> {
        Facts::open(&root.join("cache"), &root.join("data")).map_err(|e| format!("the side index is not opened: {e}"))
    }
}

impl Deed for Learning {
    const NAME: &'static str = "learn";

    fn does(&self, root: &Path, _again: bool) -> Result<(), Ended> {
        let facts = Learning::open(root).map_err(Ended::Refused)?;
        for step in &self.steps {
            match step {
                Some(fact) => fact.learn(&facts),
                None => facts.flush(),
            }
        }
        Ok(())
    }
}

/// Facts of the whole records of a side index, as the page says: of each file those that stand after the last record of another version.
fn written(tree: &Tree) -> BTreeSet<Fact> {
    let is_it = |name: &Path| name.extension().is_some_and(|end| end == "facts");
    let found = tree.names.iter().find_map(|(name, node)| match node {
        Node::File(number) if is_it(name) => Some(&*tree.files[*number]),
        _ => None,
    });
    let (mut bytes, mut facts) = (found.unwrap_or_default(), BTreeSet::<Fact>::new());
    while !bytes.is_empty() {
        let Some(payload) = payload(bytes) else {
            bytes = &bytes[1..];
            continue;
        };
        for fact in record(payload).unwrap_or_default() {
            facts.retain(|other| other.file != fact.file || other.version == fact.version);
            facts.insert(fact);
        }
        bytes = &bytes[16 + payload.len()..];
    }
    facts
}

/// The payload of a whole record that the bytes begin with.
fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(16).filter(|(head, _)| head.starts_with(b"GMF1"))?;
    let payload = rest.get(..u32::from_le_bytes(head[4..8].try_into().ok()?) as usize)?;
    (head[8..] == xxh3_64(payload).to_le_bytes()).then_some(payload)
}

/// What a record says; none for what these facts do not have.
fn record(payload: &[u8]) -> Option<Vec<Fact>> {
    let mut rest = payload;
    let mut take = |n: usize| {
        let (field, behind) = rest.split_at_checked(n)?;
        rest = behind;
        Some(field)
    };
    let number = |field: &[u8]| Some(u32::from_le_bytes(field.get(..4)?.try_into().ok()?));
    take(4)?;
    let name = number(take(4)?)?;
    let name = std::str::from_utf8(take(name as usize)?).ok()?;
    let file = name.strip_prefix("games/")?.strip_suffix(".tar")?.parse().ok()?;
    let version = number(take(8)?)?.checked_sub(1000)?;
    take(16)?;
    let kind = take(1)?[0];
    let count = number(take(4)?)?;
    if kind == 3 {
        take(8)?;
    }
    // A tar is one fact; of the others each entry has its chunk in front.
    let size = match kind {
        1 => return Some(vec![Fact { file, version, kind, chunk: 0 }]),
        5 => 16 + 28,
        _ => 8,
    };
    (0..count).map(|_| Some(Fact { file, version, kind, chunk: number(take(size)?)? })).collect()
}

impl Keeps for Learning {
    const PURPOSE: u64 = 0x6661_6374;

    type Known = ();

    fn drawn(c: &mut Chooser) -> Self {
        let (mut versions, mut steps) = ([1; 3], Vec::new());
        for _ in 0..c.within(4, 24) {
            let file = c.below(3) as usize;
            if c.once_in(8) {
                // What was learnt of the version before is written first: of the records of a file the last ones count.
                versions[file] += 1;
                steps.push(None);
            }
            let kind = c.of(&KINDS);
            let chunk = if kind == 1 { 0 } else { c.below(5) as u32 };
            steps.push(Some(Fact { file: file as u32, version: versions[file], kind, chunk }));
            if c.once_in(5) {
                steps.push(None);
            }
        }
        Learning { steps }
    }

    fn prepare(&self, root: &Path) -> Result<(), String> {
        std::fs::create_dir(root.join("data")).map_err(|e| e.to_string())
    }

    fn judge(&self, root: &Path, (): &(), left: &Left<'_>) -> Result<(), String> {
        let (facts, mut known) = (Learning::open(root)?, BTreeSet::new());
        for fact in self.facts() {
            if fact.known(&facts)? {
                known.insert(fact);
            }
        }
        let written = written(left.tree);
        if known != written {
            return Err(format!("the side index knows {known:?}, and its whole records have {written:?}"));
        }
        // Another process learns what was lost.
        drop(facts);
        self.does(root, true).map_err(|e| format!("{e:?}"))?;
        let facts = Learning::open(root)?;
        for fact in self.newest() {
            if !fact.known(&facts)? {
                return Err(format!("{fact:?} was learnt again, and is not known"));
            }
        }
        Ok(())
    }

    fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        (0..self.steps.len()).for_each(|i| less.push(|s| _ = s.steps.remove(i)));
        less.found()
    }
}

//! How data came to be, as manifests and ledgers tell it: jobs in order, each with its sources and with what went into it.
//! Holds no time, no machine and no path of one: the same data, made in the same way, has the same lineage.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::names::MANIFEST;
use crate::store::files::read_text;
use crate::store::is_version;
use crate::store::publish::write_whole;

/// Generations that are written in full; what went into the oldest becomes a number of jobs, since JSON readers bound
/// depth.
const GENERATIONS: usize = 16;

/// Name and version of this program, as it says what it wrote.
pub const WRITER: &str = concat!("gristmill ", env!("CARGO_PKG_VERSION"));

/// Largest manifest that is read.
const MOST_BYTES: u64 = 256 << 20;

/// One job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What was done: `pack`, `append`, `merge`, `convert`, `rescore`, ...; `unrecorded` where no job recorded it.
    pub job: String,
    /// Name and version of the program that did it.
    pub writer: String,
    /// Options, rules and tables that it was done by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Value>,
    /// The games that it took from files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// The lineage of each thing that went into it, where that has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Vec<Step>>,
}

/// Games that a job took from files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Name of the folder, without the folders around it.
    pub name: String,
    /// How many games.
    pub games: u64,
    /// Their bytes as they were stored.
    pub stored_bytes: u64,
    /// XXH3-128, as 32 hexadecimal digits: of each game in order its path below the folder, a zero byte, and the 16 bytes of its
    /// hash in the database.
    pub xxh3_128: String,
}

impl Step {
    /// A job of this program.
    pub fn new(job: &str) -> Self {
        Step { job: job.to_owned(), writer: WRITER.to_owned(), ..Step::default() }
    }

    /// What stands for jobs that are not recorded.
    pub fn unrecorded() -> Self {
        Step { job: "unrecorded".to_owned(), ..Step::default() }
    }

    /// The same with an option; of a path only the last part is kept.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.insert(name.to_owned(), portable(value.into()));
        self
    }

    /// The same with what went into it.
    #[must_use]
    pub fn made_from(mut self, from: Vec<Vec<Step>>) -> Self {
        self.from = from.into_iter().map(|steps| shortened(steps, GENERATIONS - 1)).collect();
        self
    }

    /// How many jobs are recorded, this one included.
    pub fn jobs(&self) -> usize {
        1 + self.from.iter().flatten().map(Step::jobs).sum::<usize>()
    }
}

/// Counts the games that a job took, in order.
#[derive(Default)]
pub struct Taken {
    hash: Xxh3,
    games: u64,
    stored_bytes: u64,
}

impl Taken {
    /// Another game: its path below the folder, the hash that the database has of it, its bytes as they were stored.
    pub fn add(&mut self, path: &str, hash: u128, stored_bytes: u64) {
        self.hash.update(path.as_bytes());
        self.hash.update(&[0]);
        self.hash.update(&hash.to_be_bytes());
        self.games += 1;
        self.stored_bytes = self.stored_bytes.saturating_add(stored_bytes);
    }

    /// All of them, which came from `folder`.
    pub fn finish(self, folder: &Path) -> Sources {
        self.named(name_of(folder))
    }

    /// All of them, which came from a folder of this name.
    pub fn named(self, name: String) -> Sources {
        Sources {
            name,
            games: self.games,
            stored_bytes: self.stored_bytes,
            xxh3_128: format!("{:032x}", self.hash.digest128()),
        }
    }
}

/// The name of a folder, without the folders around it.
pub fn name_of(folder: &Path) -> String {
    let folder = if is_version(folder) { folder.parent().unwrap_or(folder) } else { folder };
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What tells the lineage of a folder without a manifest; hidden, so that no reader takes it for data.
pub const FILE: &str = ".gristmill-lineage.json";

/// A document that tells how it, or what lies beside it, came to be. Tokenizers have a place of their own for what is said of
/// them.
#[derive(Serialize, Deserialize)]
struct Document {
    lineage: Option<Vec<Step>>,
    #[serde(default, skip_serializing)]
    metadata: Option<Box<Document>>,
}

/// The lineage that a file tells: a manifest, `values.json`, a tokenizer; none where it tells none.
pub fn of_file(path: &Path) -> Option<Vec<Step>> {
    let text = read_text(path, MOST_BYTES).ok()??;
    let Document { lineage, metadata } = serde_json::from_str(&text).ok()?;
    lineage.or_else(|| metadata?.lineage)
}

/// The lineage that the manifest in a folder tells, or what stands there in its place; none where there is neither.
pub fn of_folder(folder: &Path) -> Option<Vec<Step>> {
    of_file(&folder.join(MANIFEST)).or_else(|| of_file(&folder.join(FILE)))
}

/// Writes the lineage of a folder that gets no manifest.
///
/// Errors: `Path`.
pub fn write(folder: &Path, lineage: Vec<Step>) -> Result<()> {
    let path = folder.join(FILE);
    let text = serde_json::to_string_pretty(&Document { lineage: Some(lineage), metadata: None });
    let text = text.map_err(|e| Error::path(&path, &e.into()))? + "\n";
    write_whole(&path, &[text.as_bytes()])
}

/// Steps with what went into them, for `generations` generations.
fn shortened(steps: Vec<Step>, generations: usize) -> Vec<Step> {
    if generations == 0 {
        let jobs: usize = steps.iter().map(Step::jobs).sum();
        return vec![Step::unrecorded().with("jobs", jobs)];
    }
    let shorten = |step: Step| {
        let from = step.from.into_iter().map(|steps| shortened(steps, generations - 1)).collect();
        Step { from, ..step }
    };
    steps.into_iter().map(shorten).collect()
}

/// A value without paths of a machine.
fn portable(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('/') => {
            let name = Path::new(&text).file_name().map(|name| name.to_string_lossy().into_owned());
            Value::String(name.unwrap_or_default())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(portable).collect()),
        Value::Object(entries) => entries.into_iter().map(|(name, value)| (name, portable(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_machines_are_left_out_and_the_oldest_generations_are_counted() {
        let step =
            Step::new("rescore").with("tables", serde_json::json!({ "syzygy": ["/data/tables/345"], "rule50": true }));
        assert_eq!(step.options["tables"], serde_json::json!({ "syzygy": ["345"], "rule50": true }));
        let mut steps = vec![step];
        for _ in 0..200 {
            steps = vec![Step::new("merge").made_from(vec![steps.clone(), vec![Step::unrecorded()]])];
        }
        let text = serde_json::to_string(&steps).unwrap();
        let back: Vec<Step> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, steps);
        assert!(text.contains("\"jobs\":"), "{text}");
    }

    #[test]
    fn what_tells_no_lineage_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_folder(folder.path()), None);
        for (text, found) in [
            ("{\"format\": \"x\"}", None),
            ("nonsense", None),
            ("{\"lineage\": 3}", None),
            ("{\"metadata\": {\"lineage\": [{\"job\": \"fit\", \"writer\": \"w\"}]}}", Some("fit")),
            ("{\"lineage\": [{\"job\": \"pack\", \"writer\": \"w\"}], \"rows\": 3}", Some("pack")),
        ] {
            std::fs::write(folder.path().join(MANIFEST), text).unwrap();
            let lineage = of_folder(folder.path());
            assert_eq!(lineage.as_ref().map(|steps| &*steps[0].job), found, "{text}");
        }
        let other = tempfile::tempdir().unwrap();
        write(other.path(), vec![Step::new("split")]).unwrap();
        assert_eq!(of_folder(other.path()), Some(vec![Step::new("split")]));
    }
}

//! Small raw drops in the producer's form, and packs read back whole.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::pack::manifest::Manifest;
use gristmill_engine::pack::metadata::{Extra, Metadata, Run};
use gristmill_engine::pack::shards;
use gristmill_format::container::gzip::compress;
use gristmill_format::g2048::StepRow;
use gristmill_jobs::pack::{PackOptions, Packed, pack};

/// A line with these differences from a plain one: `(part, instead)`.
pub fn line(step: u32, differences: &[(&str, &str)]) -> String {
    let mut line = format!(
        "{{\"seed\":7,\"step_index\":{step},\"max_rank\":3,\"move\":\"left\",\"valuation_type\":\"search\",\
         \"valuation\":0.034000,\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0],\
         \"branch_evs\":{{\"up\":null,\"left\":0.5{step:05},\"right\":0.250000,\"down\":-0.125000}}}}"
    );
    for (part, instead) in differences {
        assert!(line.contains(part), "{part} in {line}");
        line = line.replacen(part, instead, 1);
    }
    line
}

/// The text of a good game.
pub fn text(steps: u32) -> String {
    (0..steps).map(|step| line(step, &[]) + "\n").collect()
}

pub fn sidecar(steps: usize) -> String {
    format!("{{\"seed\": 7, \"num_moves\": {steps}, \"score\": 100, \"max_tile\": 8, \"depth\": 6}}")
}

pub fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes a game whose log holds `text`.
pub fn game(root: &Path, base: &str, text: &str) {
    put(root, &format!("{base}.meta.json"), sidecar(text.lines().count()).as_bytes());
    put(root, &format!("{base}.jsonl.gz"), &compress(1, text.as_bytes()).unwrap());
}

/// A drop of `games` games of different lengths.
pub fn drop_of(games: u32) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    (0..games).for_each(|i| game(root.path(), &format!("game{i:03}"), &text(5 + i % 7)));
    root
}

/// The four games of `gen_macroxue.py --games 4 --mode natural --quirks`.
pub fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/drop2048")
}

pub fn options(input: &Path, output: &Path) -> PackOptions {
    PackOptions { workers: 2, ..PackOptions::new(input, output) }
}

pub fn packed(options: &PackOptions) -> Packed {
    pack(options, &mut |_| {}).unwrap()
}

/// Everything in the folder of a pack, hidden things included.
pub fn files(pack: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(pack)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

/// The same, but the database as what it says: its bytes tell how often it was written.
pub fn content(pack: &Path) -> (Vec<(String, Vec<u8>)>, Vec<Run>, Vec<Extra>) {
    let mut found = files(pack);
    found.retain(|(name, _)| name != "metadata.db");
    let (mut runs, mut extras) = (Vec::new(), Vec::new());
    let metadata = Metadata::open(pack.join("metadata.db")).unwrap();
    metadata
        .runs(&mut |run| {
            runs.push(run);
            Ok(())
        })
        .unwrap();
    metadata
        .extras(&mut |extra| {
            extras.push(extra);
            Ok(())
        })
        .unwrap();
    (found, runs, extras)
}

/// All rows of a pack in 48-byte form.
pub fn rows(pack: &Path) -> Vec<StepRow> {
    let mut rows = Vec::new();
    for shard in shards::list(pack).unwrap() {
        let bytes = fs::read(&shard.path).unwrap();
        let bytes = &bytes[shard.offset as usize..];
        match shard.layout.size() {
            48 => rows.extend(bytes.as_chunks().0.iter().map(StepRow::from_aligned)),
            _ => rows.extend(bytes.as_chunks().0.iter().map(StepRow::from_packed)),
        }
        assert_eq!(bytes.len() as u64, shard.rows * shard.layout.size() as u64);
    }
    rows
}

pub fn manifest(pack: &Path) -> Manifest {
    Manifest::read(pack).unwrap().unwrap()
}

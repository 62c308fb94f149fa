//! The journal of a run (docs/format/journal.md) -> the files of its first scan and what was taken in later, as the oracle takes them.
//! Checks every line's checksum by the page.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{Found, Run};
use crate::disk::Disk;
use crate::oracle::{self, Directory, File, Later, named};
use crate::scenario::Given;

impl Run<'_> {
    /// The directories as the oracle takes them: by the journal where the world watches.
    pub(super) fn directories(&self) -> Found<Vec<Directory>> {
        let s = self.scenario;
        let journal = self.folder.as_ref().filter(|_| s.watch).map(|folder| folder.join(s.of_rank("journal")));
        let of = |(number, (given, disk)): (usize, (&[Given], &Disk))| match &journal {
            Some(journal) => read(journal, &named("load", number), disk),
            None => Ok(Directory { first: files(given), later: Vec::new() }),
        };
        [&s.files[..], &s.second[..]].into_iter().zip(self.disks()).enumerate().map(of).collect()
    }
}

/// Files as the oracle takes them.
fn files(given: &[Given]) -> Vec<File> {
    given.iter().map(|file| File::of(&file.name, &file.bytes())).collect()
}

/// The directory of a loader: the files of its first scan by id, and those that came later.
fn read(path: &Path, loader: &str, disk: &Disk) -> Result<Directory, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(format!("the journal: {e}")),
    };
    let (mut first, mut later, mut start) = (Vec::new(), Vec::new(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let json = text.get(17..).ok_or("a line of the journal is short")?;
        let sum = format!("{:016x}", xxh3_64(&[&bytes[..start], json].concat()));
        if text[..16] != *sum.as_bytes() {
            return Err(format!("line at byte {start} of the journal has another checksum than the page says"));
        }
        start += line.len();
        let event: Value = serde_json::from_slice(json).map_err(|e| format!("the journal: {e}"))?;
        let of = |name: &str| event.get(name).filter(|event| event["loader"] == loader);
        let files = |name: &str| of(name).and_then(|event| event["files"].as_array());
        if let Some(files) = files("initial") {
            first.clone_from(files);
        }
        // A file that had left before it could be taken in gives nothing, and keeps its id.
        for id in files("gone").into_iter().flatten() {
            let gone = first.iter_mut().find(|file| file["id"] == *id);
            gone.ok_or("a file that is gone was never found")?["gone"] = true.into();
        }
        // What was first read of a file: others may have its name, size and time.
        for read in files("read").into_iter().flatten() {
            let of_later = later.iter_mut().map(|admit: &mut Value| &mut admit["file"]);
            let of_id = first.iter_mut().chain(of_later).filter(|file| file["id"] == read[0]);
            of_id.for_each(|file| file["bytes"] = read[1].clone());
        }
        later.extend(of("admit").cloned());
    }
    let first = first.iter().map(|one| file(one, disk)).collect::<Result<_, _>>()?;
    let arrival = |admit: &Value| {
        let number = |field: &str| admit[field].as_u64();
        Ok(Later {
            lane: number("lane").unwrap_or(0),
            at: number("at").ok_or("an arrival without a draw")?,
            old: number("old"),
            file: file(&admit["file"], disk)?,
        })
    };
    let later = later.iter().map(arrival).collect::<Result<_, String>>()?;
    Ok(Directory { first, later })
}

fn file(of: &Value, disk: &Disk) -> Result<File, String> {
    let name = of["name"].as_str().ok_or("a file without a name")?;
    let mtime = of["mtime"].as_i64().ok_or("a file without a time")?;
    let id = of["id"].as_u64().ok_or("a file without an id")?;
    if of["gone"] == true {
        return Ok(File { id, name: name.to_owned(), chunks: Vec::new() });
    }
    let versions = disk.versions(name, mtime);
    let read = of["bytes"].as_str();
    let is_it = |bytes: &&Arc<[u8]>| read.is_none_or(|read| format!("{:016x}", oracle::digest(bytes)) == read);
    // A file of which nothing was read before gave no row: one that replaced it may have its id, and is what was read.
    let later = read.map_or_else(Vec::new, |_| disk.versions_after(name, mtime));
    // Another that replaced it with its time may have another size.
    let of_size = versions.iter().filter(|bytes| of["size"] == bytes.len());
    let bytes = of_size.chain(&versions).chain(&later).find(is_it);
    let bytes = bytes.ok_or_else(|| format!("there was no {name} of {mtime} with {read:?}"))?;
    Ok(File { id, ..File::of(name, bytes) })
}

//! The journal of a run (docs/format/journal.md) -> the files of its first scan and what was taken in later, as the oracle takes them.
//! Checks every line's checksum by the page.

use std::path::Path;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::disk::Disk;
use crate::oracle::{File, Later};

/// The files of the first scan by id, and those that came later.
pub(super) fn read(path: &Path, disk: &Disk) -> Result<(Vec<File>, Vec<Later>), String> {
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
        if let Some(files) = event["initial"]["files"].as_array() {
            first = files.iter().map(|one| file(one, disk)).collect::<Result<_, _>>()?;
        }
        if let Some(admit) = event.get("admit") {
            let number = |field: &str| admit[field].as_u64();
            later.push(Later {
                lane: number("lane").unwrap_or(0),
                at: number("at").ok_or("an arrival without a draw")?,
                id: number("id").ok_or("an arrival without an id")?,
                old: number("old"),
                file: file(&admit["file"], disk)?,
            });
        }
    }
    Ok((first, later))
}

fn file(of: &Value, disk: &Disk) -> Result<File, String> {
    let name = of["name"].as_str().ok_or("a file without a name")?;
    let mtime = of["mtime"].as_i64().ok_or("a file without a time")?;
    let bytes = disk.version(name, mtime).ok_or_else(|| format!("there was no {name} of {mtime}"))?;
    Ok(File::of(name, &bytes))
}

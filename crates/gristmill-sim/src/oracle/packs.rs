//! Whether the files of a folder are a whole pack: by docs/format/pack.md and chunk-pack.md alone.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Compares the files of a pack with its manifest, and rows with their checksums.
///
/// Errors: what is not as the pages say.
pub fn check(shown: &BTreeMap<&Path, Option<&[u8]>>) -> Result<(), String> {
    let by_name: BTreeMap<&str, &[u8]> =
        shown.iter().filter_map(|(name, bytes)| Some((name.file_name()?.to_str()?, (*bytes)?))).collect();
    let file = |name: &str| by_name.get(name).copied().ok_or_else(|| format!("there is no {name}"));
    let manifest: Value = serde_json::from_slice(file("manifest.json")?).map_err(|e| format!("manifest.json: {e}"))?;
    file("metadata.db")?;
    let files = manifest["files"].as_array().ok_or("a manifest without files")?;
    let sum = |field: &str| files.iter().filter_map(|file| file[field].as_u64()).sum::<u64>();
    let (rows, row) = match manifest["layout"].as_str() {
        Some("packed46") => (true, 46),
        Some(_) => (true, 48),
        None => (false, 0),
    };
    let whole = match rows {
        true => manifest["rows"] == sum("rows"),
        false => manifest["frames"] == sum("frames") && manifest["games"] == sum("games"),
    };
    if !whole {
        return Err("the manifest has other sums than its files".to_owned());
    }
    let listed = |name: &str| files.iter().any(|file| file["name"] == name);
    let data = |name: &str| [".npy", ".chunks", "-wal", "-shm"].iter().any(|ending| name.ends_with(ending));
    if let Some(name) = by_name.keys().find(|name| data(name) && !listed(name)) {
        return Err(format!("{name} is in no list"));
    }
    for said in files {
        let name = said["name"].as_str().ok_or("a file without a name")?;
        let bytes = file(name)?;
        if rows {
            let n = said["rows"].as_u64().unwrap_or(0) as usize;
            let (header, data) = bytes.split_at_checked(384).ok_or(format!("{name} has no rows"))?;
            if data.len() != n * row {
                return Err(format!("{name} has other rows"));
            }
            if said["xxh3_128"] != format!("{:032x}", xxh3_128(data)) {
                return Err(format!("{name} has another hash"));
            }
            if *file(&format!("{name}.xxh3"))? != checksums(header, data, row) {
                return Err(format!("{name}.xxh3 is not of its rows"));
            }
        }
    }
    Ok(())
}

/// The checksums of rows (pack.md).
fn checksums(header: &[u8], data: &[u8], row: usize) -> Vec<u8> {
    let mut out = b"GMXXH301".to_vec();
    out.extend(256u32.to_le_bytes());
    out.extend((row as u32).to_le_bytes());
    out.extend(((data.len() / row) as u64).to_le_bytes());
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(xxh3_64(header).to_le_bytes());
    data.chunks(256 * row).for_each(|block| out.extend(xxh3_64(block).to_le_bytes()));
    out
}

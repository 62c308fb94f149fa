//! `values.npy` beside the rows of a pack -> rewards and returns by number of the row; `values.json` -> by which numbers
//! they were made. Shards, rows and values must agree.

use std::io::ErrorKind;
use std::path::Path;

use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::value::{VALUE_BYTES, ValueOptions, ValueRow, value_layout};
use gristmill_format::layout::DType;
use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::lineage::{Step, WRITER};
use gristmill_runtime::store::files::read_text;
use gristmill_runtime::store::{Residence, open_file};
use gristmill_runtime::table::{FileTable, FrameTable, Part};
use serde::{Deserialize, Serialize};

use super::array::ArrayKind;
use super::manifest::RowFile;
use super::runs::Number;
use super::shards::Shard;
use crate::row_files::{VALUES, VALUES_MADE, beside, is_values, listed};

/// What `format` says there.
const FORMAT: &str = "gristmill.values.2048";

/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;

/// Longest `values.json` that is read.
const MOST_BYTES: u64 = 1 << 26;

/// Names of the files with values in a folder and of what says how they were made, whether there are rows for them or
/// not; none where the folder does not exist.
///
/// Errors: `Path` when the folder cannot be listed.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    match listed(folder, |name| is_values(name) || name == VALUES_MADE) {
        Err(gristmill_runtime::Error::Path { kind: ErrorKind::NotFound, .. }) => Ok(Vec::new()),
        names => names,
    }
}

/// What files of values are.
pub fn kind() -> ArrayKind {
    ArrayKind { dtype: DType::Record((**value_layout()).clone()), row_shape: Vec::new(), spelling: Spelling::NumPy }
}

/// `values.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    format: String,
    version: u32,
    writer: String,
    /// Discount of the next reward.
    pub gamma: f64,
    /// Factor of `reward_scaled`.
    pub reward_scale: f64,
    /// Share of the return itself in `return_scaled`.
    pub epsilon: f64,
    /// Rows in all files.
    pub rows: u64,
    /// The files, in order.
    pub files: Vec<RowFile>,
    /// How the values came to be; empty where an earlier version wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Step>,
}

impl Made {
    /// What says that these files were made by `options`.
    pub fn new(options: &ValueOptions, files: Vec<RowFile>, lineage: Vec<Step>) -> Self {
        let ValueOptions { gamma, reward_scale, epsilon } = *options;
        let (format, writer) = (FORMAT.to_owned(), WRITER.to_owned());
        let rows = files.iter().map(|file| file.rows).sum();
        Made { format, version: VERSION, writer, gamma, reward_scale, epsilon, rows, files, lineage }
    }

    /// The numbers by which the values were made.
    pub fn options(&self) -> ValueOptions {
        let Made { gamma, reward_scale, epsilon, .. } = *self;
        ValueOptions { gamma, reward_scale, epsilon }
    }

    /// The text: two spaces of indent, a final line feed.
    ///
    /// Errors: none that data could cause.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::new(Kind::Corrupt, e.to_string()))?;
        Ok(text + "\n")
    }

    /// Reads `values.json` of a folder; `None` where there is none, as beside values of other programs.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt`, `UnknownVersion` for a newer one.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(VALUES_MADE);
        let place = |e: Error| e.in_source(path.display().to_string());
        let Some(text) = read_text(&path, MOST_BYTES)? else { return Ok(None) };
        let made: Made = serde_json::from_str(&text).map_err(|e| place(Error::new(Kind::Corrupt, e.to_string())))?;
        let refuse = |kind, detail: String| Err(place(Error::new(kind, detail)).into());
        if made.format != FORMAT {
            return refuse(Kind::Corrupt, format!("this is `{}`, expected `{FORMAT}`", made.format));
        }
        if made.version != VERSION {
            return refuse(Kind::UnknownVersion, format!("version {}; this program knows {VERSION}", made.version));
        }
        if let Err((name, why)) = made.options().check() {
            return refuse(Kind::OutOfRange, format!("{name}: {why}"));
        }
        Ok(Some(made))
    }
}

/// The values of the rows of `shards`, one file for each; none where there are no such files. It reads the headers
/// of the files only.
///
/// Errors, with the file: `Missing` for a shard that has none while there are some, `WrongSize` for another number of values
/// than rows, `Unsupported` for an array of other records and for values of a shard that does not exist, and what
/// [`Header::read`] says.
pub fn list(folder: &Path, shards: &[Shard]) -> Result<Option<Vec<Part>>> {
    let mut left = names(folder)?;
    left.retain(|name| is_values(name));
    if left.is_empty() {
        return Ok(None);
    }
    let mut found = Vec::new();
    for shard in shards {
        let name = beside(&shard.path.file_name().unwrap_or_default().to_string_lossy(), VALUES);
        let path = folder.join(&name);
        let place = |kind, detail: String| Error::new(kind, detail).in_source(path.display().to_string());
        let Some(at) = left.iter().position(|there| *there == name) else {
            let detail = format!("no such file, while there are values of other shards; {REMEDY}");
            return Err(place(Kind::Missing, detail).into());
        };
        left.swap_remove(at);
        let header = open_file(&path).and_then(|file| Header::read(&*file));
        let header = header.map_err(|e| e.in_source(path.display().to_string()))?;
        let (DType::Record(layout), &[rows]) = (header.dtype(), header.shape()) else {
            let detail = format!("expected one axis of records, found shape {:?}", header.shape());
            return Err(place(Kind::Unsupported, detail).into());
        };
        if layout != &**value_layout() {
            let detail = format!("records of {}, expected {}", layout.to_descr(), value_layout().to_descr());
            return Err(place(Kind::Unsupported, detail).into());
        }
        if rows != shard.rows {
            let detail = format!("{rows} values for the {} rows of {}; {REMEDY}", shard.rows, shard.path.display());
            return Err(place(Kind::WrongSize, detail).into());
        }
        found.push(Part { path, offset: header.data_offset(), rows });
    }
    if let Some(more) = left.first() {
        let detail = format!("values without rows: there is no such shard of the pack; {REMEDY}");
        return Err(Error::new(Kind::Unsupported, detail).in_source(folder.join(more).display().to_string()).into());
    }
    Ok(Some(found))
}

const REMEDY: &str = "`gristmill values PACK --overwrite` makes them again";

/// The values as a table, and held against the rows: the first, the second and the last of each file are of the same run
/// and step, and there are `said` of them, as the database has it.
///
/// Errors: as [`FileTable::open`]; `WrongSize` for another number, `Corrupt` for other rows, with file and row.
pub fn table(parts: Vec<Part>, residence: Residence, rows: &dyn FrameTable, said: u64) -> Result<FileTable> {
    let place = |part: Option<&Part>, e: Error| match part {
        Some(part) => e.in_source(part.path.display().to_string()),
        None => e,
    };
    let values: u64 = parts.iter().map(|part| part.rows).sum();
    if values != said || values != rows.len() {
        let detail = format!(
            "{values} values for {} rows, of which `metadata.db` knows {said}; `gristmill verify` lists what is wrong",
            rows.len()
        );
        return Err(place(parts.first(), Error::new(Kind::WrongSize, detail)).into());
    }
    let table = FileTable::open((**value_layout()).clone(), parts.clone(), residence)?;
    let (run, step) = (Number::new(rows.layout(), "run_id")?, Number::new(rows.layout(), "step_index")?);
    let (mut value, mut row, mut first) = ([0; VALUE_BYTES], vec![0; rows.layout().size()], 0);
    for part in &parts {
        let mut looked: Vec<u64> = [0, 1, part.rows.saturating_sub(1)].into_iter().filter(|i| *i < part.rows).collect();
        looked.dedup();
        for i in looked {
            table.gather(&[first + i], &mut value)?;
            rows.gather(&[first + i], &mut row)?;
            let ValueRow { run_id, step_index, .. } = ValueRow::from_bytes(&value);
            let (of_run, of_step) = (run.of(&row), step.of(&row));
            if (u64::from(run_id), u64::from(step_index)) != (of_run, of_step) {
                let detail = format!(
                    "value {i} is of step {step_index} of run {run_id}, its row of step {of_step} of run {of_run}; \
                     {REMEDY}"
                );
                let e = Error::new(Kind::Corrupt, detail).at_byte(part.offset + i * VALUE_BYTES as u64);
                return Err(place(Some(part), e).into());
            }
        }
        first += part.rows;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_how_values_were_made_comes_back_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Made::read(folder.path()).unwrap(), None);
        let file = RowFile { name: "values.npy".into(), rows: 3, xxh3_128: "00".into() };
        let made =
            Made::new(&ValueOptions { gamma: 0.5, ..ValueOptions::default() }, vec![file], vec![Step::new("values")]);
        let text = made.to_json().unwrap();
        let put = |text: &str| std::fs::write(folder.path().join(VALUES_MADE), text).unwrap();
        put(&text);
        assert_eq!(Made::read(folder.path()).unwrap(), Some(made));
        for (part, instead) in
            [("\"version\": 1", "\"version\": 2"), ("0.5", "7.5"), ("values.2048", "other"), ("{", "[")]
        {
            put(&text.replacen(part, instead, 1));
            let e = Made::read(folder.path()).unwrap_err().to_string();
            assert!(e.contains("values.json"), "{e}");
        }
    }
}

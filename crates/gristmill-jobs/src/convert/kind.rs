//! What lies at a path, and the name of the output -> which kind of data a conversion is of.
//! Reads names and heads of files, and no data.

use std::path::Path;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::demos::shard_ending;
use gristmill_engine::error::Result;
use gristmill_engine::pack::METADATA;

use crate::demos::is_demonstrations;
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::newest;

/// A kind of data that can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Games of chess, loose, in tars or packed.
    Games,
    /// Rows of 2048: a folder with a database and no chunk files.
    Rows,
    /// Demonstrations.
    Demonstrations,
}

impl Kind {
    /// The kind of what lies at `input`; a name of the output that only demonstrations get decides, too.
    ///
    /// Errors: `Path` for what is not there.
    pub fn of(input: &Path, output: &Path) -> Result<Self> {
        let input = &*newest(input)?;
        if is_file(&input.join(METADATA))? && !is_pack(input)? {
            return Ok(Kind::Rows);
        }
        let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let named = name.ends_with(".npz") || shard_ending(&name).is_some();
        Ok(if named || is_demonstrations(input)? { Kind::Demonstrations } else { Kind::Games })
    }
}

//! Rows of `metadata.db` for the games in one file of a pack -> whether their records agree.
//! Whether there is a row for each game is checked elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::{Game, Games};
use gristmill_engine::kinds;
use gristmill_engine::pack::METADATA;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use xxhash_rust::xxh3::xxh3_128;

use super::{Fault, Verification};
use crate::work::Facts;
use crate::work::Opened;

/// The rows of the games in one file, by number of the chunk.
pub(super) struct Told {
    database: PathBuf,
    rows: BTreeMap<u64, Game>,
    columns: Vec<String>,
    facts: Facts,
}

impl Told {
    /// Reads the rows of some chunks of a file in a pack whose columns follow from its records. `None` for any other file, and where the
    /// database cannot be read.
    pub(super) fn of(file: &Opened, mut chunks: impl Iterator<Item = usize>) -> Option<Self> {
        let start = chunks.next()?;
        let end = chunks.max().unwrap_or(start) + 1;
        let facts = file.kind.facts()?;
        let codec =
            kinds::codec_named(file.kind.name()).filter(|codec| codec.format() == file.source.describe().format)?;
        let path = Path::new(&file.path);
        let folder = path.parent()?;
        let files = Manifest::read(folder).ok()?.files;
        let number = files.iter().position(|one| path.file_name().is_some_and(|name| *name == *one.name))?;
        let first = files[..number].iter().map(|one| one.games).sum::<u64>();
        let database = folder.join(METADATA);
        let (mut rows, mut columns) = (BTreeMap::new(), Vec::new());
        let read = Games::open(&database).and_then(|games| {
            columns = games.columns()?;
            // What the packed file said beside its records, these do not say again.
            if codec.beside() > 0 {
                columns.truncate(codec.columns().len() - codec.beside());
            }
            let games_of_file = files[number].games;
            games.of(first + games_of_file.min(start as u64)..first + games_of_file.min(end as u64), &mut |game| {
                if game.file == number as u64 {
                    rows.insert(game.chunk, game);
                }
                Ok(())
            })
        });
        read.ok().map(|()| Told { database, rows, columns, facts })
    }

    /// Compares the row of game `i` with its records.
    pub(super) fn check(&self, i: usize, chunk: &Chunk, keep: usize, found: &mut Verification) {
        let Some(row) = self.rows.get(&(i as u64)) else { return };
        // The rules report records without these facts.
        let Ok(actual) = (self.facts)(chunk) else { return };
        let columns = self.columns.iter().map(String::as_str);
        let differing = columns.zip(row.facts.iter().zip(&actual)).filter(|(_, (stored, actual))| stored != actual);
        let mut names: Vec<&str> = differing.map(|(name, _)| name).collect();
        if row.content != xxh3_128(chunk.records()) {
            names.push("content_xxh3");
        }
        if !names.is_empty() {
            let detail =
                format!("the records of game {} ({}) differ from its row in {}", row.id, row.source, names.join(", "));
            let e = Error::new(Kind::Corrupt, detail).in_source(self.database.display().to_string());
            found.add(keep, Fault::new(&e));
        }
    }
}

//! Rows of a game that is being played -> a game in a file, by the recorder that Python has. Refusals have a number and words.
//! Knows no pointer, and keeps no more of a game than files hold.

use std::path::Path;

use gristmill_format::records::Schema;
use gristmill_format::records::log::MOST_GAME;
use gristmill_packs::recording::{FILE_BYTES, GameWriter};
use gristmill_runtime::Error;

/// Why a call failed: its return code, and the text of `gristmill_error`.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) says: String,
}

/// The numbers of `gristmill.h`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Code {
    Argument = 1,
    Format = 2,
    System = 3,
    Bug = 4,
}

/// What calls become.
pub(crate) type Done<T = ()> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn argument(says: impl Into<String>) -> Self {
        Refusal { code: Code::Argument, says: says.into() }
    }
}

impl From<Error> for Refusal {
    fn from(e: Error) -> Self {
        let code = match e {
            Error::Path { .. } => Code::System,
            Error::Format(_) => Code::Format,
            _ => Code::Argument,
        };
        Refusal { code, says: e.to_string() }
    }
}

/// A writer and the game that is being played.
#[derive(Debug)]
pub(crate) struct Playing {
    writer: GameWriter,
    row_bytes: usize,
    rows: Vec<u8>,
    /// Games that were written, by which errors name the one that is being played.
    games: u64,
}

impl Playing {
    pub(crate) fn open(folder: &Path, schema: &str, row_bytes: usize, file_bytes: u64) -> Done<Self> {
        let schema = Schema::parse(schema).map_err(|e| Refusal::argument(format!("schema: {e}")))?;
        let size = schema.layout().size();
        if size != row_bytes {
            let says = format!("row_bytes: {row_bytes}; the layout has {size}: is the struct of a row packed?");
            return Err(Refusal::argument(says));
        }
        let writer = GameWriter::open(folder, schema, if file_bytes == 0 { FILE_BYTES } else { file_bytes })?;
        Ok(Playing { writer, row_bytes, rows: Vec::new(), games: 0 })
    }

    pub(crate) fn recovered(&self) -> u64 {
        self.writer.adopted()
    }

    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// That this many bytes may be added.
    pub(crate) fn check_room(&self, bytes: Option<usize>) -> Done {
        let fits = bytes.and_then(|bytes| bytes.checked_add(self.rows.len())).is_some_and(|all| all <= MOST_GAME);
        fits.then_some(()).ok_or_else(|| {
            let says = format!("game {}: rows beyond the bound of {MOST_GAME} bytes", self.games);
            Refusal { code: Code::Format, says }
        })
    }

    pub(crate) fn append(&mut self, rows: &[u8]) -> Done {
        self.check_room(Some(rows.len()))?;
        let more = self.rows.try_reserve(rows.len());
        let says = || format!("game {}: no memory for {} bytes of rows more", self.games, rows.len());
        more.map_err(|_| Refusal { code: Code::System, says: says() })?;
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    pub(crate) fn end_game(&mut self, facts: &str) -> Done {
        let named = |mut refusal: Refusal| {
            refusal.says = format!("game {}: {}", self.games, refusal.says);
            refusal
        };
        self.writer.write(&self.rows, facts).map_err(|e| named(e.into()))?;
        self.games += 1;
        self.drop_game();
        Ok(())
    }

    pub(crate) fn drop_game(&mut self) {
        self.rows.clear();
    }

    pub(crate) fn flush(&mut self) -> Done {
        Ok(self.writer.flush()?)
    }

    pub(crate) fn close(self) -> Done {
        self.writer.finish()?;
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = self.rows.len() / self.row_bytes;
        Err(Refusal::argument(format!("game {}: {rows} rows of a game that was not ended are in no file", self.games)))
    }
}

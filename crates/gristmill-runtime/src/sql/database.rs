//! A path -> a SQLite database, to be written or read; one that was written -> its one file, whole; its errors -> ours.
//! Knows no table of a pack. Links are not followed to be written.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gristmill_format::{Error, Kind};
use rusqlite::hooks::AuthContext;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use gristmill_format::source::{ReadAt, Span, read_span};

use super::asking::{allowed, bound, given_up};
use crate::error::Result;
use crate::store::files;
use crate::store::{here, open_file};

/// Longest database that is read whole: one elsewhere than on this machine.
const MOST_IN_MEMORY: u64 = 8 << 30;

/// A database to write, made by `schema` where there is none.
///
/// Errors: `Format` with the path when it is no database or cannot be written, or is a link.
pub fn open_to_write(path: &Path, schema: &str) -> Result<Connection> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        let detail = "a link, which is not followed to be written; put the database itself here";
        return Err(Error::new(Kind::Unsupported, detail).in_source(path.display().to_string()).into());
    }
    let open = || {
        let db = Connection::open(path)?;
        db.pragma_update(None, "page_size", 4096)?;
        Ok(db)
    };
    let db = open().map_err(|e| refusal(path, &e))?;
    log_ahead(&db, path)?;
    let set = || {
        db.pragma_update(None, "synchronous", "NORMAL")?;
        db.pragma_update(None, "trusted_schema", false)?;
        db.execute_batch(schema)
    };
    set().map_err(|e| refusal(path, &e))?;
    tables_only(&db, path)?;
    Ok(db)
}

/// Closes a database that was written, with everything in its one file.
///
/// Errors: `Format` with the path, also where the log could not be folded in: without it the file is not whole.
pub fn close(db: Connection, path: &Path) -> Result<()> {
    let refuse = |e: &rusqlite::Error| refusal(path, e);
    db.flush_prepared_statement_cache();
    let folded = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    let read_by_others = folded.map_err(|e| refuse(&e))? != 0;
    db.close().map_err(|(_, e)| refuse(&e))?;
    match logs(path).find(|log| !read_by_others && log.exists()) {
        None => Ok(()),
        Some(log) => Err(unfinished(&log)),
    }
}

/// What SQLite may leave beside a database that it could not finish.
fn logs(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["-journal", "-wal", "-shm"].into_iter().map(move |ending| {
        let mut log = OsString::from(path);
        log.push(ending);
        PathBuf::from(log)
    })
}

fn unfinished(log: &Path) -> crate::Error {
    let detail = "SQLite left its log beside the database, which is not whole without it";
    Error::new(Kind::Io(ErrorKind::Other), detail).in_source(log.display().to_string()).into()
}

/// Opens a database for reading only. Nothing is written beside it: a file without a write-ahead log is taken as finished
/// and opened as immutable. One that is elsewhere than on this machine is read whole, and must be finished.
///
/// Errors: `Format` with the path: `Io`, `Corrupt` for what is no database, `Unsupported` for one elsewhere with a log.
pub fn open_connection(path: &Path) -> Result<Connection> {
    // SQLite says no more than "unable to open" of a file that is not there.
    let file = open_file(path)?;
    let mut log = OsString::from(path);
    log.push("-wal");
    let logged = files::len(Path::new(&log))?.is_some_and(|len| len > 0);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let own = here(path);
    let whole = match own {
        Some(_) => None,
        None if logged => {
            let detail = "it has a write-ahead log beside it: finish it where it is written, and copy it again";
            return Err(Error::new(Kind::Unsupported, detail).in_source(path.display().to_string()).into());
        }
        None => Some(in_memory(&*file).map_err(|e| e.in_source(path.display().to_string()))?),
    };
    let own = own.as_deref().unwrap_or(path);
    let open = || {
        let mut db = match whole {
            Some(bytes) => {
                let mut db = Connection::open_in_memory()?;
                db.deserialize_read_exact("main", bytes.as_slice(), bytes.len(), true)?;
                db
            }
            None if logged => Connection::open_with_flags(own, flags)?,
            None => Connection::open_with_flags(immutable(own), flags)?,
        };
        bound(&mut db, None)?;
        named(&db)?;
        db.authorizer(Some(|context: AuthContext<'_>| allowed(&context)))?;
        db.pragma_update(None, "trusted_schema", false)?;
        db.pragma_update(None, "query_only", true)?;
        Ok(db)
    };
    let db = open().map_err(|e| refusal(path, &e))?;
    tables_only(&db, path)?;
    Ok(db)
}

/// Refuses a database whose tables or columns have names that are no text: the hook that allows statements panics on them.
fn named(db: &Connection) -> rusqlite::Result<()> {
    let mut names = db.prepare("SELECT name, sql FROM sqlite_master")?;
    let mut rows = names.query([])?;
    while let Some(row) = rows.next()? {
        for i in 0..2 {
            row.get::<_, Option<String>>(i)?;
        }
    }
    Ok(())
}

/// All bytes of a database, which says in them that it has no log.
fn in_memory(file: &dyn ReadAt) -> gristmill_format::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_span(file, Span::WHOLE, MOST_IN_MEMORY, &mut bytes)?;
    // A database that was closed well, and still has the mark of one with a log, could not be read from memory.
    if bytes.get(18..20) == Some(&[2, 2]) {
        bytes[18..20].fill(1);
    }
    Ok(bytes)
}

/// Refuses a database in which SQL of others runs where a table of a pack is read or written: it may have no end.
fn tables_only(db: &Connection, path: &Path) -> Result<()> {
    let foreign = "SELECT type, name FROM sqlite_master WHERE type = 'trigger' OR type = 'view' AND lower(name) IN \
                   ('runs', 'games', 'session', 'extras', 'progress')";
    let found = db.query_row(foreign, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).optional();
    let Some((kind, name)) = found.map_err(|e| refusal(path, &e))? else { return Ok(()) };
    let detail = format!("a {kind} `{name}`; a pack has tables alone: make it a table, or take the {kind} away");
    Err(Error::new(Kind::Unsupported, detail).in_source(path.display().to_string()).into())
}

/// Closes a database and writes it again from what it holds, so that no byte tells in how many steps it was written. One file
/// remains. Where that is killed, it may be done again.
///
/// Errors: `Format` with the path, `Path`.
pub fn close_anew(db: Connection, path: &Path) -> Result<()> {
    let beside = path.with_extension("fresh");
    let refuse = |e: std::io::Error| crate::Error::path(&beside, &e);
    for old in logs(&beside).chain([beside.clone()]) {
        match std::fs::remove_file(&old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(crate::Error::path(&old, &e)),
            _ => {}
        }
    }
    // Names of files are bytes, whatever SQLite takes them for.
    let written = db.execute("VACUUM INTO CAST(?1 AS TEXT)", [beside.as_os_str().as_bytes()]);
    written.map_err(|e| refusal(path, &e))?;
    // SQLite would take a log of the old database for a log of the new one.
    close(db, path)?;
    if let Some(log) = logs(path).find(|log| log.exists()) {
        return Err(unfinished(&log));
    }
    let fresh = Connection::open(&beside).map_err(|e| refusal(&beside, &e))?;
    // Each rewriting counts in the version of the schema, and a job that was killed after this one rewrites once more.
    fresh.pragma_update(None, "schema_version", 1).map_err(|e| refusal(&beside, &e))?;
    log_ahead(&fresh, &beside)?;
    fresh.close().map_err(|(_, e)| refusal(&beside, &e))?;
    if let Some(log) = logs(&beside).find(|log| log.exists()) {
        return Err(unfinished(&log));
    }
    std::fs::File::open(&beside).and_then(|file| file.sync_all()).map_err(refuse)?;
    std::fs::rename(&beside, path).map_err(refuse)
}

/// Has the database keep a log of what is written ahead of it.
///
/// Errors: `Format` with the path where SQLite could not write that into the file.
fn log_ahead(db: &Connection, path: &Path) -> Result<()> {
    let asked = || {
        let mut statement = db.prepare("PRAGMA journal_mode = WAL")?;
        let mut rows = statement.query([])?;
        let mode = rows.next()?.map(|row| row.get::<_, String>(0)).transpose()?;
        // SQLite commits the mode after the row that names it: an error of the commit comes in place of a second row.
        rows.next()?;
        Ok(mode)
    };
    // If SQLite cannot begin to write the mode, it names the mode that stays.
    if asked().map_err(|e| refusal(path, &e))?.as_deref() == Some("wal") {
        return Ok(());
    }
    let detail = "SQLite could not write the mode of its journal; see whether the disk is full or fails";
    Err(Error::new(Kind::Io(ErrorKind::Other), detail).in_source(path.display().to_string()).into())
}

/// Whether there is a table of this name.
pub fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let found = db.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = ?1 AND type = 'table'");
    found?.query_row([name], |_| Ok(())).optional().map(|found| found.is_some())
}

/// Names of the columns of a table.
pub fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}

/// The URI of a file that never changes: SQLite then makes no files beside it and takes no locks.
fn immutable(path: &Path) -> String {
    use std::fmt::Write;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri + "?immutable=1"
}

/// What SQLite says of the user's SQL, without the query around it.
pub fn complaint(e: &rusqlite::Error) -> String {
    match e {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        e => e.to_string(),
    }
}

/// What SQLite refused, with the file, and what to do where another process holds it.
pub fn refusal(path: &Path, e: &rusqlite::Error) -> crate::Error {
    if let Some(ended) = given_up(e, None) {
        return ended;
    }
    let kind = match e.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Kind::Corrupt,
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Kind::Io(std::io::ErrorKind::PermissionDenied),
        Some(ErrorCode::DiskFull) => Kind::Io(std::io::ErrorKind::StorageFull),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Kind::Io(std::io::ErrorKind::ResourceBusy),
        Some(_) => Kind::Io(std::io::ErrorKind::Other),
        None => Kind::Corrupt,
    };
    Error::new(kind, format!("SQLite: {e}")).in_source(path.display().to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn a_mode_whose_commit_fails_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let mut db = Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE runs (id INTEGER)").unwrap();
        db.commit_hook(Some(|| true)).unwrap();
        let refused = log_ahead(&db, &path).unwrap_err().to_string();
        assert!(refused.contains("metadata.db"), "{refused}");
        db.commit_hook(None::<fn() -> bool>).unwrap();
        log_ahead(&db, &path).unwrap();
    }

    #[test]
    fn names_that_are_no_text_are_refused_and_end_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE runs (id INTEGER, max_score INTEGER)").unwrap();
        drop(db);
        assert!(open_connection(&path).is_ok());
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(9).position(|name| name == b"max_score").unwrap();
        bytes[at + 2] = 0xFF;
        std::fs::write(&path, bytes).unwrap();
        let refused = open_connection(&path).unwrap_err().to_string();
        assert!(refused.contains("metadata.db"), "{refused}");
    }

    const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS runs (id INTEGER, name TEXT)";

    /// A database in a folder of its own, whose name SQLite must not take for a part of a URI.
    fn written() -> (tempfile::TempDir, PathBuf, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd ?#%41.db");
        let db = open_to_write(&path, SCHEMA).unwrap();
        db.execute("INSERT INTO runs VALUES (7, 'seven')", []).unwrap();
        (folder, path, db)
    }

    fn id(db: &Connection) -> i64 {
        db.query_row("SELECT id FROM runs", [], |row| row.get(0)).unwrap()
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_database_that_is_written_is_read_with_its_log_and_a_finished_one_is_left_alone() {
        let (folder, path, db) = written();
        assert!(std::fs::metadata(logs(&path).nth(1).unwrap()).unwrap().len() > 0, "the row is in the log alone");
        assert_eq!(id(&open_connection(&path).unwrap()), 7);
        close(db, &path).unwrap();
        assert_eq!(names(&folder), ["odd ?#%41.db"]);
        let read = open_connection(&path).unwrap();
        assert_eq!((id(&read), names(&folder).len()), (7, 1), "nothing is made beside it");
        assert!(read.execute("DELETE FROM runs", []).is_err());
        std::fs::write(logs(&path).nth(1).unwrap(), "").unwrap();
        assert_eq!(id(&open_connection(&path).unwrap()), 7);
        assert_eq!(names(&folder), ["odd ?#%41.db", "odd ?#%41.db-wal"], "an empty log is none");
    }

    #[test]
    fn a_database_elsewhere_is_read_whole_and_refused_beside_a_log() {
        let (_folder, path, db) = written();
        close(db, &path).unwrap();
        let (store, elsewhere) = (MemoryStore::named("database"), Path::new("memory://database/metadata.db"));
        store.write("metadata.db", std::fs::read(&path).unwrap());
        assert_eq!(id(&open_connection(elsewhere).unwrap()), 7);
        store.write("metadata.db-wal", b"changes".to_vec());
        let e = open_connection(elsewhere).unwrap_err().to_string();
        assert!(e.contains("memory://database/metadata.db") && e.contains("write-ahead log"), "{e}");
    }

    #[test]
    fn a_log_that_stays_beside_a_closed_database_is_an_error() {
        let (_folder, path, db) = written();
        std::fs::write(logs(&path).next().unwrap(), "left").unwrap();
        assert!(close(db, &path).unwrap_err().to_string().contains("-journal"));
    }

    #[test]
    fn a_database_is_written_anew_with_the_same_bytes_however_it_came_about() {
        let (_folder, one, db) = written();
        std::fs::write(one.with_extension("fresh"), "of a job that was killed").unwrap();
        close_anew(db, &one).unwrap();
        let (folder, two, db) = written();
        db.execute_batch("UPDATE runs SET id = 8; DELETE FROM runs; INSERT INTO runs VALUES (7, 'seven')").unwrap();
        close_anew(db, &two).unwrap();
        assert_eq!(names(&folder), ["odd ?#%41.db"]);
        let db = open_to_write(&two, SCHEMA).unwrap();
        close_anew(db, &two).unwrap();
        assert!(std::fs::read(&one).unwrap() == std::fs::read(&two).unwrap(), "the bytes");
        assert_eq!(id(&open_connection(&two).unwrap()), 7);
        let db = open_to_write(&two, SCHEMA).unwrap();
        let blocked = logs(&two.with_extension("fresh")).nth(1).unwrap();
        std::fs::create_dir(&blocked).unwrap();
        let refused = close_anew(db, &two).unwrap_err().to_string();
        assert!(refused.contains("odd ?#%41.fresh-wal"), "{refused}");
    }

    #[test]
    fn triggers_and_views_in_place_of_a_table_are_refused() {
        for (sql, refused) in [
            ("CREATE VIEW others AS SELECT 1", false),
            ("CREATE VIEW Games AS SELECT 1", true),
            ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END", true),
        ] {
            let (_folder, path, db) = written();
            db.execute_batch(sql).unwrap();
            close(db, &path).unwrap();
            assert_eq!((open_connection(&path).is_err(), open_to_write(&path, SCHEMA).is_err()), (refused, refused));
        }
    }

    #[test]
    fn tables_and_columns_are_found_by_name() {
        let (_folder, _, db) = written();
        db.execute_batch("CREATE VIEW seen AS SELECT 1").unwrap();
        assert_eq!(["runs", "seen", "games"].map(|name| has_table(&db, name).unwrap()), [true, false, false]);
        assert_eq!(columns(&db, "runs").unwrap(), ["id", "name"]);
        let wrong = db.prepare("SELECT colour FROM runs").unwrap_err();
        assert_eq!(complaint(&wrong), "no such column: colour");
        assert_eq!(complaint(&rusqlite::Error::InvalidQuery), rusqlite::Error::InvalidQuery.to_string());
    }

    /// A file elsewhere.
    struct Elsewhere(Vec<u8>);

    impl ReadAt for Elsewhere {
        fn len(&self) -> gristmill_format::Result<u64> {
            ReadAt::len(self.0.as_slice())
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> gristmill_format::Result<usize> {
            self.0.as_slice().read_at(offset, buf)
        }
    }

    #[test]
    fn a_finished_database_is_read_from_memory() {
        let (_folder, path, db) = written();
        close(db, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[18..20], [2, 2], "it says that it had a log");
        let read = in_memory(&Elsewhere(bytes.clone())).unwrap();
        assert_eq!((&read[..18], &read[18..20], &read[20..]), (&bytes[..18], &[1, 1][..], &bytes[20..]));
        let mut db = Connection::open_in_memory().unwrap();
        db.deserialize_read_exact("main", read.as_slice(), read.len(), true).unwrap();
        assert_eq!(id(&db), 7);
        assert_eq!(in_memory(&Elsewhere(vec![3; 40])).unwrap(), [3; 40]);
    }
}

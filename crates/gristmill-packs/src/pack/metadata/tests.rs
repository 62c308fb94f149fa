//! Databases of ours and of others, on storage that may be read-only.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn run(id: u64) -> Run {
    Run { id, seed: Some(u64::MAX - id), steps: 10 + id, max_score: 100 * id, highest_tile: 1 << id }
}

fn runs(metadata: &Metadata) -> Vec<Run> {
    let mut found = Vec::new();
    metadata
        .runs(&mut |run| {
            found.push(run);
            Ok(())
        })
        .unwrap();
    found
}

fn kind(e: gristmill_runtime::Error) -> Kind {
    match e {
        gristmill_runtime::Error::Format(e) => e.kind(),
        other => panic!("{other}"),
    }
}

#[test]
fn no_byte_tells_how_often_a_database_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.db");
    let mut writer = MetadataWriter::open(&path).unwrap();
    writer.put_run(&run(1)).unwrap();
    writer.finish_anew().unwrap();
    let once = fs::read(&path).unwrap();
    for _ in 0..2 {
        MetadataWriter::open(&path).unwrap().finish_anew().unwrap();
        assert!(fs::read(&path).unwrap() == once, "a job that was killed after it does it again");
    }
}

#[test]
fn what_was_put_comes_back_and_puts_again_are_updates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a pack?#%.db");
    let extra = Extra {
        run_id: 1,
        first_row: 10,
        source: "a/g.jsonl.gz".into(),
        stored_bytes: 77,
        stored_xxh3: u128::MAX - 5,
        sidecar: r#"{"depth":6}"#.into(),
    };
    for _ in 0..2 {
        let mut writer = MetadataWriter::open(&path).unwrap();
        for id in [2, 0, 1] {
            writer.put_run(&run(id)).unwrap();
        }
        writer.put_extra(&extra).unwrap();
        writer.put_session("ts", "1700000000").unwrap();
        writer.commit().unwrap();
        writer.put_session("model_id", "m").unwrap();
        writer.finish().unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no log remains");
    let metadata = Metadata::open(&path).unwrap();
    assert_eq!(runs(&metadata), [run(0), run(1), run(2)]);
    assert_eq!(metadata.run_count().unwrap(), 3);
    let mut extras = Vec::new();
    metadata
        .extras(&mut |extra| {
            extras.push(extra);
            Ok(())
        })
        .unwrap();
    assert_eq!(extras, [extra]);
    assert_eq!(
        metadata.session().unwrap(),
        [("model_id", "m"), ("ts", "1700000000")].map(|(k, v)| (k.into(), v.into())).into()
    );
    let (mode, size): (String, i64) = metadata
        .connection()
        .query_row(
            "SELECT (SELECT journal_mode FROM pragma_journal_mode), page_size FROM pragma_page_size",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(size, 4096);
    assert!(["wal", "delete"].contains(&mode.as_str()), "immutable files report no log: {mode}");
    assert_eq!(fs::read(&path).unwrap()[18..20], [2, 2], "the header says WAL");
    assert!(metadata.connection().execute("DELETE FROM runs", []).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "reading makes no files");
}

#[test]
fn what_was_not_committed_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.db");
    let mut writer = MetadataWriter::open(&path).unwrap();
    writer.put_run(&run(0)).unwrap();
    writer.commit().unwrap();
    writer.put_run(&run(1)).unwrap();
    // Another process sees what is committed, in the log beside the file.
    assert_eq!(runs(&Metadata::open(&path).unwrap()), [run(0)]);
    drop(writer);
    assert_eq!(runs(&Metadata::open(&path).unwrap()), [run(0)]);
}

#[test]
fn read_only_storage_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.db");
    let mut writer = MetadataWriter::open(&path).unwrap();
    writer.put_run(&run(3)).unwrap();
    writer.finish().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let found = Metadata::open(&path).map(|metadata| runs(&metadata));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(found.unwrap(), [run(3)]);
}

#[test]
fn databases_of_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.db");
    let made = |sql: &str| {
        let _ = fs::remove_file(&path);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        Metadata::open(&path)
    };
    let legacy = made(
        "CREATE TABLE runs(id INTEGER PRIMARY KEY, first_step_idx INT, num_steps INT, max_score INT, highest_tile INT, engine TEXT);
         INSERT INTO runs VALUES (4, 0, 7, 70, 8, 'x');",
    )
    .unwrap();
    assert_eq!(runs(&legacy), [Run { id: 4, seed: None, steps: 7, max_score: 70, highest_tile: 8 }]);
    assert!(legacy.session().unwrap().is_empty() && !legacy.has_extras().unwrap());
    let signed = made(
        "CREATE TABLE runs(id INTEGER PRIMARY KEY, seed BIGINT, num_moves INT, max_score INT, highest_tile INT);
         INSERT INTO runs VALUES (0, -9223372036854775807, 7, 70, 8);",
    )
    .unwrap();
    assert_eq!(runs(&signed)[0].seed, Some((1 << 63) + 1));
    let negative = made(
        "CREATE TABLE runs(id INTEGER PRIMARY KEY, seed BIGINT, steps INT, max_score INT, highest_tile INT);
         INSERT INTO runs VALUES (0, 1, -7, 70, 8);",
    )
    .unwrap();
    assert_eq!(kind(negative.runs(&mut |_| Ok(())).unwrap_err()), Kind::OutOfRange);
    for sql in
        ["CREATE TABLE games(id INT)", "CREATE TABLE runs(id INT, steps INT)", "CREATE TABLE runs(id INT, seed INT)"]
    {
        assert_eq!(kind(made(sql).unwrap_err()), Kind::Missing, "{sql}");
    }
}

#[test]
fn damage_is_refused_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.db");
    assert_eq!(kind(Metadata::open(&path).unwrap_err()), Kind::Io(std::io::ErrorKind::NotFound));
    fs::write(&path, "not a database, though it has some length to it").unwrap();
    for e in [Metadata::open(&path).unwrap_err(), MetadataWriter::open(&path).unwrap_err()] {
        assert!(e.to_string().contains("metadata.db"), "{e}");
        assert_eq!(kind(e), Kind::Corrupt);
    }
    let mut writer = MetadataWriter::open(folder.path().join("whole.db")).unwrap();
    (0..200).for_each(|id| writer.put_run(&run(id % 60)).unwrap());
    writer.finish().unwrap();
    let whole = fs::read(folder.path().join("whole.db")).unwrap();
    for cut in (0..whole.len()).step_by(997) {
        fs::write(&path, &whole[..cut]).unwrap();
        let found = Metadata::open(&path).and_then(|metadata| metadata.runs(&mut |_| Ok(())));
        assert!(found.is_err() || cut > 4096, "cut at {cut}");
    }
}

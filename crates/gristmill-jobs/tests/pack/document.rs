//! The page on packs says what packs are: names, columns, fields and lengths of a pack that was made just now.

use std::fs;
use std::path::Path;

use gristmill_engine::pack::metadata::Metadata;
use gristmill_jobs::pack::{OnError, PackOptions};

use crate::drops::*;

#[test]
fn the_page_names_what_is_there() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/pack.md");
    let page = fs::read_to_string(page).unwrap();
    let (drop, out) = (drop_of(2), tempfile::tempdir().unwrap());
    game(drop.path(), "bad", "nonsense");
    let target = out.path().join("pack");
    packed(&PackOptions { on_error: OnError::Quarantine, ..options(drop.path(), &target) });
    for (name, bytes) in files(&target) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
        if name == "steps.npy" {
            let header = u64::from(u16::from_le_bytes([bytes[8], bytes[9]])) + 10;
            assert!(page.contains(&format!("| {header} for any number of rows | {header}")));
        }
    }
    let metadata = Metadata::open(target.join("metadata.db")).unwrap();
    let mut columns = metadata
        .connection()
        .prepare("SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'")
        .unwrap();
    let columns = columns.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
    assert_eq!(columns.len(), 5 + 2 + 8, "{columns:?}");
    for (table, column) in columns {
        let (_, after) = page.split_once(&format!("{table}(")).unwrap();
        assert!(after.split("\n```").next().unwrap().contains(&column), "{table}.{column}");
    }
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(target.join("manifest.json")).unwrap()).unwrap();
    let fields = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for name in [fields(&manifest), fields(&manifest["files"][0]), fields(&manifest["skipped"][0])].concat() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
    assert!(page.contains(&format!("`{}`, {}", manifest["format"].as_str().unwrap(), manifest["version"])));
}

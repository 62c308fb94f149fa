//! The page on chunk packs says what they are: names, columns and fields of a pack that was made just now.

use std::fs;
use std::path::Path;

use gristmill_engine::chunks::metadata::Games;
use gristmill_jobs::pack::OnError;

use crate::fixture::{input, packed};

#[test]
fn the_page_names_what_is_there() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/chunk-pack.md");
    let page = fs::read_to_string(page).unwrap();
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    fs::write(input.path().join("broken.gz"), "no game").unwrap();
    packed(input.path(), out.path(), |options| options.on_error = OnError::Quarantine).unwrap();
    for entry in fs::read_dir(out.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("games-") || page.contains(&format!("`{name}`")), "{name}");
    }
    assert!(page.contains("`games-00000.chunks`") && page.contains("4 000 000"));
    let games = Games::open(&out.path().join("metadata.db")).unwrap();
    let names = games.connection().prepare("SELECT * FROM games").unwrap();
    let names: Vec<&str> = names.column_names().collect();
    assert!(names.len() > 12);
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "column {name}");
    }
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.path().join("manifest.json")).unwrap()).unwrap();
    let fields = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for name in [fields(&manifest), fields(&manifest["files"][0])].concat() {
        assert!(page.contains(&format!("`{name}`")), "field {name}");
    }
    assert_eq!((page.contains("`gristmill.pack.chunks`"), &manifest["version"]), (true, &1.into()));
}

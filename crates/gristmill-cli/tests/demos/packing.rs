//! Demonstrations through `pack`, `inspect`, `verify`, `stats`: whole trajectories back, whatever interrupts or damages them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, IndexConfig, Pad, View};
use gristmill_engine::open::open;
use gristmill_engine::selection::Selection;
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::source::Chunk;
use gristmill_jobs::pack::{self, PackOptions};

use super::files::{imitation, read, shard, steps};
use crate::command::{run, text};

/// The records of each trajectory of a pack.
fn packed(pack: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut files: Vec<_> = fs::read_dir(pack).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "chunks")) {
        let (source, mut chunk) = (open(path).unwrap(), Chunk::default());
        for i in 0..source.len() {
            source.chunk(i, &mut chunk).unwrap();
            found.push(chunk.records().to_vec());
        }
    }
    found
}

/// The records of each trajectory of a file or folder.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let file = read(path);
    let all = file.trajectories();
    let size = all.layout().unwrap().size();
    let record = |i: usize| {
        let span = all.span(i).unwrap();
        let mut out = vec![0; span.len() * size];
        all.copy_records(span, &mut out).unwrap();
        out
    };
    (0..all.ends().len()).map(record).collect()
}

/// Two folders: two shards, the second of which continues a trajectory of the first, and one shard.
fn input(folder: &Path) -> Vec<Vec<u8>> {
    let (a, b) = (folder.join("a"), folder.join("b"));
    fs::create_dir_all(&a).unwrap();
    fs::create_dir_all(&b).unwrap();
    let all = steps(&[5, 7, 2]);
    shard(&a.join("demos-0.tar.zst"), &all[..8]);
    shard(&a.join("demos-1.tar"), &all[8..]);
    shard(&b.join("demos.tar"), &steps(&[6]));
    [records(&a), records(&b)].concat()
}

#[test]
fn trajectories_go_into_a_pack_and_are_told_of() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let originals = input(folder.path());
    assert_eq!(originals.len(), 4, "one continues in the next shard");
    let (pack, four) = (out.path().join("pack"), out.path().join("four"));
    let base = ["pack", "--input", text(folder.path()), "--shard-rows", "8", "--json", "--output"];
    let dry = run(&[&base[..], &[text(&pack), "--dry-run"]].concat()).ok().json();
    assert_eq!((&dry["games"], pack.exists()), (&4.into(), false));
    let said = run(&[&base[..], &[text(&pack), "--threads", "1"]].concat()).ok().json();
    assert_eq!((&said["runs"], &said["rows"], &said["files"]), (&4.into(), &20.into(), &2.into()), "{said}");
    assert!(packed(&pack) == originals);
    run(&[&base[..], &[text(&four), "--threads", "4"]].concat()).ok();
    for name in ["games-00000.chunks", "games-00001.chunks", "manifest.json"] {
        assert!(fs::read(pack.join(name)).unwrap() == fs::read(four.join(name)).unwrap(), "{name}");
    }
    let mut rows = Vec::new();
    let each = &mut |game: gristmill_engine::chunks::metadata::Game| {
        rows.push((game.source, game.frames, game.facts));
        Ok(())
    };
    Games::open(&pack.join("metadata.db")).unwrap().each(each).unwrap();
    let [form, task, ended] = ["demo.shard", "coinrun", "3x6x6"].map(|text| SqlValue::Text(text.to_owned()));
    let facts = |over: i64, reward: f64| {
        let dtype = SqlValue::Text("|u1".to_owned());
        vec![form.clone(), task.clone(), SqlValue::Integer(over), SqlValue::Real(reward), dtype, ended.clone()]
    };
    assert_eq!(rows[0], ("a/demos-0.tar.zst#0".to_owned(), 5, facts(1, 2.5)));
    assert_eq!(rows[2].0, "a/demos-1.tar#1", "the first of it is the rest of one");
    assert_eq!(rows[3], ("b/demos.tar#0".to_owned(), 6, facts(1, 3.0)));
    let path = pack.join("games-00000.chunks");
    let looked = run(&["inspect", text(&path), "--chunk", "0", "--frame", "1", "--json"]).ok().json();
    assert_eq!(looked["format"], "demo.chunks", "{looked}");
    let stats = run(&["stats", text(&pack), "--json"]).ok().json();
    assert_eq!((&stats["demos"]["trajectories"], &stats["demos"]["steps"]), (&4.into(), &20.into()), "{stats}");
    let checked = run(&["verify", text(&pack), "--json"]);
    let found = checked.json();
    assert_eq!((&found["checked"], &found["chunks"], &found["ok"]), (&20.into(), &4.into(), &true.into()), "{found}");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let bad = run(&["verify", text(&pack), "--json"]);
    assert_eq!((bad.code, bad.json()["fault_count"].as_u64()), (1, Some(1)));
}

#[test]
fn packs_grow_are_merged_and_leave_out_what_does_not_fit() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let originals = input(folder.path());
    let (all, pack) = (out.path().join("all"), out.path().join("all/pack"));
    let options = ["--input", text(folder.path()), "--output", text(&pack), "--json"];
    run(&[&["pack"], &options[..]].concat()).ok();
    let again = run(&[&["pack", "--append"], &options[..]].concat()).ok().json();
    assert_eq!((&again["known"], &again["runs"]), (&4.into(), &4.into()), "{again}");
    // One more that fits, and one of another form.
    fs::create_dir(folder.path().join("c")).unwrap();
    shard(&folder.path().join("c/demos.tar"), &steps(&[2, 7])[2..]);
    imitation(&folder.path().join("i.npz"), &[3, 2], 0.0);
    let grown =
        run(&[&["pack", "--append", "--on-error", "quarantine", "--skip-bad"], &options[..]].concat()).ok().json();
    assert_eq!((&grown["known"], &grown["runs"]), (&4.into(), &5.into()), "{grown}");
    assert_eq!(grown["skipped"].as_array().unwrap().len(), 2, "{grown}");
    assert!(fs::read_to_string(pack.join("quarantine.jsonl")).unwrap().contains("pack them apart"));
    let more = records(&folder.path().join("c"));
    assert!(packed(&pack) == [originals, more].concat());
    // Packs are merged by packing what holds them: chunks go over as they are.
    let merged = out.path().join("merged");
    run(&["pack", "--input", text(&all), "--output", text(&merged)]).ok();
    assert!(packed(&merged) == packed(&pack));
    // Or by file, where a trajectory that two packs have comes once.
    let joined = out.path().join("joined");
    let other = out.path().join("other");
    run(&["pack", "--input", text(&folder.path().join("c")), "--output", text(&other)]).ok();
    for pack in [&pack, &other] {
        run(&["mark", text(pack), "odd", "--rule", "ply % 2 = 1 AND game.frames > 2"]).ok();
    }
    let said = run(&["merge", text(&other), text(&pack), "--output", text(&joined), "--json"]).ok().json();
    assert_eq!(said["marks"], serde_json::json!(["odd"]), "{said}");
    let mark = |words: &[&str]| run(&[&["mark", text(&joined)], words, &["--json"]].concat()).ok().json();
    let carried = mark(&["--list"])[0]["marked"].clone();
    let asked = mark(&["again", "--rule", "ply % 2 = 1 AND game.frames > 2"])["marked"].clone();
    assert!(carried == asked && asked.as_u64() > Some(3), "{carried} {asked}");
    let said =
        run(&["merge", text(&pack), text(&other), "--output", text(&joined), "--overwrite", "--json"]).ok().json();
    assert_eq!((&said["runs"], &said["known"]), (&5.into(), &1.into()), "{said}");
    assert!(packed(&joined) == packed(&pack));
    let pictures = out.path().join("pictures");
    run(&["pack", "--input", text(&folder.path().join("i.npz")), "--output", text(&pictures)]).ok();
    let refused = run(&["merge", text(&pack), text(&pictures), "--output", text(&out.path().join("no"))]);
    assert!(refused.code != 0 && refused.err.contains("has records of"), "{refused:?}");
    // A pack of one kind does not take another.
    let games = tempfile::tempdir().unwrap();
    crate::command::generate(games.path(), "2", &[]);
    let refused = run(&["pack", "--append", "--input", text(games.path()), "--output", text(&pack)]);
    assert!(refused.code != 0 && refused.err.contains("chunks of `demo`, not of `chess`"), "{refused:?}");
}

#[test]
fn commands_for_other_data_say_what_to_do_with_a_pack_of_trajectories() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    input(folder.path());
    let pack = out.path().join("pack");
    run(&["pack", "--input", text(folder.path()), "--output", text(&pack)]).ok();
    let (pack, file, to) = (text(&pack), pack.join("games-00000.chunks"), out.path().join("to"));
    let config = out.path().join("stream.toml");
    fs::write(&config, run(&["feed", pack, "--dry-run"]).ok().out).unwrap();
    for (words, advice) in [
        (&["feed", pack, "--epochs", "1"][..], "gristmill.DataLoader(gristmill.open(PACK)"),
        (&["feed", text(out.path()), "--epochs", "1"], "feed gristmill.open("),
        (&["feed", pack], "gristmill.DataLoader(gristmill.open(PACK)"),
        (&["feed", text(&config)], "gristmill.DataLoader(gristmill.open(PACK)"),
        (
            &["rescore", pack, text(&to)],
            "it is a pack of demonstrations, which the commands `convert` and `split` take",
        ),
        (&["filter", pack, text(&to)], "it is a pack of demonstrations"),
        (&["convert", pack, text(&to), "--container", "loose"], "options of chess games do not apply"),
        (&["convert", pack, text(&to), "--to", "exponents"], "the name of OUT decides the form"),
        (&["convert", text(&file), text(&out.path().join("x.tar"))], "name the folder"),
        (&["split", pack, text(&to), "--into", "a:1", "--by", "content"], "demonstrations have no symmetries"),
        (&["values", pack], "a pack of rows of 2048 is needed"),
        (&["tokenizer", "fit", pack, "--output", text(&to)], "a pack of rows of 2048 is needed"),
        (&["inspect", pack, "--png", text(&to)], "`gristmill convert` makes a shard of a pack"),
        (&["verify", pack, "--against", text(folder.path())], "games of chess are compared"),
    ] {
        let refused = run(words);
        assert!(refused.code != 0 && refused.err.contains(advice), "{words:?}: {refused:?}");
        assert!(!to.exists(), "{words:?}");
    }
    assert_eq!(run(&["inspect", pack, "--json"]).ok().json()["format"], "demo.chunks");
}

#[test]
fn what_is_larger_than_may_be_held_goes_through_columns_into_the_same_pack() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    input(folder.path());
    let (held, through) = (out.path().join("held"), out.path().join("through"));
    for (output, held_bytes) in [(&held, 1 << 20), (&through, 2000)] {
        let options = PackOptions { held_bytes, ..PackOptions::new(folder.path(), output) };
        pack::pack(&options, &mut |_| {}).unwrap();
    }
    for name in ["games-00000.chunks", "manifest.json"] {
        assert!(fs::read(held.join(name)).unwrap() == fs::read(through.join(name)).unwrap(), "{name}");
    }
    assert_eq!(crate::demos::files::names(out.path()), ["held", "through"], "columns are gone");
}

#[test]
fn files_of_another_kind_than_the_pack_are_told() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let input = text(folder.path());
    imitation(&folder.path().join("demos.npz"), &[3, 4], 0.0);
    fs::write(folder.path().join("README.txt"), "no data").unwrap();
    let demos = out.path().join("demos");
    let said = run(&["pack", "--input", input, "--output", text(&demos), "--json"]).ok().json();
    assert_eq!((&said["runs"], &said["skipped"]), (&2.into(), &serde_json::json!([])));
    assert_eq!(run(&["inspect", text(&demos), "--json"]).ok().json()["format"], "demo.chunks");

    let left_out = |pack: &str| {
        let path = out.path().join(pack);
        let said = run(&["pack", "--input", input, "--output", text(&path), "--json"]);
        assert_eq!(said.code, 3, "{said:?}");
        let said = said.json();
        let names = said["skipped"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap().to_owned());
        let names: Vec<String> = names.collect();
        let raised = run(&["pack", "--input", input, "--output", text(&path), "--overwrite", "--on-error", "raise"]);
        assert!(raised.code == 1 && raised.err.contains("a pack holds one kind"), "{raised:?}");
        (said["layout"].as_str().unwrap().to_owned(), names)
    };
    crate::command::generate(folder.path(), "1", &[]);
    assert_eq!(left_out("games"), ("chess chunks".to_owned(), vec!["demos.npz".to_owned()]));
    run(&["generate", "2048", input, "--games", "1", "--moves-max", "9"]).ok();
    let (layout, names) = left_out("steps");
    assert_eq!((layout.as_str(), names), ("aligned48", vec!["demos.npz".to_owned(), "training.1.gz".to_owned()]));
}

#[test]
fn rows_of_a_view_of_packed_trajectories_are_verified_from_their_ledger() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    input(folder.path());
    let (pack, ledger) = (out.path().join("pack"), out.path().join("ledger"));
    run(&["pack", "--input", text(folder.path()), "--output", text(&pack)]).ok();
    let all = Selection::all(Arc::new(ChunkPack::open(&pack, Residence::Mapped).unwrap()));
    let config = IndexConfig {
        encoder: EncoderConfig::Fields,
        view: Some(View::Window { offsets: vec![-1, 0], pad: Pad::Drop, tensors: Vec::new() }),
        batch_size: 4,
        seed: Some(5),
        epochs: Some(1),
        ledger: Some(ledger.clone()),
        ..IndexConfig::default()
    };
    let loader = IndexLoader::new(all.input(), config).unwrap();
    let mut batches = 0;
    while let Next::Batch(_) = loader.next("", None).unwrap() {
        batches += 1;
    }
    assert_eq!(batches, 4, "of 20 steps the first of each of four trajectories is left out");
    drop(loader);
    run(&["verify-run", text(&ledger), "--pack", text(&pack)]).ok();
}

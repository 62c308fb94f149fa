//! `xray`, `when`, `verify-run` and `feed --skip`: places of rows, proofs of runs, and batches that are left out, of chess games.

use std::path::Path;
use std::sync::Arc;

use crate::command::{generate, run, text};
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, IndexConfig};
use gristmill_engine::open::open;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next, RowEncoder};
use serde_json::Value;

fn packed(folder: &Path) -> Selection {
    generate(&folder.join("games"), "6", &[]);
    run(&["pack", "--input", text(&folder.join("games")), "--output", text(&folder.join("pack"))]).ok();
    let pack = ChunkPack::open(&folder.join("pack"), Residence::Mapped).unwrap();
    Selection::all(Arc::new(pack)).query("id <> 2", &[]).unwrap()
}

fn loader(games: &Selection, ledger: Option<&Path>) -> IndexLoader {
    let ledger = ledger.map(Path::to_owned);
    let config = IndexConfig { batch_size: 16, seed: Some(4), epochs: Some(2), ledger, ..IndexConfig::default() };
    IndexLoader::new(games.input(), config).unwrap()
}

#[test]
fn each_row_of_a_batch_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let games = packed(folder.path());
    let loader = loader(&games, None);
    let (state, pack) = (folder.path().join("state.json"), folder.path().join("pack"));
    loader.seek(7).unwrap();
    loader.save(&state).unwrap();
    let Next::Batch(batch) = loader.next("", None).unwrap() else { panic!("no batch") };
    let words = ["xray", "--state", text(&state), "--pack", text(&pack), "--batch", "7"];
    let seen = run(&[&words[..], &["--json"]].concat()).ok().json();
    let all = Selection::all(Arc::clone(games.pack()));
    let encoder = RowEncoder::new(&all.input(), &EncoderConfig::default(), &[]).unwrap();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let places: Vec<u64> = seen.as_array().unwrap().iter().map(|row| number(row, "pack_row")).collect();
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes() * places.len()]).collect();
    encoder.encode(&places, 4, 0, out.iter_mut().map(Vec::as_mut_slice).collect()).unwrap();
    for (column, expected) in batch.columns.iter().zip(&out) {
        assert!(column.bytes() == expected, "{}", column.name());
    }
    for row in seen.as_array().unwrap() {
        let (game, ply) = (number(row, "game"), number(row, "ply"));
        assert_eq!(number(row, "pack_row"), games.pack().stretches(game)[0].0 + ply);
        let source = open(folder.path().join("games").join(row["member"].as_str().unwrap())).unwrap();
        assert!(game != 2 && ply < source.frames(0).unwrap() as u64);
    }
    let one = run(&[&words[..], &["--row", "3"]].concat()).ok().out;
    assert!(
        one.starts_with("batch 7, row 3, epoch ") && one.lines().count() == 1 && one.contains("training."),
        "{one}"
    );
    let beyond = run(&[&words[..], &["--row", "16"]].concat());
    assert!(beyond.code == 2 && beyond.err.contains("no row 16"), "{beyond:?}");
}

#[test]
fn a_game_leads_to_its_batches() {
    let folder = tempfile::tempdir().unwrap();
    let games = packed(folder.path());
    let loader = loader(&games, None);
    loader.seek(7).unwrap();
    let (state, pack) = (folder.path().join("state.json"), folder.path().join("pack"));
    loader.save(&state).unwrap();
    let of_state = ["when", "training.4.gz", "--pack", text(&pack), "--state", text(&state), "--epochs", "0..2"];
    let found = run(&[&of_state[..], &["--json"]].concat()).ok().json();
    let game = found["game"].as_u64().unwrap();
    assert_eq!(found["member"], "training.4.gz");
    assert_eq!(found["times"].as_array().unwrap().len() as u64, 2 * found["plies"].as_u64().unwrap());
    let lookup = loader.lookup().unwrap();
    for time in found["times"].as_array().unwrap() {
        let number = |name: &str| time[name].as_u64().unwrap();
        let placed = lookup.row(number("batch"), number("row") as usize).unwrap().unwrap();
        assert_eq!((placed.epoch, placed.row), (number("epoch"), number("pack_row")));
        assert_eq!(games.game_of(placed.row), Some((game, number("ply"))));
        assert_eq!(time["fed"], if number("batch") < 7 { "was" } else { "will_be" });
    }
    let id = game.to_string();
    let options = ["when", &id, "--pack", text(&pack), "--seed", "4", "--batch-size", "16", "--where", "id <> 2"];
    let said = run(&[&options[..], &["--joined", "--ply", "0"]].concat()).ok().out;
    let first = found["times"].as_array().unwrap().iter().find(|time| time["ply"] == 0).unwrap();
    let expected = format!("epoch 0, batch {}, row {}: ply 0\n", first["batch"], first["row"]);
    assert!(said.starts_with(&format!("game {id} (training.4.gz): ")) && said.contains(&expected), "{said}");
    let never = run(&["when", "2", "--pack", text(&pack), "--state", text(&state)]).ok().out;
    assert!(never.contains("never: the plan does not select"), "{never}");
    for (game, words) in
        [("training.44.gz", "the nearest is game"), ("99", "the pack has 6, from 0 to 5; the nearest is 5")]
    {
        let refused = run(&["when", game, "--pack", text(&pack), "--state", text(&state)]);
        assert!(refused.code == 2 && refused.err.contains(words), "{refused:?}");
    }
}

#[test]
fn a_run_is_proven_or_what_it_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let games = packed(folder.path());
    let [sound, torn] = ["sound", "torn"].map(|name| folder.path().join(name));
    let pack = folder.path().join("pack");
    for (ledger, lost) in [(&sound, 0), (&torn, 2)] {
        let first = loader(&games, Some(ledger));
        (0..5).for_each(|_| assert!(matches!(first.next("", None), Ok(Next::Batch(_)))));
        // As older versions wrote it, without a checksum, a state can be changed by hand.
        let mut state: Value = serde_json::from_str(&first.state().unwrap()).unwrap();
        for key in ["checksum", "gristmill_state", "of"] {
            state.as_object_mut().unwrap().remove(key).unwrap();
        }
        (state["gristmill_index_state"], state["batch"]) = (1.into(), (5 + lost).into());
        let state = state.to_string();
        drop(first);
        let second = loader(&games, Some(ledger));
        second.restore(&state).unwrap();
        while matches!(second.next("", None).unwrap(), Next::Batch(_)) {}
    }
    let said = run(&["verify-run", text(&sound), "--pack", text(&pack)]).ok().out;
    assert!(said.contains("epoch 1: ") && said.contains("each row once") && said.contains("ok: 2 starts"), "{said}");
    let without = run(&["verify-run", text(&sound)]).ok().out;
    assert!(without.contains("not proven: that the rows were those of the plan"), "{without}");
    let found = run(&["verify-run", text(&torn), "--pack", text(&pack), "--max-rows", "5", "--json"]);
    assert_eq!(found.code, 1);
    let output = &found.json()["outputs"][0];
    assert_eq!((output["missing"][0]["first"].as_u64(), output["missing"][0]["end"].as_u64()), (Some(5), Some(7)));
    assert!(output["rows"].as_array().unwrap().len() == 5 && output["rows"][0]["member"].is_string());
    let said = run(&["verify-run", text(&torn), "--pack", text(&pack)]);
    assert!(said.code == 1 && said.out.contains("missing: batches 5..7") && said.out.contains("ply "), "{said:?}");
}

#[test]
fn batches_are_left_out_of_a_feed() {
    let folder = tempfile::tempdir().unwrap();
    generate(&folder.path().join("games"), "6", &[]);
    let games = folder.path().join("games");
    let feed = |out: &str, more: &[&str]| {
        let out = folder.path().join(out);
        let words = ["feed", text(&games), "--epochs", "1", "--batch-size", "16", "--seed", "1", "--out", text(&out)];
        run(&[&words[..], &["--index", "off", "--tensors", "values"], more].concat()).ok();
        let mut names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        names
            .into_iter()
            .map(|path| (path.file_name().unwrap().to_owned(), std::fs::read(path).unwrap()))
            .collect::<Vec<_>>()
    };
    let ledger = folder.path().join("ledger");
    let mut whole = feed("whole", &[]);
    let found = feed("edited", &["--skip", "2..4", "--ledger", text(&ledger)]);
    whole.drain(2..4);
    assert!(found == whole);
    let said = run(&["verify-run", text(&ledger)]).ok().out;
    assert!(said.contains("left out: 2..4") && said.contains("give the configuration"), "{said}");
    let config = folder.path().join("run.toml");
    let words = ["feed", text(&games), "--epochs", "1", "--batch-size", "16", "--seed", "1", "--index", "off"];
    let written = run(&[&words[..], &["--tensors", "values", "--dry-run"]].concat()).ok().out;
    std::fs::write(&config, written).unwrap();
    let said = run(&["verify-run", text(&ledger), "--config", text(&config)]).ok().out;
    assert!(said.contains("proven: what was delivered are the frames of the plan"), "{said}");
    let words = ["xray", "--config", text(&config), "--batch", "2"];
    let uncounted = run(&words);
    assert!(uncounted.code == 1 && uncounted.err.contains("training.1.gz") && uncounted.err.contains("--survey"));
    let seen = run(&[&words[..], &["--survey", "--json"]].concat()).ok().json();
    assert_eq!(seen.as_array().unwrap().len(), 16);
    let said = run(&[&words[..], &["--survey", "--row", "15"]].concat()).ok().out;
    let row = &seen[15];
    let expected = format!("batch 2, row 15: game 0, ply {}; {}\n", row["ply"], row["file"].as_str().unwrap());
    assert_eq!(said, expected);
    let both = run(&["xray", "--config", text(&config), "--pack", text(&games), "--batch", "2"]);
    assert!(both.code == 2 && run(&["xray", "--batch", "2"]).code == 2);
    let wrong = run(&["feed", text(&games), "--skip", "4..2"]);
    assert!(wrong.code == 2 && wrong.err.contains("the end is not included"), "{wrong:?}");
}

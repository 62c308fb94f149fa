//! Sides of a split: a game is on one side, loose, in a tar and in a pack; runs from before that was so are refused or resumed.

use std::path::Path;

use gristmill_engine::config::{DataLoaderConfig, SplitBy};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::stage::split::Fold;
use gristmill_engine::{DataLoader, Error};
use gristmill_generate::ChessOptions;
use gristmill_jobs::pack::{PackOptions, pack};
use gristmill_jobs::rewrite::{By, Container, RewriteOptions, Split, rewrite};

use super::games::{config, generate, hashes, loader, mixed, next, options, preset, without_checksum};

const SIDES: [(&str, u64); 3] = [("train", 5), ("valid", 2), ("test", 2)];

fn shares() -> Vec<(String, u64)> {
    SIDES.map(|(name, weight)| (name.to_owned(), weight)).to_vec()
}

/// One pass over the games of a folder.
fn pass(folder: &Path) -> Lc0Preset {
    Lc0Preset { epochs: Some(1), sampling_rate: None, reservoir: Some(0), ..preset(folder) }
}

/// Every row of an output as bytes, sorted: who the games of a side are, wherever they lie.
fn rows(options: &Lc0Preset, alias: &str) -> Vec<Vec<u8>> {
    let loader = loader(options);
    let mut rows = Vec::new();
    while let Some(batch) = next(&loader, alias) {
        let column = |name: &str| {
            let bytes = batch.column(name).unwrap().bytes();
            bytes.chunks_exact(bytes.len() / batch.rows).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let (planes, probs) = (column("planes"), column("probs"));
        rows.extend(planes.into_iter().zip(probs).map(|(planes, probs)| [planes, probs].concat()));
    }
    rows.sort_unstable();
    rows
}

fn dealt(input: &Path, out: &Path, by: By) -> gristmill_engine::Result<gristmill_jobs::rewrite::Rewritten> {
    let options = RewriteOptions {
        path: input.to_owned(),
        out: out.to_owned(),
        sides: SIDES.map(|(name, _)| name.to_owned()).to_vec(),
        container: Container::Same,
        threads: Some(1),
        dry_run: false,
        share: None,
    };
    let split = Split::new(SIDES.map(|(_, weight)| weight).to_vec(), by, None).unwrap();
    rewrite(std::sync::Arc::new(split), &options, &Default::default(), &mut |_| {})
}

#[test]
fn a_game_is_on_one_side_loose_in_tars_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let [loose, tars, packed, again] = ["loose", "tars", "packed", "again"].map(|name| folder.path().join(name));
    generate(ChessOptions { plies_max: 12, ..options(&loose.join("below"), 51) });
    generate(ChessOptions { plies_max: 12, games_per_tar: Some(20), ..options(&tars, 51) });
    pack(&PackOptions::new(&tars, &packed), &mut |_| {}).unwrap();
    // Of loose games and of a pack, in files of a few games each.
    pack(&PackOptions { shard_rows: Some(100), ..PackOptions::new(&packed, &again) }, &mut |_| {}).unwrap();
    for (alias, _) in SIDES {
        let of = |input: &Path| rows(&Lc0Preset { split: shares(), ..pass(input) }, alias);
        let expected = of(&loose);
        assert!(!expected.is_empty());
        for other in [&tars, &packed, &again] {
            assert!(of(other) == expected, "{alias} of {} by a stream", other.display());
        }
    }
    for input in [&loose, &tars, &packed, &again] {
        let out = folder.path().join(format!("sides of {}", input.file_name().unwrap().display()));
        dealt(input, &out, By::Name).unwrap();
        for (alias, _) in SIDES {
            let expected = rows(&Lc0Preset { split: shares(), ..pass(&loose) }, alias);
            let found = rows(&pass(&out.join(alias)), "");
            assert!(found == expected, "{alias} of {} by `split`", input.display());
        }
    }
}

#[test]
fn folds_part_what_is_not_tested_loose_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    let [loose, packed, out] = ["loose", "packed", "out"].map(|name| folder.path().join(name));
    generate(ChessOptions { plies_max: 8, ..options(&loose, 40) });
    pack(&PackOptions::new(&loose, &packed), &mut |_| {}).unwrap();
    let sides = |input: &Path, fold: Option<u64>| {
        let options = Lc0Preset { split: shares(), folds: fold.map(|_| 3), fold, ..pass(input) };
        SIDES.map(|(alias, _)| rows(&options, alias))
    };
    let [train, valid, test] = sides(&loose, None);
    let mut kept = [train, valid].concat();
    kept.sort_unstable();
    let mut of_folds = Vec::new();
    for fold in 0..3 {
        let found = sides(&loose, Some(fold));
        assert!(found == sides(&packed, Some(fold)), "fold {fold}");
        assert!(found[2] == test && !found[1].is_empty(), "the test side is that of no folds");
        let mut both = [&found[0][..], &found[1]].concat();
        both.sort_unstable();
        assert!(both == kept, "what is not tested is in the fold or outside it");
        let options = RewriteOptions {
            path: loose.clone(),
            out: out.clone(),
            sides: SIDES.map(|(name, _)| format!("{fold} {name}")).to_vec(),
            container: Container::Same,
            threads: Some(1),
            dry_run: false,
            share: None,
        };
        let weights = SIDES.map(|(_, weight)| weight).to_vec();
        let split = Split::new(weights, By::Name, Some(Fold { of: 3, number: fold })).unwrap();
        rewrite(std::sync::Arc::new(split), &options, &Default::default(), &mut |_| {}).unwrap();
        for (out, side) in options.outs().iter().zip(&found) {
            assert!(&rows(&pass(out), "") == side, "`split` into {}", out.display());
        }
        of_folds.extend(found[1].iter().cloned());
    }
    of_folds.sort_unstable();
    assert!(of_folds == kept, "each game is in one fold");
    // Without shares, train and val have everything.
    let options = Lc0Preset { folds: Some(3), fold: Some(2), ..pass(&loose) };
    let mut all = [rows(&options, "train"), rows(&options, "val")].concat();
    all.sort_unstable();
    assert!(all == rows(&pass(&loose), ""));
}

#[test]
fn folds_that_cannot_be_are_refused_and_a_state_is_of_its_fold() {
    let of = |folds, fold| config(&Lc0Preset { split: shares(), folds, fold, ..preset(mixed()) });
    for (folds, fold, words) in [
        (Some(3), None, "field `fold`"),
        (None, Some(1), "field `folds`"),
        (Some(3), Some(3), "fold 3 of 3"),
        (Some(1), Some(0), "fold 0 of 1"),
    ] {
        let refused = DataLoader::new(of(folds, fold)).unwrap_err().to_string();
        assert!(refused.contains(words) && refused.contains("split"), "{refused}");
    }
    let original = DataLoader::new(of(Some(3), Some(1))).unwrap();
    hashes(&original, "train", 3);
    let state = original.state().unwrap();
    let refused = DataLoader::new(of(Some(3), Some(2))).unwrap().restore(&state).unwrap_err().to_string();
    assert!(refused.contains("chunk_source_splitter.fold"), "{refused}");
    let resumed = DataLoader::new(of(Some(3), Some(1))).unwrap();
    resumed.restore(&state).unwrap();
    assert_eq!(hashes(&resumed, "train", 6), hashes(&original, "train", 6));
}

fn split_by(by: SplitBy) -> DataLoaderConfig {
    config(&Lc0Preset { split: shares(), split_by: by, ..preset(mixed()) })
}

/// A state as it was before a splitter said what it goes by.
fn as_before(state: &str) -> String {
    let mut state: serde_json::Value = serde_json::from_str(state).unwrap();
    for stage in state["config"]["stage"].as_array_mut().unwrap() {
        if let Some(splitter) = stage.get_mut("chunk_source_splitter") {
            splitter.as_object_mut().unwrap().remove("by").unwrap();
        }
    }
    state.to_string()
}

#[test]
fn a_state_of_before_is_refused_and_resumed_by_choice() {
    let original = DataLoader::new(split_by(SplitBy::File)).unwrap();
    hashes(&original, "train", 3);
    let state = as_before(&without_checksum(&original.state().unwrap()));
    let refused = DataLoader::new(split_by(SplitBy::Name)).unwrap().restore(&state).unwrap_err().to_string();
    for part in ["chunk_source_splitter.by: saved \"file\", configured \"name\"", "by = \"file\"", "--split-by file"] {
        assert!(refused.contains(part), "{refused}");
    }
    let resumed = DataLoader::new(split_by(SplitBy::File)).unwrap();
    resumed.restore(&state).unwrap();
    assert_eq!(hashes(&resumed, "train", 6), hashes(&original, "train", 6));
    let other = DataLoader::new(split_by(SplitBy::Name)).unwrap();
    hashes(&other, "train", 1);
    let other = other.state().unwrap();
    let refused = DataLoader::new(split_by(SplitBy::File)).unwrap().restore(&other).unwrap_err().to_string();
    assert!(!refused.contains("still do"), "only what comes from before has the way back");
}

#[test]
fn a_journal_of_before_is_refused_and_begun_again_by_choice() {
    let folder = tempfile::tempdir().unwrap();
    let run = |by: SplitBy, name: &str, replay: bool| {
        let journal = Some(folder.path().join(name));
        let loader = DataLoader::new(DataLoaderConfig { journal, replay, ..split_by(by) }).unwrap();
        loader.start().map(|()| hashes(&loader, "train", 4))
    };
    let told = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (before, after) = (run(SplitBy::File, "before", false).unwrap(), run(SplitBy::Name, "after", false).unwrap());
    assert!(!told("before").contains("split"), "as it was written before: {}", told("before"));
    assert_eq!(
        told("after").lines().nth(1).map(|line| &line[17..]),
        Some(r#"{"split":{"stage":"split","by":"name"}}"#)
    );
    for replay in [false, true] {
        let refused = run(SplitBy::Name, "before", replay).unwrap_err();
        let is_config = matches!(&refused, Error::Config { field: Some(field), .. } if field == "journal");
        assert!(is_config && refused.to_string().contains("by = \"file\""), "{refused:?}");
        assert!(run(SplitBy::File, "after", replay).unwrap_err().to_string().contains("did not go by file"));
        assert_eq!(run(SplitBy::File, "before", replay).unwrap(), before);
        assert_eq!(run(SplitBy::Name, "after", replay).unwrap(), after);
    }
}

#[test]
fn a_split_into_folders_of_before_is_refused_and_resumed_by_choice() {
    let folder = tempfile::tempdir().unwrap();
    let (games, out) = (folder.path().join("games"), folder.path().join("out"));
    generate(options(&games, 9));
    dealt(&games, &out, By::File).unwrap();
    let refused = dealt(&games, &out, By::Name).unwrap_err().to_string();
    assert!(refused.contains("`--by file` resumes it"), "{refused}");
    assert_eq!(dealt(&games, &out, By::File).unwrap().resumed, 9);
}

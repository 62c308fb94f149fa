//! `append` adds what is new, knows games by their bytes, and leaves the rest of the pack as it is.

use std::fs;

use gristmill_format::g2048::RowForm;
use gristmill_jobs::pack::{Existing, PackOptions, pack};

use crate::drops::*;

#[test]
fn only_new_games_are_added() {
    for (shard_rows, layout) in [(None, None), (Some(7), Some(RowForm::Packed)), (Some(11), None)] {
        let (drop, out) = (drop_of(4), tempfile::tempdir().unwrap());
        let target = out.path().join("pack");
        let first = packed(&PackOptions { shard_rows, layout, ..options(drop.path(), &target) });
        let before = rows(&target);
        let append = PackOptions { existing: Existing::Append, ..options(drop.path(), &target) };
        let untouched = files(&target);
        let again = packed(&append);
        assert_eq!((again.known, again.runs, again.rows), (4, 4, first.rows));
        assert_eq!(files(&target), untouched, "nothing new, nothing written");

        // New games before, between and after; one of the old ones moved, one doubled under another name.
        game(drop.path(), "game000a", &text(6).replace("\"search\"", "\"plan\""));
        game(drop.path(), "zoo/game", &text(20));
        for ending in ["meta.json", "jsonl.gz"] {
            fs::rename(drop.path().join(format!("game001.{ending}")), drop.path().join(format!("moved.{ending}")))
                .unwrap();
            fs::copy(drop.path().join(format!("game002.{ending}")), drop.path().join(format!("copy.{ending}")))
                .unwrap();
        }
        game(drop.path(), "bad", "nonsense");
        let grown = packed(&append);
        assert_eq!((grown.games, grown.known, grown.runs, grown.skipped.len()), (8, 5, 6, 1), "{grown:?}");
        let after = rows(&target);
        assert_eq!(after[..before.len()], before);
        let new: Vec<(u32, u8)> = after[before.len()..].iter().map(|row| (row.run_id, row.valuation_type)).collect();
        assert_eq!(new, [vec![(4, 3); 6], vec![(5, 0); 20]].concat());
        let manifest = manifest(&target);
        assert_eq!((manifest.rows, manifest.runs, manifest.shard_rows), (after.len() as u64, 6, shard_rows));
        assert_eq!(manifest.files.iter().map(|file| file.rows).sum::<u64>(), manifest.rows);
        let (_, _, extras) = content(&target);
        assert_eq!(extras[5].first_row, before.len() as u64 + 6);
        let last = packed(&append);
        assert_eq!((last.known, last.runs, last.skipped.len()), (7, 6, 1));
    }
}

#[test]
fn packs_that_do_not_fit_are_refused_and_left_alone() {
    let (drop, out) = (drop_of(3), tempfile::tempdir().unwrap());
    let target = out.path().join("pack");
    packed(&PackOptions { shard_rows: Some(5), ..options(drop.path(), &target) });
    game(drop.path(), "new", &text(3));
    let append = PackOptions { existing: Existing::Append, ..options(drop.path(), &target) };
    let refused = |options: &PackOptions, words: &str| {
        let before = files(&target);
        let e = pack(options, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains(words), "{e}");
        let mut after = files(&target);
        after.retain(|(name, _)| !name.starts_with('.'));
        assert_eq!(after, before);
    };
    refused(&PackOptions { layout: Some(RowForm::Packed), ..append.clone() }, "--layout");
    refused(&PackOptions { shard_rows: Some(6), ..append.clone() }, "--shard-rows");
    let last = target.join("steps-00003.npy");
    let rows = fs::read(&last).unwrap();
    let mut damaged = rows.clone();
    damaged[400] ^= 1;
    fs::write(&last, &damaged).unwrap();
    refused(&append, "hash");
    fs::write(&last, &rows[..rows.len() - 1]).unwrap();
    refused(&append, "steps-00003.npy");
    fs::write(&last, &rows).unwrap();
    let manifest = fs::read(target.join("manifest.json")).unwrap();
    fs::remove_file(target.join("manifest.json")).unwrap();
    refused(&append, "no manifest");
    fs::write(target.join("manifest.json"), manifest).unwrap();
    assert_eq!(packed(&append).runs, 4, "what was refused can be done once the reason is gone");
}

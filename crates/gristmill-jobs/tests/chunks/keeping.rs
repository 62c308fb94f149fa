//! Weights of games by rules of the options: kept by packing, adding and merging; never used where they do not fit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::PositionSamplingConfig;
use gristmill_engine::kinds::chess::columns::WEIGHER;
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_format::chess::{DiffFocus, Version};
use gristmill_format::container::sums;
use gristmill_format::weigh::Weigher;
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::Existing;
use gristmill_jobs::verify::{VerifyOptions, verify};

use crate::fixture::{games, packed};

const RULE: DiffFocus =
    DiffFocus { q_weight: 2.0, pol_scale: 1.0, alpha: 1.0, beta: 0.0, gamma: 2.0, tau: 0.75, unknown: 0.5 };

fn rule() -> PositionSamplingConfig {
    PositionSamplingConfig {
        diff_focus_q_weight: Some(2.0),
        diff_focus_gamma: 2.0,
        diff_focus_tau: 0.75,
        default_weight: 0.5,
        ..PositionSamplingConfig::default()
    }
}

/// All files of sums, by name.
fn kept(pack: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(pack).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    named.filter(|(name, _)| sums::named(name).is_some()).map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

fn chunk_files(pack: &Path) -> usize {
    ChunkPack::open(pack, Residence::Mapped).unwrap().checksums().count()
}

fn totals(pack: &Path, rule: &DiffFocus) -> Vec<f32> {
    ChunkPack::open(pack, Residence::Mapped).unwrap().weighed().unwrap().totals(rule).to_vec()
}

/// What the games weigh with nothing kept beside them, and then what was kept before is there again.
fn afresh(pack: &Path, rule: &DiffFocus) -> Vec<f32> {
    let before = kept(pack);
    before.keys().for_each(|name| fs::remove_file(pack.join(name)).unwrap());
    let found = totals(pack, rule);
    kept(pack).keys().for_each(|name| fs::remove_file(pack.join(name)).unwrap());
    before.iter().for_each(|(name, bytes)| fs::write(pack.join(name), bytes).unwrap());
    found
}

/// Asserts that sums by both rules lie beside every file, and are what the games weigh.
fn check(pack: &Path) {
    let before = kept(pack);
    assert_eq!(before.len(), 2 * chunk_files(pack), "{:?}", before.keys());
    for rule in [&WEIGHER, &RULE] {
        assert_eq!(totals(pack, rule), afresh(pack, rule));
    }
    assert_eq!(kept(pack), before, "nothing was weighed again");
}

#[test]
fn packs_keep_what_games_weigh_by_the_rules_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    games(&at("from/a"), 1, 6, Version::V6, None);
    games(&at("from/b"), 4, 7, Version::V6, None);
    packed(&at("from/a"), &at("a"), |options| options.weigh = vec![rule(), rule()]).unwrap();
    check(&at("a"));
    assert!(totals(&at("a"), &RULE) != totals(&at("a"), &WEIGHER));
    // A rule that the pack was not made with is found for all its files when games are added.
    packed(&at("from/a"), &at("b"), |_| {}).unwrap();
    assert_eq!(kept(&at("b")).len(), chunk_files(&at("b")));
    packed(&at("from/b"), &at("b"), |options| {
        (options.existing, options.weigh) = (Existing::Append, vec![rule()]);
    })
    .unwrap();
    check(&at("b"));
    // Merged: files that are taken whole and in part keep theirs, and one that has none gets none.
    let merged = |inputs: &[&str], to: &str| {
        let options = MergeOptions::new(inputs.iter().map(|name| at(name)).collect(), at(to));
        merge(&options, &mut |_, _| {}).unwrap()
    };
    packed(&at("from/b"), &at("c"), |options| options.weigh = vec![rule()]).unwrap();
    assert!(merged(&["a", "c"], "ac").known > 0);
    check(&at("ac"));
    packed(&at("from/b"), &at("d"), |_| {}).unwrap();
    merged(&["a", "d"], "ad");
    let of = |rule: &DiffFocus| kept(&at("ad")).keys().filter(|name| sums::named(name).unwrap().1 == rule.id()).count();
    assert_eq!((of(&WEIGHER), of(&RULE)), (chunk_files(&at("ad")), chunk_files(&at("a"))));
    assert_eq!(totals(&at("ad"), &RULE), totals(&at("ac"), &RULE), "the rest is weighed at its first use");
    check(&at("ad"));
    // A pack that is replaced takes its sums with it.
    packed(&at("from/a"), &at("ad"), |options| options.existing = Existing::Overwrite).unwrap();
    assert_eq!(kept(&at("ad")).len(), chunk_files(&at("ad")));
}

#[test]
fn sums_that_do_not_fit_are_named_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (from, pack) = (folder.path().join("from"), folder.path().join("pack"));
    games(&from, 1, 6, Version::V6, None);
    packed(&from, &pack, |options| options.weigh = vec![rule()]).unwrap();
    let faults = || {
        let found = verify(&VerifyOptions::new(vec![pack.clone()]), &mut |_, _| {}).unwrap();
        assert_eq!(found.ok, found.faults.is_empty());
        found.faults.iter().map(|fault| format!("{fault:?}")).collect::<Vec<_>>()
    };
    assert_eq!(faults(), Vec::<String>::new());
    let sound = kept(&pack);
    let own = sound.keys().find(|name| sums::named(name).unwrap().1 == WEIGHER.id()).unwrap().clone();
    let other = sound.keys().find(|name| sums::named(name).unwrap().1 == RULE.id()).unwrap().clone();
    let put = |name: &str, bytes: &[u8]| fs::write(pack.join(name), bytes).unwrap();
    let mut damaged = sound[&other].clone();
    damaged[32] ^= 1;
    for wrong in [&damaged[..], &sound[&own], b"", &sound[&other][1..]] {
        put(&other, wrong);
        let found = faults();
        assert!(found.len() == 1 && found[0].contains(&other) && found[0].contains("not used"), "{found:?}");
        totals(&pack, &RULE);
        assert_eq!(kept(&pack), sound, "made again");
    }
    put("games-00077.0000000000000001.sums", &sound[&own]);
    let found = faults();
    assert!(found.len() == 1 && found[0].contains("there is no games-00077.chunks"), "{found:?}");
    fs::remove_file(pack.join("games-00077.0000000000000001.sums")).unwrap();
    // Sound to look at, and wrong: found by weighing the games again.
    let index = u64::from_le_bytes(sound[&own][8..16].try_into().unwrap());
    let mut values: Vec<f32> =
        sound[&own][32..].as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    values.truncate(values.len() - 2);
    values[1] += 1.0;
    put(&own, &sums::write(index, WEIGHER.id(), &values));
    let found = faults();
    assert!(found.len() == 1 && found[0].contains("game 1") && found[0].contains("weighs"), "{found:?}");
}

#[test]
fn rules_that_say_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (from, pack) = (folder.path().join("from"), folder.path().join("pack"));
    games(&from, 1, 1, Version::V6, None);
    let refused = |rule: PositionSamplingConfig| {
        packed(&from, &pack, |options| options.weigh = vec![rule]).unwrap_err().to_string()
    };
    let plain = refused(PositionSamplingConfig::default());
    assert!(plain.contains("weigh") && plain.contains("diff_focus_q_weight"), "{plain}");
    let odd = refused(PositionSamplingConfig { diff_focus_alpha: f32::NAN, ..rule() });
    assert!(odd.contains("weigh") && odd.contains("finite"), "{odd}");
    assert!(!pack.exists());
}

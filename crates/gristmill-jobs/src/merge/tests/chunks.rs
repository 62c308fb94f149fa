//! Packs of a few chess games into one.

use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};

use super::super::chunks::Merging as OfGames;
use super::*;

impl Packs {
    /// Plays chess games from number `first` on, and packs them in files of some 25 positions.
    pub(super) fn chess(&self, name: &str, first: u64, games: u64) {
        let folder = self.at(&format!("{name}-games"));
        let options = ChessOptions {
            folder: folder.clone(),
            games,
            first,
            seed: 5,
            plies_max: 20,
            version: Version::V6,
            games_per_tar: None,
        };
        let mut generator = ChessGenerator::new(options).unwrap();
        while generator.write_next().unwrap().is_some() {}
        let options = PackOptions { shard_rows: Some(25), workers: 1, ..PackOptions::new(&folder, self.at(name)) };
        pack(&options, &mut |_| {}).unwrap();
    }

    /// `a`: games 1 to 4; `b`: game 6; `c`: game 3, which `a` has.
    fn of_games() -> Self {
        let packs = Packs::new();
        packs.chess("a", 1, 4);
        packs.chess("b", 6, 1);
        packs.chess("c", 3, 1);
        packs
    }
}

#[test]
fn marks_go_where_their_games_go() {
    let packs = Packs::of_games();
    ["a", "b", "c"].iter().for_each(|name| {
        ruled(&packs.at(name), "early", "ply < 6 AND black_to_move = 1");
        ruled(&packs.at(name), "good", "best_q > 0.1");
        ruled(&packs.at(name), "numbered", "frame.frame < 9");
    });
    // After `c` the games of `a` around the third are taken, and after `a` none of `c`.
    for inputs in [&["a", "b", "c"][..], &["c", "a", "b"], &["b", "c", "a"]] {
        let options = MergeOptions { overwrite: true, ..packs.options(inputs, "all") };
        let plan = merge(&MergeOptions { dry_run: true, ..options.clone() }, &mut |_, _| {}).unwrap();
        let done = merge(&options, &mut |_, _| {}).unwrap();
        assert_eq!((done.runs, done.known, &done.marks), (5, 1, &vec!["early".to_owned(), "good".into()]));
        says(&done.lost, "numbered", "`frame.frame`");
        assert_eq!((done.layout, done.rows), ("chess", opened(&packs.at("all")).total()));
        assert_eq!((plan.runs, plan.marks, plan.lost), (done.runs, done.marks, done.lost));
        are_as_found(&packs.at("all"), &["early", "good"]);
    }
    // Games have other places in files of which some games were passed over: who opens the pack compares them.
    assert_eq!(packs.merged(&["all", "c"], "opened").runs, 5);
    fs::remove_dir_all(packs.at("c").join("marks")).unwrap();
    assert_eq!(packs.merged(&["a", "c"], "known").marks, ["early", "good"], "no game of `c` is taken");
}

#[test]
fn an_output_with_rows_is_left_alone_and_one_with_games_replaced() {
    let packs = Packs::of_games();
    packs.played("rows", 1, 1, None);
    let over = |output: &str| MergeOptions { overwrite: true, ..packs.options(&["a", "b"], output) };
    assert!(refused(&over("rows")).contains("a pack of something else"));
    assert!(refused(&packs.options(&["a", "b"], "c")).contains("a pack already"));
    assert_eq!(merge(&over("c"), &mut |_, _| {}).unwrap().runs, 5);
}

#[test]
fn a_new_pack_says_how_all_came_to_be() {
    let packs = Packs::of_games();
    packs.merged(&["a", "b"], "ab");
    let manifest = |name: &str| gristmill_engine::chunks::manifest::Manifest::read(&packs.at(name)).unwrap();
    assert_eq!(manifest("ab").lineage[0].from, [manifest("a").lineage, manifest("b").lineage]);
    let path = packs.at("b").join("manifest.json");
    let mut told: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    told.as_object_mut().unwrap().remove("lineage");
    fs::write(&path, told.to_string()).unwrap();
    packs.merged(&["a", "b"], "untold");
    assert_eq!(manifest("untold").lineage[0].from[1][0].job, "unrecorded");
}

#[test]
fn what_was_written_is_read_back() {
    let packs = Packs::of_games();
    let options = packs.options(&["a", "b"], "ab");
    let mut merging = OfGames::new(&options).unwrap();
    let (staging, _) = Staging::open(&options.output, pack::STAGING, JOB).unwrap();
    merging.write(&staging, &mut |_, _| {}).unwrap();
    staging.publish(&[]).unwrap();
    merging.read_back().unwrap();
    // A sound pack of as many games in its place.
    let whole = |name: &str| {
        let mut files: Vec<_> = fs::read_dir(packs.at(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap()))
    };
    let own: Vec<_> = whole("ab").collect();
    packs.chess("other", 20, 5);
    own.iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
    whole("other").for_each(|(path, bytes)| fs::write(packs.at("ab").join(path.file_name().unwrap()), bytes).unwrap());
    assert!(merging.read_back().unwrap_err().to_string().contains("inputs were kept"));
    whole("ab").for_each(|(path, _)| fs::remove_file(path).unwrap());
    own.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    merging.read_back().unwrap();
    let path = packs.at("ab").join("games-00000.chunks");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(merging.read_back().unwrap_err().to_string().contains("games-00000.chunks"));
}

//! Packs of a few small games: names of valuations, jobs that go on, and what a job says of its own games.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::chunks::manifest::Manifest as OfGames;
use gristmill_engine::pack::manifest::{Manifest, Skipped};
use gristmill_engine::pack::open::valuations;
use gristmill_engine::pack::shards;
use gristmill_format::chess::Version;
use gristmill_format::container::gzip::compress;
use gristmill_format::g2048::StepRow;
use gristmill_generate::{ChessGenerator, ChessOptions};

use super::assemble::Standing;
use super::*;

/// A game of 2048, with a step for each of these valuations.
fn game(folder: &Path, name: &str, valuations: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    let line = |(step, valuation): (usize, &&str)| {
        format!(
            "{{\"seed\":7,\"step_index\":{step},\"max_rank\":3,\"move\":\"left\",\"valuation_type\":\"{valuation}\",\
             \"valuation\":0.034000,\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0],\
             \"branch_evs\":{{\"up\":null,\"left\":0.5{step:05},\"right\":0.250000,\"down\":-0.125000}}}}\n"
        )
    };
    let text: String = valuations.iter().enumerate().map(line).collect();
    let sidecar =
        format!("{{\"seed\": 7, \"num_moves\": {}, \"score\": 100, \"max_tile\": 8, \"depth\": 6}}", valuations.len());
    fs::write(folder.join(format!("{name}.meta.json")), sidecar).unwrap();
    fs::write(folder.join(format!("{name}.jsonl.gz")), compress(1, text.as_bytes()).unwrap()).unwrap();
}

/// One that nobody can read.
fn bad(folder: &Path, name: &str) {
    game(folder, name, &["search"]);
    fs::write(folder.join(format!("{name}.jsonl.gz")), "no game").unwrap();
}

fn chess(folder: &Path, first: u64, games: u64) {
    let folder = folder.to_owned();
    let version = Version::V6;
    let options = ChessOptions { folder, games, first, seed: 5, plies_max: 10, version, games_per_tar: None };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

fn packed(input: &Path, output: &Path, existing: Existing) -> Result<Packed> {
    pack(&PackOptions { existing, ..options(input, output) }, &mut |_| {})
}

/// With a file for each game of chess, after which a job that is stopped goes on.
fn options(input: &Path, output: &Path) -> PackOptions {
    PackOptions { workers: 1, shard_rows: Some(5), ..PackOptions::new(input, output) }
}

/// The name that each row of a pack has for its valuation.
fn names(pack: &Path) -> Vec<String> {
    let known = valuations(pack).unwrap();
    let rows = |shard: shards::Shard| {
        let bytes = fs::read(&shard.path).unwrap();
        let rows = bytes[shard.offset as usize..].as_chunks().0.iter();
        rows.map(|row| known.names()[usize::from(StepRow::from_aligned(row).valuation_type)].clone())
            .collect::<Vec<_>>()
    };
    shards::list(pack).unwrap().into_iter().flat_map(rows).collect()
}

#[test]
fn rows_keep_the_names_of_their_valuations_whichever_game_has_them_first() {
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let games = [&["deep", "wide", "deep"][..], &["wide", "deep", "wide"], &["new", "wide", "deep", "deep"], &["deep"]];
    for (i, valuations) in games.iter().enumerate() {
        game(input.path(), &format!("game{i}"), valuations);
    }
    packed(input.path(), output.path(), Existing::Refuse).unwrap();
    assert_eq!(names(output.path()), games.concat());
}

#[test]
fn a_job_counts_and_tells_its_own_games_and_not_those_before() {
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    game(input.path(), "a", &["search"; 3]);
    game(input.path(), "b", &["search"; 2]);
    bad(input.path(), "c");
    packed(input.path(), output.path(), Existing::Refuse).unwrap();
    ["c.meta.json", "c.jsonl.gz"].iter().for_each(|name| fs::remove_file(input.path().join(name)).unwrap());
    game(input.path(), "d", &["search"; 4]);
    bad(input.path(), "e");
    let options = PackOptions { existing: Existing::Append, ..options(input.path(), output.path()) };
    let mut told = Vec::new();
    let done = pack(&options, &mut |progress| told.push((progress.done, progress.skipped, progress.rows))).unwrap();
    assert_eq!((done.runs, told.last().unwrap().1), (3, 1), "`e` alone, and `c` before: {told:?}");
    let manifest = Manifest::read(output.path()).unwrap().unwrap();
    let sources: Vec<u64> = manifest.lineage.iter().map(|step| step.sources.as_ref().unwrap().games).collect();
    assert_eq!((manifest.runs, sources, manifest.skipped.len()), (3, vec![2, 1], 2));

    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    chess(input.path(), 1, 3);
    packed(input.path(), output.path(), Existing::Refuse).unwrap();
    chess(input.path(), 4, 2);
    packed(input.path(), output.path(), Existing::Append).unwrap();
    let steps = OfGames::read(output.path()).unwrap().lineage;
    assert_eq!(steps.iter().map(|step| step.sources.as_ref().unwrap().games).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn a_game_that_is_left_out_again_takes_the_place_of_its_entry() {
    let left = |file: &str, detail: &str| {
        let (file, kind, detail) = (file.into(), "truncated".into(), detail.into());
        Skipped { file, kind, line: None, column: None, offset: None, detail }
    };
    let mut standing = Standing::default();
    ["a", "b"].iter().for_each(|file| standing.skip(left(file, "before")));
    standing.skipped_before = 2;
    standing.skip(left("c", "now"));
    standing.skip(left("c", "once more"));
    assert_eq!((standing.skipped.len(), standing.skipped_before), (3, 2), "`c` is of this job");
    standing.skip(left("a", "now"));
    assert_eq!((standing.skipped.len(), standing.skipped_before), (3, 1));
    assert_eq!(standing.skipped.iter().map(|skipped| &*skipped.file).collect::<Vec<_>>(), ["b", "c", "a"]);
}

/// A job of chess that was stopped when it had seen four games.
fn stopped() -> (tempfile::TempDir, tempfile::TempDir, Vec<PathBuf>) {
    let (input, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    chess(input.path(), 1, 4);
    let options = options(input.path(), output.path());
    let stop = options.stop.clone();
    let e = pack(&options, &mut |_| stop.store(true, Ordering::Relaxed)).unwrap_err();
    assert!(matches!(e, Error::Stopped), "{e}");
    let mut games: Vec<_> = fs::read_dir(input.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    games.sort();
    (input, output, games)
}

#[test]
fn a_job_goes_on_only_with_the_games_that_it_has_seen() {
    let (input, output, _) = stopped();
    assert_eq!(packed(input.path(), output.path(), Existing::Resume).unwrap().resumed, 4);
    for change in
        [|game: &Path| fs::remove_file(game), |game: &Path| fs::rename(game, game.with_file_name("training.0.gz"))]
    {
        let (input, output, games) = stopped();
        change(&games[2]).unwrap();
        let e = packed(input.path(), output.path(), Existing::Resume).unwrap_err().to_string();
        assert!(e.contains("added, removed or renamed"), "{e}");
        assert!(!output.path().join("manifest.json").exists());
    }
}

//! Marks of a chunk pack: frames that a rule accepts, held against the records themselves; what grew, was damaged or is foreign.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::marks::{self, Fit};
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_format::chess::{Frame, Version};
use gristmill_jobs::mark::{MarkOptions, Marked, Which, mark, update};
use gristmill_jobs::pack::Existing;

use crate::fixture::{games, input, packed, records};

fn open(folder: &Path) -> (Arc<ChunkPack>, Arc<dyn PackTable>) {
    let pack = Arc::new(ChunkPack::open(folder, Residence::Mapped).unwrap());
    (Arc::clone(&pack), pack)
}

fn rule(
    pack: &Arc<dyn PackTable>,
    name: &str,
    rule: &str,
    change: impl Fn(&mut MarkOptions),
) -> gristmill_engine::Result<Marked> {
    let mut options = MarkOptions::new(name);
    change(&mut options);
    mark(pack, &Which::Rule(rule.to_owned()), &options, &mut |_, _| {})
}

/// Number of each frame, of its game and within it, where `keep` holds for its record.
fn expected(games: &[Vec<u8>], keep: impl Fn(usize, usize, Frame<'_>) -> bool) -> Vec<u64> {
    let mut at = 0;
    let mut found = Vec::new();
    for (game, records) in games.iter().enumerate() {
        let size = if records[0] == 7 { Version::V7.bytes() } else { Version::V6.bytes() };
        for (ply, record) in records.chunks_exact(size).enumerate() {
            found.extend(keep(game, ply, Frame::new(record).unwrap()).then_some(at));
            at += 1;
        }
    }
    found
}

fn rows(selection: &Selection) -> Vec<u64> {
    (0..selection.rows().len()).map(|i| selection.rows().row(i)).collect()
}

#[test]
fn rules_mark_the_frames_that_the_records_say_for_any_number_of_threads() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let folder = out.path().join("pack");
    packed(input.path(), &folder, |_| {}).unwrap();
    let originals = records(&folder, &[".chunks"]);
    let (pack, markable) = open(&folder);
    let before: Vec<Vec<u8>> = marks_free(&folder);
    let all = Selection::all(pack);
    let men = |frame: &Frame<'_>| (0..12).map(|plane| frame.plane(plane).count_ones()).sum::<u32>();
    let late = expected(&originals, |_, ply, frame| ply > 5 && frame.plies_left() < 12.0);
    for workers in [1, 3] {
        let said = rule(&markable, "late", "ply > 5 AND plies_left < 12 -- late", |options| {
            (options.workers, options.replace) = (workers, true);
        });
        let said = said.unwrap();
        assert_eq!((said.marked, said.frames), (late.len() as u64, all.rows().len()));
        assert!(!late.is_empty() && said.marked < said.frames);
        assert_eq!(rows(&all.marked("late").unwrap()), late);
    }
    let rest = all.without("late").unwrap();
    assert_eq!(rest.rows().len() as usize + late.len(), all.rows().len() as usize);
    assert_ne!(rest.input().identity, all.input().identity);
    assert_eq!(rest.input().table.len(), all.rows().len());

    rule(&markable, "few", "men < 31 OR frame.version = 7 AND game.frames % 2 = 0", |_| {}).unwrap();
    let lengths: Vec<usize> =
        originals.iter().map(|game| game.len() / if game[0] == 7 { 8396 } else { 8356 }).collect();
    let few = expected(&originals, |game, _, frame| {
        men(&frame) < 31 || frame.version() == 7 && lengths[game].is_multiple_of(2)
    });
    let marked = all.marked("few").unwrap();
    assert_eq!(rows(&marked), few);
    let of_game =
        |game: u64| few.iter().filter(|row| marked.game_of(**row).is_some_and(|found| found.0 == game)).count() as u64;
    for place in 0..marked.games().len() {
        assert_eq!(marked.frames_of(place), of_game(place as u64));
    }
    rule(&markable, "black", "black_to_move AND game_id IN (SELECT id FROM games WHERE result <> 0)", |_| {}).unwrap();
    let won = all.query("result <> 0", &[]).unwrap();
    let marked = all.marked("black").unwrap();
    assert_eq!(marked.rows().intersect(won.rows()), **won.marked("black").unwrap().rows());
    // Selections of marked frames resume as others do.
    let (train, val) = all.marked("few").unwrap().split(0.5, 3).unwrap();
    assert_eq!(train.rows().len() + val.rows().len(), few.len() as u64);
    let listed = marks::list(&*markable).unwrap();
    assert_eq!(
        listed.iter().map(|mark| (&*mark.name, mark.fit)).collect::<Vec<_>>(),
        [("black", Fit::Fits), ("few", Fit::Fits), ("late", Fit::Fits)]
    );
    for name in ["black", "few", "late"] {
        marks::remove(&*markable, name).unwrap();
    }
    assert!(!folder.join("marks").exists());
    assert!(marks_free(&folder) == before, "the pack itself is as it was");
}

/// The bytes of the files of a pack.
fn marks_free(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let folder = out.path().join("pack");
    packed(input.path(), &folder, |_| {}).unwrap();
    let (pack, markable) = open(&folder);
    for (text, word) in [
        ("best_x > 1", "no such column: best_x"),
        ("version = 6", "`frame.` or `game.`"),
        ("ply > ?", "question mark"),
        ("1) UNION SELECT 1 --", "UNION"),
        ("", "syntax error"),
        ("ply = 1); DELETE FROM games; --", "DELETE"),
    ] {
        let e = rule(&markable, "x", text, |_| {}).unwrap_err();
        assert!(
            matches!(e, Error::Config { .. }) && e.to_string().contains(word) || word == "UNION" || word == "DELETE",
            "{text}: {e}"
        );
    }
    for name in ["", "../x", ".x", "a/b", &"x".repeat(65)] {
        assert!(rule(&markable, name, "1", |_| {}).unwrap_err().to_string().contains("is no name"), "{name}");
    }
    let stopped = rule(&markable, "x", "1", |options| options.stop.store(true, Ordering::Relaxed));
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(rule(&markable, "x", "ply = 0", |options| options.dry_run = true).unwrap().marked, 11);
    assert!(!folder.join("marks").exists(), "nothing was written");
    rule(&markable, "x", "ply = 0", |_| {}).unwrap();
    assert!(rule(&markable, "x", "1", |_| {}).unwrap_err().to_string().contains("--replace"));
    let all = Selection::all(pack);
    let told = all.marked("y").unwrap_err().to_string();
    assert!(told.contains("there are: x"), "{told}");
    // A damaged file, and one of another pack.
    let path = folder.join("marks/x.mark");
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[60] ^= 4;
    fs::write(&path, &damaged).unwrap();
    let e = all.marked("x").unwrap_err().to_string();
    assert!(e.contains("x.mark, byte ") && e.contains("checksum"), "{e}");
    assert_eq!(marks::list(&*markable).unwrap()[0].fit, Fit::Damaged);
    fs::write(&path, vec![0; 3 << 20]).unwrap();
    assert!(all.marked("x").unwrap_err().to_string().contains("more than any mark has"));
    let other = out.path().join("other");
    packed(&input.path().join("tars"), &other, |_| {}).unwrap();
    fs::create_dir(other.join("marks")).unwrap();
    fs::write(other.join("marks/x.mark"), &whole).unwrap();
    let (foreign, markable) = open(&other);
    let e = Selection::all(foreign).without("x").unwrap_err().to_string();
    assert!(e.contains("x.mark, byte 32: mark_of_another_pack"), "{e}");
    assert_eq!(marks::list(&*markable).unwrap()[0].fit, Fit::Foreign);
    // A game that is damaged ends the marking, with its place.
    let file = folder.join("games-00000.chunks");
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    let (_, markable) = open(&folder);
    let e = rule(&markable, "z", "best_q > 0", |_| {}).unwrap_err().to_string();
    assert!(e.contains("games-00000.chunks"), "{e}");
    assert!(!folder.join("marks/z.mark").exists());
}

#[test]
fn a_pack_that_grew_asks_for_an_update_which_asks_the_new_frames_only() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let folder = out.path().join("pack");
    packed(input.path(), &folder, |_| {}).unwrap();
    let (pack, markable) = open(&folder);
    let before = markable.total();
    rule(&markable, "late", "plies_left < 9", |_| {}).unwrap();
    rule(&markable, "longest", "game_id IN (SELECT id FROM games ORDER BY frames DESC, id DESC LIMIT 3)", |_| {})
        .unwrap();
    let given = Selection::all(pack).rows().intersect(&gristmill_engine::runtime::intervals::Intervals::all(4));
    mark(&markable, &Which::Given(given), &MarkOptions::new("given"), &mut |_, _| {}).unwrap();
    games(input.path(), 80, 4, Version::V6, None);
    packed(input.path(), &folder, |options| options.existing = Existing::Append).unwrap();
    let (pack, markable) = open(&folder);
    let all = Selection::all(pack.clone());
    let e = all.marked("late").unwrap_err().to_string();
    assert!(e.contains("mark_before_growth") && e.contains("--update"), "{e}");
    let said = update(&markable, &MarkOptions::new("late"), &mut |_, _| {}).unwrap();
    assert_eq!((said.asked, said.frames), (markable.total() - before, markable.total()));
    let extended = rows(&all.marked("late").unwrap());
    rule(&markable, "late", "plies_left < 9", |options| options.replace = true).unwrap();
    assert_eq!(rows(&all.marked("late").unwrap()), extended);
    // A rule that compares games is applied to all frames again.
    let said = update(&markable, &MarkOptions::new("longest"), &mut |_, _| {}).unwrap();
    assert_eq!(said.asked, markable.total());
    assert_eq!(update(&markable, &MarkOptions::new("longest"), &mut |_, _| {}).unwrap().asked, 0);
    let e = update(&markable, &MarkOptions::new("given"), &mut |_, _| {}).unwrap_err().to_string();
    assert!(e.contains("mark them again"), "{e}");
}

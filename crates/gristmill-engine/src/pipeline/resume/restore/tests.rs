//! States of joined lanes, of files that came at the very draw of a copy, and of rows of solid files -> what a chain takes back.

use gristmill_format::container::gzip;
use gristmill_stages::config::MemorySize;

use super::*;
use crate::pipeline::loader::launch::tests::still::{Still, games, joined, options};
use crate::pipeline::resume::vanished::{Missing, Vanished};
use crate::preset::{Lc0Preset, lc0};

/// A chain with this state, and nothing lost, that has not begun.
fn restored(still: Still, state: &ChainState) -> Still {
    still.search();
    assert!(still.rosters().iter().all(|roster| roster.ready()));
    still.chain().restore(state, &Lost::default()).unwrap();
    still
}

#[test]
fn caches_of_joined_inputs_are_taken_back_in_each_lane() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(one.path(), 1, 12, None);
    games(two.path(), 50, 12, None);
    let cached = Lc0Preset { position_cache: Some(60), lanes: Some(4), ..options(&[one.path(), two.path()]) };
    let original = Still::new(&joined(&cached));
    original.search();
    original.batches(12);
    let state = original.chain().state();
    let again = restored(Still::new(&joined(&cached)), &state);
    assert!(again.chain().lock().fold.refills.unread() > 0, "the cache holds rows");
    let first = again.batches(1);
    assert_eq!(again.chain().lock().fold.refills.unread(), 0, "it is still until the cache has its rows");
    assert_eq!([first, again.batches(12)].concat(), original.batches(13));
}

#[test]
fn rows_of_solid_files_are_read_file_by_file_before_anything_flows_and_who_looks_reads_none() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 12, Some(1));
    let plain = Lc0Preset { reservoir: Some(40), ..options(&[folder.path()]) };
    for solid in [false, true] {
        if solid {
            for tar in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
            {
                let bytes = gzip::compress(1, &std::fs::read(&tar).unwrap()).unwrap();
                std::fs::write(tar.with_extension("tar.gz"), bytes).unwrap();
                std::fs::remove_file(tar).unwrap();
            }
        }
        let config = lc0(&Lc0Preset { max_solid_bytes: Some(MemorySize(64 << 20)), ..plain.clone() }).unwrap();
        let original = Still::new(&config);
        original.search();
        original.batches(3);
        let state = original.chain().state();
        let again = restored(Still::new(&config), &state);
        let unread = || again.chain().lock().fold.refills.unread();
        assert!(unread() > 8, "{} chunks", unread());
        let first = again.batches(1);
        assert_eq!(unread() == 0, solid, "{} chunks are not read so far", unread());
        assert_eq!([first, again.batches(3)].concat(), original.batches(4));
        let seeing = restored(Still::seeing(&config), &state);
        assert_eq!(seeing.chain().lock().fold.refills.unread(), 0);
    }
}

#[test]
fn files_that_came_at_the_very_draw_of_a_copy_are_taken_in_once_and_not_opened_where_they_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 3, None);
    let config = lc0(&options(&[folder.path()])).unwrap();
    let original = Still::new(&config).begun();
    games(folder.path(), 51, 5, Some(5));
    games(folder.path(), 60, 1, None);
    original.search();
    original.turn();
    let state = original.chain().state();
    let saved = &state.lanes[&0].branches[0];
    assert_eq!(saved.admissions.iter().map(|came| (came.at, came.id)).collect::<Vec<_>>(), [(0, 3), (0, 4)]);
    let tar = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let tar = tar.into_iter().find(|path| path.extension().is_some_and(|end| end == "tar")).unwrap();
    let id = original.roster().files().iter().find(|file| file.name.ends_with(".tar")).unwrap().id;
    for lost in [false, true] {
        let again = Still::resumed(&config, original.state(), Missing::Skip);
        again.search();
        assert!(again.roster().ready());
        let mut without = Lost::default();
        if lost {
            std::fs::remove_file(&tar).unwrap();
            let vanished = Vanished { name: "a tar".into(), why: "is gone".into(), chunks: 5, rows: 0 };
            without.0.insert((0, id), vanished);
        }
        again.chain().restore(&state, &without).unwrap();
        let inner = again.chain().lock();
        assert_eq!((inner.branches[0].admissions.len(), inner.branches[0].replay.len()), (2, 0));
    }
}

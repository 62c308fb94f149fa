//! A stream and rows of a pack of the same games behind one trait: passes, states, and what one kind alone can do.

use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, IndexConfig};
use gristmill_engine::pipeline::{Reads, SightOptions, Sighted};
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{ControlRequest, DataLoader, Engine, Error, IndexLoader, Missing, Next};
use serde_json::Value;

use crate::fixture::{input, packed};

/// A stream of the games of a folder, and rows of a pack of them: two passes over each.
fn engines(games: &Path, pack: &Path) -> [Box<dyn Engine>; 2] {
    let stream = Lc0Preset {
        directories: vec![Weighted { directory: games.to_owned(), weight: 1.0 }],
        epochs: Some(2),
        batch_size: 40,
        seed: Some(5),
        watch: Some(false),
        index: Some("off".into()),
        ..Lc0Preset::default()
    };
    let rows = IndexConfig {
        encoder: EncoderConfig::Chess,
        batch_size: 40,
        seed: Some(5),
        epochs: Some(2),
        apart: true,
        ..IndexConfig::default()
    };
    let all = Selection::all(Arc::new(ChunkPack::open(pack, Residence::Mapped).unwrap()));
    [Box::new(DataLoader::new(lc0(&stream).unwrap()).unwrap()), Box::new(IndexLoader::new(all.input(), rows).unwrap())]
}

/// Takes the next batch; its number, and none at the end.
fn next(engine: &dyn Engine) -> Option<u64> {
    match engine.next("", None).unwrap() {
        Next::Batch(batch) => Some(batch.number),
        Next::End => None,
        Next::Pending => panic!("it was to wait"),
    }
}

#[test]
fn passes_end_and_resume_by_one_rule() {
    let (games, pack) = (input(), tempfile::tempdir().unwrap());
    packed(games.path(), pack.path(), |_| {}).unwrap();
    for (whole, resumed) in engines(games.path(), pack.path()).into_iter().zip(engines(games.path(), pack.path())) {
        let mut ended = Vec::new();
        let mut state = None;
        while let Some(number) = next(&*whole) {
            assert_eq!(number, ended.len() as u64);
            ended.push(whole.passes_ended(""));
            if ended.len() == 2 {
                state = Some(whole.state().unwrap());
            }
        }
        assert!(ended.is_sorted() && ended.last() == Some(&2) && ended.contains(&1), "{ended:?}");
        resumed.restore(&state.unwrap(), Missing::Refuse).unwrap();
        assert_eq!(resumed.passes_ended(""), 0, "before the start");
        let mut place = 2;
        while let Some(number) = next(&*resumed) {
            assert_eq!((number, resumed.passes_ended("")), (place as u64, ended[place] - ended[1]));
            place += 1;
        }
        assert_eq!(place, ended.len());
        assert_eq!((whole.seed(), whole.ranks(), whole.stop().len()), (Some(5), (0, 1), 0));
    }
}

#[test]
fn what_one_kind_cannot_do_names_the_kind_that_can() {
    let (games, pack) = (input(), tempfile::tempdir().unwrap());
    packed(games.path(), pack.path(), |_| {}).unwrap();
    let [stream, rows] = engines(games.path(), pack.path());
    assert!(matches!(stream.seek(1), Err(Error::Unsupported(text)) if text.contains("only a loader of rows")));
    assert!(matches!(rows.stages(), Err(Error::Unsupported(text)) if text.contains("has no stages")));
    assert!(stream.stages().is_ok() && rows.seek(0).is_ok());
    assert!((stream.rows(), stream.batches(), stream.pass(), stream.length()) == (None, None, None, None));
    assert!(rows.rows().is_some() && rows.batches().is_some() && rows.pass() == Some(0) && rows.length().is_some());
    let options = SightOptions { output: "train".into(), first: 0, reads: Reads::Nothing };
    assert!(matches!(rows.sight(&options), Err(Error::UnknownAlias { .. })));
    let options = SightOptions { output: String::new(), ..options };
    assert!(matches!(rows.sight(&options), Ok(Sighted::Rows(_))));
    assert!(
        rows.bucket_metrics(0, false).is_err() && rows.control(&ControlRequest::QueryChunkAnchor).unwrap().is_empty()
    );

    let [of_stream, of_rows] = [stream.state().unwrap(), rows.state().unwrap()];
    for (state, of, expected) in [(&of_stream, "stream", "it is of a stream"), (&of_rows, "rows", "it is of rows")] {
        let said: Value = serde_json::from_str(state).unwrap();
        assert_eq!((&said["gristmill_state"], &said["of"]), (&4.into(), &of.into()));
        let [fresh_stream, fresh_rows] = engines(games.path(), pack.path());
        let fresh = if of == "stream" { fresh_rows } else { fresh_stream };
        let refused = fresh.restore(state, Missing::Refuse).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

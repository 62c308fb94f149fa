//! Self-play written by the recorder: shards as existing readers expect them, and what a kill at any moment leaves.

use std::fs;
use std::path::Path;

use gristmill_engine::Error;
use gristmill_engine::pack::metadata::{Metadata, Run};
use gristmill_engine::pack::recorder::{Recorder, RecorderOptions};
use gristmill_format::Kind;
use gristmill_format::g2048::form::{Form, Step};

use crate::fixture::{open, runs};
use crate::forms::interleaved;

fn options(embedding_size: Option<usize>, append: bool) -> RecorderOptions {
    RecorderOptions { shard_max_steps: 50, embedding_size, append }
}

fn bytes(steps: &[Step]) -> Vec<u8> {
    let mut out = Vec::new();
    steps.iter().for_each(|step| Form::SelfPlay.write(step, &mut out));
    out
}

/// The vector of a step: its run and its number, and their sum.
fn vectors(steps: &[Step]) -> Vec<u8> {
    let of = |step: &Step| [step.run_id as f32, step.row.step_index as f32, 0.5];
    steps.iter().flat_map(of).flat_map(f32::to_le_bytes).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything that a reader finds, in order of shards.
fn read(folder: &Path, with_vectors: bool) -> (Vec<u8>, Vec<u8>) {
    let all = open(folder).unwrap();
    assert_eq!(all.pack().form(), Form::SelfPlay.name());
    let places: Vec<u64> = (0..all.rows().len()).collect();
    let vectors = if with_vectors { all.take_embeddings(&places).unwrap() } else { Vec::new() };
    (all.take(&places).unwrap(), vectors)
}

#[test]
fn shards_are_filled_exactly_and_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let all = interleaved(6);
    let mut recorder = Recorder::open(folder.path(), options(Some(3), false)).unwrap();
    recorder.put_session("ts", "1760000000").unwrap();
    for some in all.chunks(17) {
        recorder.write(&bytes(some), &vectors(some)).unwrap();
    }
    for run in runs(6) {
        recorder.put_run(&Run { max_score: 1, ..run.clone() }).unwrap();
        recorder.put_run(&run).unwrap();
    }
    recorder.put_session("model_id", "a").unwrap();
    recorder.put_session("model_id", "b").unwrap();
    assert_eq!((recorder.session("model_id").unwrap().as_deref(), recorder.session("x").unwrap()), (Some("b"), None));
    recorder.finish().unwrap();

    let shards = all.len().div_ceil(50);
    let mut expected: Vec<String> = (1..=shards).map(|i| format!("embeddings-{i:06}.npy")).collect();
    expected.push("metadata.db".into());
    expected.extend((1..=shards).map(|i| format!("steps-{i:06}.npy")));
    assert_eq!(names(folder.path()), expected);
    assert_eq!(read(folder.path(), true), (bytes(&all), vectors(&all)));
    let metadata = Metadata::open(folder.path().join("metadata.db")).unwrap();
    let session = metadata.session().unwrap();
    assert_eq!((&*session["model_id"], &*session["ts"], session.len()), ("b", "1760000000", 2));
    let mut found = Vec::new();
    metadata
        .runs(&mut |run| {
            found.push(run);
            Ok(())
        })
        .unwrap();
    assert_eq!(found, runs(6));

    // The bytes that existing readers know.
    let first = fs::read(folder.path().join("steps-000001.npy")).unwrap();
    let text = "{'descr': [('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (16,)), ], \
                'fortran_order': False, 'shape': (50, ), }";
    assert_eq!(&first[..10], b"\x93NUMPY\x01\x00\xb6\x00");
    assert_eq!(std::str::from_utf8(&first[10..192]).unwrap(), format!("{text:<181}\n"));
    assert_eq!(first.len(), 192 + 50 * 28);
    let first = fs::read(folder.path().join("embeddings-000001.npy")).unwrap();
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 3, ), }";
    assert_eq!(std::str::from_utf8(&first[10..128]).unwrap(), format!("{text:<117}\n"));
}

/// A recorder that is dropped is a recorder that was killed: nothing runs.
#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_told_to_be_there() {
    let all = interleaved(4);
    for with_vectors in [false, true] {
        for moment in ["in a shard", "between the renames", "in a row", "before the first"] {
            let folder = tempfile::tempdir().unwrap();
            let size = with_vectors.then_some(3);
            let mut recorder = Recorder::open(folder.path(), options(size, false)).unwrap();
            let part = |some: &[Step]| if with_vectors { vectors(some) } else { Vec::new() };
            let kept = if moment == "before the first" { 0 } else { 67 };
            recorder.write(&bytes(&all[..kept]), &part(&all[..kept])).unwrap();
            recorder.put_run(&runs(1)[0]).unwrap();
            drop(recorder);
            let staged = folder.path().join(".self-play.part");
            match moment {
                "in a row" => {
                    let path = staged.join("steps.npy");
                    let torn = [fs::read(&path).unwrap(), vec![1; 27]].concat();
                    fs::write(&path, torn).unwrap();
                }
                "between the renames" if with_vectors => {
                    fs::rename(staged.join("embeddings.npy"), folder.path().join("embeddings-000002.npy")).unwrap();
                }
                _ => {}
            }
            let refused = Recorder::open(folder.path(), options(size, false)).unwrap_err();
            assert!(matches!(&refused, Error::Config { field: Some(field), .. } if field == "folder"), "{refused}");
            let mut recorder = Recorder::open(folder.path(), options(size, true)).unwrap();
            assert_eq!(recorder.recovered(), kept.saturating_sub(50) as u64, "{moment}");
            let rest: Vec<Step> = all[kept..].iter().filter(|step| step.run_id != 0).copied().collect();
            recorder.write(&bytes(&rest), &part(&rest)).unwrap();
            recorder.finish().unwrap();
            let whole = [&all[..kept], &rest].concat();
            assert_eq!(read(folder.path(), with_vectors), (bytes(&whole), part(&whole)), "{moment}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_written() {
    let all = interleaved(2);
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::open(folder.path(), options(Some(3), false)).unwrap();
    let busy = Recorder::open(folder.path(), options(Some(3), true)).unwrap_err();
    assert!(matches!(&busy, Error::Path { kind: std::io::ErrorKind::ResourceBusy, .. }), "{busy}");
    let kind = |e: Error| match e {
        Error::Format(e) => e.kind(),
        e => panic!("{e}"),
    };
    let (rows, numbers) = (bytes(&all[..4]), vectors(&all[..4]));
    for (rows, numbers) in [(&rows[..], &numbers[1..]), (&rows[1..], &numbers[..]), (&rows[..], &[][..])] {
        assert_eq!(kind(recorder.write(rows, numbers).unwrap_err()), Kind::WrongSize);
    }
    let mut high = rows.clone();
    high[28 * 2 + 20] = 17;
    let Err(Error::Format(e)) = recorder.write(&high, &numbers) else { panic!() };
    assert_eq!((e.kind(), e.place().frame), (Kind::OutOfRange, Some(2)));
    recorder.write(&rows, &numbers).unwrap();
    runs(2).iter().for_each(|run| recorder.put_run(run).unwrap());
    recorder.finish().unwrap();
    assert_eq!(read(folder.path(), true), (rows.clone(), numbers.clone()));

    for (size, field) in [(None, "embedding_size"), (Some(4), "embedding_size"), (Some(0), "embedding_size")] {
        let e = Recorder::open(folder.path(), options(size, true)).unwrap_err().to_string();
        assert!(e.contains(field), "{e}");
    }
    let mut again = Recorder::open(folder.path(), options(Some(3), true)).unwrap();
    let e = again.write(&rows, &numbers).unwrap_err().to_string();
    assert!(e.contains("run 0 is one of an earlier recording"), "{e}");
    drop(again);
    let other = tempfile::tempdir().unwrap();
    crate::fixture::write_pack(other.path(), 3, &crate::fixture::Form::default());
    let e = Recorder::open(other.path(), options(None, true)).unwrap_err().to_string();
    assert!(e.contains("steps rows of 48 bytes"), "{e}");
}

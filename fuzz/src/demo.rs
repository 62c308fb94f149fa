//! Bodies of the `npz` and `shard` fuzz targets: arbitrary bytes as an archive of arrays and as a tar of frames.
//! Each input counts twice: as it is, and with right checksums. Shared, as source, with the replay of their corpora on stable Rust.

use gristmill_format::Kind;
use gristmill_format::container::npz::Npz;
use gristmill_format::container::tar::{TarLimits, walk};
use gristmill_format::demo::form::{ReadOptions, read};
use gristmill_format::demo::shard::{Shard, ShardIndex, group, read_frames};
use gristmill_format::demo::trajectory::{Tape, Trajectories};
use gristmill_format::source::{Chunk, ChunkSource, Limits};

use super::mended;

const MAX: usize = 1 << 20;

/// Names differ, no member gives more than the bound, and what is refused names its member.
pub fn npz(data: &[u8]) {
    archive(data);
    archive(&mended::zip(data));
}

fn archive(data: &[u8]) {
    let Ok(npz) = Npz::open(data) else { return };
    let mut names = npz.names().to_vec();
    let mut out = Vec::new();
    for name in npz.names() {
        match npz.read(name, MAX, &mut out) {
            Ok(()) => assert!(out.len() <= MAX),
            Err(e) => assert!(out.is_empty() && e.place().member.is_some(), "{e}"),
        }
    }
    names.sort();
    let before = names.len();
    names.dedup();
    assert_eq!(names.len(), before, "two members of one name");
    whole("fuzz.npz", data);
}

/// Samples are made of members that lie in the tar, no field twice; what is read has whole trajectories of whole records.
pub fn shard(data: &[u8]) {
    frames(data);
    frames(&mended::tar(data));
}

fn frames(data: &[u8]) {
    let index =
        walk(data, &TarLimits { max_faults: 50, ..TarLimits::default() }).expect("reading memory does not fail");
    match group(&index, data.len()) {
        Ok(groups) => {
            let members = groups.samples.iter().map(|sample| sample.members.len()).sum::<usize>();
            assert_eq!(members + groups.metadata.len() + groups.ignored, index.iter().count());
            for sample in &groups.samples {
                assert!(sample.members.iter().all(|member| member.span.end <= data.len()));
                let twice = |i: usize| sample.members[..i].iter().any(|other| other.field == sample.members[i].field);
                assert!(!(0..sample.members.len()).any(twice));
            }
        }
        Err(e) => assert!(e.place().offset.is_some() && e.place().member.is_some(), "{e}"),
    }
    if let Ok(shard) = Shard::read(data, MAX) {
        let all = &shard.trajectories;
        let size = all.layout().map_or(0, |layout| layout.size());
        assert_eq!(all.records().len(), all.frames() * size);
        assert!(all.records().len() <= MAX && all.open() == 0);
        assert_eq!(
            (0..all.ends().len()).filter_map(|i| all.span(i)).map(|span| span.len()).sum::<usize>(),
            all.frames()
        );
        agree(data, all);
    }
    whole("fuzz.tar", data);
}

/// A shard that reads into records reads the same over its bytes and by the place of its frames.
fn agree(data: &[u8], all: &Trajectories) {
    let over = Shard::over(&Tape::new(data.to_vec()), 4 * MAX).expect("it reads into records");
    let (size, frames) = (all.layout().map_or(0, |layout| layout.size()), all.frames());
    let mut records = vec![0; frames * size];
    over.trajectories.copy_records(0..frames, &mut records).unwrap_or_else(|_| assert_eq!(frames, 0));
    assert!(records == all.records() && over.trajectories.ends() == all.ends());
    assert_eq!(over.trajectories.extras(), all.extras());
    if let Some(index) = ShardIndex::scan(data, MAX).expect("it reads into records") {
        assert_eq!(index.ends, all.ends());
        let found = read_frames(data, &index.frames, 0, None, MAX).expect("it reads into records");
        assert!(found.records() == all.records() && found.extras() == all.extras());
    }
}

/// Whatever form it is taken for: a file of trajectories that all decode, or a refusal.
fn whole(name: &str, data: &[u8]) {
    let options = ReadOptions { max_bytes: MAX, ..ReadOptions::default() };
    let Ok(file) = read(name, data, &options) else { return };
    let mut chunk = Chunk::default();
    for i in 0..file.len().min(16) {
        let decoded = file.decode(i, &[], &Limits { max_chunk_bytes: MAX }, &mut chunk);
        assert!(decoded.is_ok_and(|()| chunk.frames > 0), "trajectory {i}");
    }
    let e = file.decode(file.len(), &[], &Limits::default(), &mut chunk).expect_err("there is none");
    assert_eq!(e.kind(), Kind::Missing);
}

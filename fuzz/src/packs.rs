//! Bodies for packed games, packed trajectories, chunk files, sums and marks: what reads back is bounded, repeatable, and packs again to what reads the same.
//! Files with checksums count twice: as they are, and with right checksums.

use gristmill_format::Kind;
use gristmill_format::chess::Frame;
use gristmill_format::chess::pack::{PackedGame, Packer, Position, Wanted};
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::container::marks::Mark;
use gristmill_format::container::sums;
use gristmill_format::demo::pack::{Blocks, PackedTrajectory, Scratch, Trajectory, pack};

use super::mended;

const MOST: usize = 1 << 20;

/// Any frame can be read alone and gives what the whole gives; what the whole gives can be packed.
pub fn packed(data: &[u8]) {
    let Ok(game) = PackedGame::new(data) else { return };
    assert!(game.frames() <= data.len());
    let size = game.version().bytes();
    let (mut position, mut records) = (Position::default(), Vec::new());
    if let Err(e) = game.records(MOST, &mut position, &mut records) {
        assert!(e.kind() == Kind::TooLarge || e.place().frame.is_some(), "{e}");
        return;
    }
    assert!(records.len() == game.frames() * size);
    for k in [0, game.frames() / 2, game.frames() - 1] {
        game.position(k, Wanted::Whole, &mut position).expect("a frame of a whole that can be read");
        assert!(position.record()[7440..size] == records[k * size + 7440..(k + 1) * size]);
        game.position(k, Wanted::WithoutPolicy, &mut position).expect("a frame of a whole that can be read");
        assert!(
            position.frame().plane_bytes() == Frame::new(&records[k * size..][..size]).expect("a record").plane_bytes()
        );
    }
    let mut judged = Vec::new();
    game.judged(Position::default, &mut judged).expect("fields of a whole that can be read");
    for (record, judged) in records.chunks_exact(size).zip(judged.chunks_exact(12)) {
        let frame = Frame::new(record).expect("what was read");
        let fields = [frame.best_q(), frame.orig_q(), frame.policy_kld()].map(f32::to_le_bytes);
        assert!(fields.as_flattened() == judged, "what weighs a frame is another than in its record");
    }
    let (mut again, mut back) = (Vec::new(), Vec::new());
    if Packer::default().pack(game.version(), &records, &mut again).is_ok() {
        let game = PackedGame::new(&again).expect("what was packed");
        game.records(MOST, &mut position, &mut back).expect("what was packed");
        assert!(back == records, "packing changes a game");
    }
}

/// A step by itself is that of the whole, and a whole that can be read packs again to what reads the same.
pub fn trajectory(data: &[u8]) {
    let Ok(packed) = PackedTrajectory::new(data) else { return };
    let (frames, size) = (packed.frames(), packed.record_bytes());
    let (Ok(about), Ok(extras)) = (packed.about(), packed.extras(0..frames)) else { return };
    if size > MOST || frames > MOST || frames * size > MOST {
        return;
    }
    let (mut scratch, mut records) = (Scratch::default(), vec![0; frames * size]);
    let read = |frame: usize, scratch: &mut Scratch, out: &mut [u8]| packed.record(frame, scratch, out);
    for (frame, record) in records.chunks_exact_mut(size).enumerate() {
        if let Err(e) = read(frame, &mut scratch, record) {
            assert!(e.place().offset.is_some() || e.kind() == Kind::Missing, "{e}");
            return;
        }
    }
    let (mut record, mut fresh) = (vec![0xEE; size], Scratch::default());
    for frame in [frames - 1, frames / 2, 0] {
        read(frame, &mut fresh, &mut record).expect("a frame of a whole that can be read");
        assert!(record == records[frame * size..][..size]);
    }
    let mut again = Vec::new();
    let trajectory = Trajectory { about: &about, records: &records, extras: &extras, end: packed.end() };
    if pack(&trajectory, Blocks::default(), &mut again).is_ok() {
        let back = PackedTrajectory::new(&again).expect("what was packed");
        assert_eq!(back.about().expect("what was packed"), about);
        assert!(back.extras(0..frames).expect("what was packed") == extras);
        fresh.forget();
        for (frame, expected) in records.chunks_exact(size).enumerate() {
            back.record(frame, &mut fresh, &mut record).expect("what was packed");
            assert!(record == expected, "packing changes a step");
        }
    }
}

/// Spans lie within the file, one after the other, and every frame is found in its chunk.
pub fn chunks(data: &[u8]) {
    chunk_file(data);
    chunk_file(&mended::chunks(data));
}

fn chunk_file(data: &[u8]) {
    let Ok(file) = ChunkFile::open(data) else { return };
    let mut end = 8;
    for i in 0..file.len() {
        let span = file.span(i).expect("within its length");
        assert!(span.offset == end && span.offset + span.len <= data.len() as u64);
        end += span.len;
        assert!(file.name(i).len() <= data.len());
        assert_eq!(file.locate(file.first_frame(i)), Some((i, 0)));
        let _ = file.check(i, &data[span.offset as usize..end as usize]);
    }
    assert_eq!(file.locate(file.total_frames()), None);
}

/// What is read for some file and rule is written as these very bytes, and is nothing for another file or rule.
pub fn weights(data: &[u8]) {
    sums_of(data);
    sums_of(&mended::sums(data));
}

fn sums_of(data: &[u8]) {
    let number = |at: usize| data.get(at..at + 8).and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    let (Some(index), Some(rule), Some(chunks)) = (number(8), number(16), number(24)) else { return };
    let chunks = usize::try_from(chunks).unwrap_or(usize::MAX).min(data.len());
    let Some(weights) = sums::read(data, index, rule, chunks) else { return };
    assert!(weights.iter().all(|sum| sum.is_finite() && *sum >= 0.0));
    assert_eq!(sums::write(index, rule, &weights), data);
    assert!(sums::read(data, !index, rule, chunks).is_none() && sums::read(data, index, !rule, chunks).is_none());
}

/// A refusal says where; what is read keeps its bounds and comes back from what is written of it.
pub fn marks(data: &[u8]) {
    mark(data);
    mark(&mended::mark(data));
}

fn mark(data: &[u8]) {
    let mark = match Mark::from_bytes(data) {
        Ok(mark) => mark,
        Err(e) => return assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}"),
    };
    assert!(mark.rule.len() <= data.len() && mark.rows.max().is_none_or(|last| last < mark.frames));
    let bytes = mark.to_bytes().expect("a rule that was read");
    assert_eq!(Mark::from_bytes(&bytes).expect("what was written"), mark);
}

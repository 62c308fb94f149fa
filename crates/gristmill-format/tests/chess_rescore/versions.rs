//! V6 to V7 and back, outside the rescorer: the same short-term values as its own, and nothing lost in silence.

use gristmill_format::Kind;
use gristmill_format::chess::record::at;
use gristmill_format::chess::rescore::{LOSSY, Settings, narrow, widen};
use gristmill_format::chess::{Frame, FrameMut, Version};
use gristmill_format::source::Chunk;

use super::played::{START, chunk, records, rescore};

const THETA: f32 = 0.833_333_3;

/// A game whose search values differ from frame to frame.
fn game() -> Vec<u8> {
    let mut bytes = records(START, "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1h1 g8f6");
    for (i, record) in bytes.chunks_exact_mut(Version::V6.bytes()).enumerate() {
        FrameMut::new(record).unwrap().set_root_q(0.1 * i as f32 - 0.3).set_root_d(0.05 * i as f32);
    }
    bytes
}

fn wide() -> Chunk {
    let mut chunk = chunk(&game());
    assert_eq!(widen(&mut chunk, THETA).unwrap(), 9);
    chunk
}

#[test]
fn widening_gives_what_the_rescorer_gives_and_comes_back_to_the_bit() {
    let mut chunk = wide();
    let (rescored, _) = rescore(&game(), Settings::default()).unwrap();
    assert!(chunk.records() == rescored.records());
    assert_eq!(widen(&mut chunk, THETA).unwrap(), 0, "it is V7 already");
    assert_eq!(narrow(&mut chunk, THETA, false).unwrap(), 9);
    assert!(chunk.records() == game());
    assert_eq!(narrow(&mut chunk, THETA, false).unwrap(), 0, "it is V6 already");
    assert!(chunk.records() == game());
}

#[test]
fn a_value_that_would_be_lost_is_refused_with_its_frame() {
    for field in [at::Q_ST, at::D_ST, at::OPP_PLAYED_IDX, at::NEXT_PLAYED_IDX, at::RESERVED, at::RESERVED + 31] {
        let mut chunk = wide();
        chunk.bytes[4 * Version::V7.bytes() + field] ^= 1;
        let refused = narrow(&mut chunk, THETA, false).unwrap_err();
        assert_eq!((refused.kind(), refused.place().frame), (Kind::Refused(LOSSY), Some(4)), "{refused}");
    }
    let mut chunk = wide();
    assert_eq!(narrow(&mut chunk, 0.5, false).unwrap_err().kind(), Kind::Refused(LOSSY), "another decay");
    let mut chunk = wide();
    chunk.bytes[at::D_ST] ^= 1;
    assert_eq!(narrow(&mut chunk, THETA, true).unwrap(), 9);
    assert!(chunk.records() == game());
}

#[test]
fn wide_records_of_v6_keep_what_is_theirs() {
    let mut chunk = wide();
    for record in chunk.bytes.chunks_exact_mut(Version::V7.bytes()) {
        FrameMut::new(record).unwrap().set_version(6).set_q_st(0.5).set_short_term(0.0, 0, 0);
    }
    narrow(&mut chunk, THETA, true).unwrap();
    let first = Frame::new(chunk.record(0)).unwrap();
    assert_eq!((first.version(), first.q_st()), (6, 0.5));
}

#[test]
fn what_is_no_game_is_refused() {
    let nothing = || Chunk { layout: wide().layout, ..Chunk::default() };
    assert_eq!(widen(&mut nothing(), THETA).unwrap_err().kind(), Kind::Empty);
    assert_eq!(narrow(&mut nothing(), THETA, true).unwrap_err().kind(), Kind::Empty);
    assert_eq!(widen(&mut Chunk::default(), THETA).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(narrow(&mut Chunk::default(), THETA, true).unwrap_err().kind(), Kind::Unsupported);
}

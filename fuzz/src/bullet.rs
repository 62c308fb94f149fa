//! Body for boards of bulletformat: what is read comes back, makes tensors, and is refused with its place.

use gristmill_format::bullet::BoardEncoder;
use gristmill_format::bullet::board::{BYTES, Board, check_all};
use gristmill_format::bullet::source::BoardFile;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

/// What is made of each board.
const TENSORS: [&str; 7] = ["stm", "nstm", "score", "result", "planes", "halfkp_nstm", "halfkav2_hm_nstm"];

/// A file of boards is what its boards are, one by one.
pub fn bullet(data: &[u8]) {
    let all = check_all(data, 0);
    let Ok(source) = BoardFile::open("fuzz.bf", data) else {
        assert!(!data.len().is_multiple_of(BYTES) && all.is_err());
        return;
    };
    let (mut stored, mut chunk, mut frames) = (Vec::new(), Chunk::default(), 0);
    for i in 0..source.len() {
        let (span, _) = source.locate(i).expect("a chunk that there is");
        read_span(data, span, 1 << 20, &mut stored).expect("within the file");
        match source.decode(i, &stored, &Limits::default(), &mut chunk) {
            Ok(()) => frames += chunk.frames,
            Err(e) => {
                let first = all.as_ref().expect_err("a chunk is refused, the whole is not").place();
                assert!(e.place().offset >= first.offset && e.place().frame.is_some(), "{e}");
                continue;
            }
        }
        assert!(chunk.records() == stored);
    }
    if let Ok(all) = all {
        assert!(all == frames);
        let encoder = BoardEncoder::new(&TENSORS.map(String::from)).expect("tensors of boards");
        for record in data.as_chunks::<BYTES>().0 {
            let board = Board::new(record).expect("a board of a whole");
            let men: Vec<(u8, u8)> = board.pieces().collect();
            let again = Board::of(&men, board.score(), board.result()).expect("the men of a board");
            assert!(again.bytes()[..29] == record[..29], "a board changes");
            let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes()]).collect();
            let row = Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None };
            let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
            encoder.encode(&[row], &mut slices).expect("a board that was checked");
        }
    }
}

//! Body for shards of KataGo and packed rows: rows that are read are packed and turned, and all else is refused.

use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::katago::pack::{PackedRows, pack};
use gristmill_format::katago::{RowEncoder, Shard, is_shard};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

use super::mended;

/// Bytes of rows that are read.
const MAX: usize = 1 << 20;

/// What heads say is what there is; a row that was read has eight images, of which the first is the row.
pub fn katago(data: &[u8]) {
    rows(data);
    rows(&mended::zip(data));
}

fn rows(data: &[u8]) {
    let _ = is_shard(data).expect("bytes in memory");
    if let Ok(packed) = PackedRows::new(data)
        && let Ok(form) = packed.form()
    {
        let _ = packed.check(&form);
    }
    let heads = Shard::heads("fuzz.npz", data, MAX);
    let Ok((shard, plain)) = Shard::read("fuzz.npz", data, MAX) else { return };
    let heads = heads.expect("of a shard that was read");
    assert!((heads.rows(), heads.form()) == (shard.rows(), shard.form()));
    let (mut stored, mut chunk, mut turned) = (Vec::new(), Chunk::default(), Vec::new());
    let same = RowEncoder::new(shard.form().layout(), &[]).expect("of each shard");
    let names: Vec<String> = ["symmetry", "binaryInputNCHWPacked"].map(String::from).to_vec();
    let draws = RowEncoder::new(shard.form().layout(), &names).expect("of each shard");
    for i in 0..shard.len() {
        read_span(plain.as_slice(), shard.locate(i).expect("a chunk").0, MAX as u64, &mut stored).expect("within");
        if shard.decode(i, &stored, &Limits::default(), &mut chunk).is_err() {
            continue;
        }
        assert!(Some(chunk.frames) == shard.frames(i) && chunk.records() == stored);
        let mut packed = Vec::new();
        pack(&chunk, &mut packed).expect("rows that were read");
        let packed = PackedRows::new(&packed).expect("rows that were packed");
        assert!(packed.records() == chunk.records() && packed.form().expect("its own") == *shard.form());
        for bits in 0..8 {
            let row =
                Row { record: chunk.record(0), provenance: Provenance::default(), bits: bits.into(), sparse: None };
            for encoder in [&same, &draws] {
                let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes()]).collect();
                let mut out: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
                encoder.encode(&[row], &mut out).expect("a row that was read");
                turned = out.last().map(|bytes| bytes.to_vec()).unwrap_or_default();
            }
            let own = shard.form().bytes("binaryInputNCHWPacked", chunk.record(0));
            let ones = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
            assert!(ones(&turned) == ones(own) && (bits > 0 || turned == own), "image {bits} loses bits");
        }
    }
}

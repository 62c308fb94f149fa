//! Body for Stockfish's binpacks: what is read can be written and comes back, makes tensors, or is refused with its place.

use gristmill_format::binpack::record::{self, BYTES};
use gristmill_format::binpack::source::{Binpack, HEADER};
use gristmill_format::binpack::write::Writer;
use gristmill_format::binpack::{Position, PositionEncoder};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

/// Every byte is in a chain, in a header, or in a fault.
pub fn binpack(data: &[u8]) {
    let source = match Binpack::open("fuzz.binpack", data) {
        Ok(source) => source,
        Err(e) => return assert!(e.place().offset == Some(0), "{e}"),
    };
    let (mut records, mut covered) = (Vec::new(), 0);
    let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
    for i in 0..source.len() {
        let (span, _) = source.locate(i).expect("a chunk that there is");
        read_span(data, span, 1 << 20, &mut stored).expect("within the file");
        match source.decode(i, &stored, &Limits::default(), &mut chunk) {
            Ok(()) => {
                assert!(source.frames(i) == Some(chunk.frames));
                records.extend_from_slice(chunk.records());
            }
            Err(e) => {
                let place = e.place();
                assert!(place.chunk == Some(i as u64), "{e}");
                let at = place.offset.expect("a byte");
                assert!(at >= span.offset && at <= span.offset + span.len, "{e}");
            }
        }
        covered += span.len;
    }
    assert!(!source.faults().is_empty() || (data.len() as u64 - covered).is_multiple_of(HEADER as u64));
    assert!(record::check_all(&records).expect("positions that were read") * BYTES == records.len());
    let encoder = PositionEncoder::new(&[]).expect("the usual tensors");
    let (mut writer, mut file) = (Writer::default(), Vec::new());
    for record in records.as_chunks::<BYTES>().0 {
        let position = Position::new(record).expect("a position that was checked");
        writer.add(&position, &mut file);
        let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes()]).collect();
        let row = Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None };
        let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        encoder.encode(&[row], &mut slices).expect("a position that was checked");
    }
    writer.finish(&mut file);
    let again = Binpack::open("again.binpack", &file[..]).expect("a file that was written");
    assert!(again.faults().is_empty());
    let mut back = Vec::new();
    for i in 0..again.len() {
        let (span, _) = again.locate(i).expect("a chunk that there is");
        read_span(&file[..], span, 1 << 20, &mut stored).expect("within the file");
        again.decode(i, &stored, &Limits::default(), &mut chunk).expect("a chain that was written");
        back.extend_from_slice(chunk.records());
    }
    // Chains may be joined, and then more positions stood before.
    let told = |records: &[u8]| records.as_chunks::<BYTES>().0.iter().map(|one| one[..BYTES - 1].to_vec()).collect();
    let (before, after): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (told(&records), told(&back));
    assert!(before == after, "positions change when they are written");
}

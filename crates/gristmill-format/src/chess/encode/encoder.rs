//! The chess `Encoder`: each record's outputs one after another, while the record is in the first cache.

use std::collections::BTreeSet;
use std::ops::Range;

use gristmill_bytes::encode::{Encoder, Row, Sparse, TensorSpec};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};
use gristmill_bytes::source::Chunk;

use super::compact::{self, Policy};
use super::meta::meta_planes;
use super::output::{Element, Output};
use super::position;
use super::progress;
use super::simd::{self, Path, Stores};
use crate::chess::check::view::View;
use crate::chess::frame::Frame;
use crate::chess::record::{PLANES, POLICY, Version, at, layout_v7};
use crate::nnue;

/// Encodes V7 records (V6 widened to V7 size included) into the selected outputs.
#[derive(Debug, Clone)]
pub struct ChessEncoder {
    outputs: Vec<Output>,
    specs: Vec<TensorSpec>,
    path: Path,
    /// The bytes of a record that the outputs read, nearly: what is worth fetching ahead.
    reads: Range<usize>,
    /// Whether an output needs the policy: itself, or the best move, which a packed position may have by it alone.
    policy: bool,
    /// Whether dense planes are made: while they are written there is time to fetch.
    dense: bool,
    /// Whether an output needs the men as a board.
    nnue: bool,
}

/// A call with at least this many output bytes writes rows past the cache, which they would only evict.
const PAST_CACHE_FROM: usize = 1 << 17;

/// Bytes of the next record prefetched at a time: all at once would stall, so they go between blocks of planes.
const AHEAD: usize = 1024;

impl ChessEncoder {
    /// An encoder of `outputs`, in that order, by the fastest instructions this processor has.
    ///
    /// Errors: `Empty` without outputs; `Unsupported` when two tensors would have the same name.
    pub fn new(outputs: &[Output]) -> Result<Self> {
        let specs: Vec<_> = outputs.iter().flat_map(|output| output.specs()).collect();
        if specs.is_empty() {
            return Err(Error::new(Kind::Empty, "no outputs are selected; name at least one, such as `planes`"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = specs.iter().find(|spec| !names.insert(&spec.name)) {
            let detail = format!("two outputs are called `{}`; select one form of it", twice.name);
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let holds = |output: &Output| {
            matches!(output, Output::Probs | Output::ProbsSparse(_) | Output::Legal | Output::LegalBits)
        };
        let whole = outputs.iter().any(holds);
        let policy = whole || outputs.contains(&Output::BestIdx);
        let reads = if whole { 0..Version::V7.bytes() } else { at::PLANES..Version::V7.bytes() };
        let dense = outputs.iter().any(|output| matches!(output, Output::Planes(_) | Output::PlanesFlat));
        let nnue = outputs.iter().any(|output| matches!(output, Output::Nnue(_)));
        Ok(ChessEncoder { outputs: outputs.to_vec(), specs, path: Path::best(), reads, policy, dense, nnue })
    }

    /// The selected outputs.
    pub fn selected(&self) -> &[Output] {
        &self.outputs
    }

    fn check(&self, rows: &[Row<'_>], out: &[&mut [u8]]) -> Result<()> {
        let whole = out.len() == self.specs.len()
            && out.iter().zip(&self.specs).all(|(slice, spec)| slice.len() == rows.len() * spec.row_bytes());
        if whole {
            return Ok(());
        }
        let found: Vec<usize> = out.iter().map(|slice| slice.len()).collect();
        let expected: Vec<usize> = self.specs.iter().map(|spec| rows.len() * spec.row_bytes()).collect();
        Err(Error::new(Kind::WrongSize, format!("output slices of {found:?} bytes; expected {expected:?}")))
    }

    fn row(
        &self,
        writer: &mut Writer,
        frame: &Frame<'_>,
        ahead: &[u8],
        row: &Row<'_>,
        i: usize,
        out: &mut [&mut [u8]],
    ) -> Result<()> {
        let stores = writer.stores;
        let Row { provenance: from, sparse, .. } = row;
        let policy = || sparse.map_or_else(|| Policy::Stored(frame.probability_bytes()), Policy::Listed);
        let mut tensors = out.iter_mut().zip(&self.specs).map(|(slice, spec)| {
            let bytes = spec.row_bytes();
            &mut slice[i * bytes..(i + 1) * bytes]
        });
        let board = if self.nnue { Some(board(frame)?) } else { None };
        for &output in &self.outputs {
            let Some(row) = tensors.next() else { break };
            match output {
                Output::Planes(element) => planes(stores, frame, element, ahead, row)?,
                Output::PlanesFlat => planes(stores, frame, Element::F32, ahead, row)?,
                Output::PlaneBits => {
                    frame.input_format()?;
                    simd::copy(stores, frame.plane_bytes(), row);
                    if let Some(meta) = tensors.next() {
                        meta[..8].copy_from_slice(&frame.bytes()[at::CASTLING_US_OOO..at::ROOT_Q]);
                        meta[8..].copy_from_slice(&frame.bytes()[at::INPUT_FORMAT..at::PROBABILITIES]);
                    }
                }
                Output::PlanesPacked => compact::planes(stores, frame, row)?,
                Output::PlanesPosition(_) => position::write(frame, row)?,
                Output::ProbsSparse(_) => {
                    let Some(values) = tensors.next() else { break };
                    compact::pairs(policy(), row, values)?;
                }
                Output::LegalBits => compact::legal(policy(), row),
                Output::Probs => match sparse {
                    None => simd::copy(stores, frame.probability_bytes(), row),
                    Some(sparse) => writer.policy(sparse, row),
                },
                Output::Values => put(row, &values(frame)),
                Output::Values4 => put(row, &values_and_progress(frame)),
                Output::Winner => put(row, &win_draw_loss(frame.result_q(), frame.result_d())),
                Output::BestQ => put(row, &win_draw_loss(frame.best_q(), frame.best_d())),
                Output::PliesLeft => put(row, &[frame.plies_left()]),
                Output::Legal => match sparse {
                    None => legal(frame.probability_bytes(), row),
                    Some(sparse) => legal_of(sparse, row),
                },
                Output::Ids => {
                    let ids = [from.source, u64::from(from.chunk), u64::from(from.frame)];
                    for (slot, id) in row.chunks_exact_mut(8).zip(ids) {
                        slot.copy_from_slice(&id.to_le_bytes());
                    }
                }
                Output::PlayedIdx => put_index(row, frame.played_idx()),
                Output::BestIdx => put_index(row, frame.best_idx()),
                Output::OppPlayedIdx => put_index(row, frame.opp_played_idx()),
                Output::NextPlayedIdx => put_index(row, frame.next_played_idx()),
                Output::Nnue(tensor) => board.iter().for_each(|board| tensor.write(board, row)),
            }
        }
        Ok(())
    }
}

/// How rows are written, and a policy that is made whole in the first cache, to go past the others from there.
struct Writer {
    stores: Stores,
    /// Empty until it is needed, then full of `fill`.
    whole: Vec<u8>,
    fill: u32,
}

impl Writer {
    fn new(stores: Stores) -> Self {
        Writer { stores, whole: Vec::new(), fill: 0 }
    }

    /// Writes all of a policy to `row`.
    fn policy(&mut self, policy: &Sparse<'_>, row: &mut [u8]) {
        if !self.stores.past_cache {
            return policy.write(row);
        }
        let fill = policy.fill.to_le_bytes();
        if self.whole.is_empty() || self.fill != policy.fill.to_bits() {
            self.whole.resize(4 * POLICY, 0);
            self.whole.as_chunks_mut::<4>().0.fill(fill);
            self.fill = policy.fill.to_bits();
        }
        let entries = self.whole.as_chunks_mut::<4>().0;
        for (i, value) in policy.indices.iter().zip(policy.values) {
            entries[usize::from(*i)] = value.to_le_bytes();
        }
        simd::copy(self.stores, &self.whole, row);
        let entries = self.whole.as_chunks_mut::<4>().0;
        policy.indices.iter().for_each(|i| entries[usize::from(*i)] = fill);
    }
}

impl Encoder for ChessEncoder {
    fn input(&self) -> &Layout {
        layout_v7()
    }

    /// Pieces, castling rights, side to move or en passant, under the input format: neither counters nor earlier positions.
    fn position(&self) -> Vec<Range<usize>> {
        let planes = at::PLANES..at::PLANES + 12 * size_of::<u64>();
        vec![at::INPUT_FORMAT..at::INPUT_FORMAT + 4, planes, at::CASTLING_US_OOO..at::RULE50_COUNT]
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.specs
    }

    fn reads_sparse(&self) -> bool {
        self.policy
    }

    fn is_completed(&self) -> bool {
        self.outputs.contains(&Output::Values4)
    }

    fn complete(&self, chunk: &mut Chunk) -> Result<()> {
        if self.is_completed() { progress::write(chunk) } else { Ok(()) }
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        self.check(rows, out)?;
        let bytes: usize = out.iter().map(|slice| slice.len()).sum();
        let stores = Stores { path: self.path, past_cache: bytes >= PAST_CACHE_FROM };
        let mut writer = Writer::new(stores);
        let result = rows.iter().enumerate().try_for_each(|(i, row)| {
            let next = rows.get(i + 1).filter(|next| next.sparse.is_none()).map_or(&[][..], |next| next.record);
            let ahead = next.get(self.reads.clone()).unwrap_or_default();
            if !self.dense {
                simd::prefetch(ahead);
            }
            known(row.record)
                .and_then(|frame| self.row(&mut writer, &frame, ahead, row, i, out))
                .map_err(|error| error.in_frame(row.provenance.frame as usize).in_chunk(row.provenance.chunk as usize))
        });
        simd::finish(stores);
        result
    }
}

/// A view of `record` if it is V7-sized and says V6 or V7.
fn known(record: &[u8]) -> Result<Frame<'_>> {
    if record.len() != Version::V7.bytes() {
        let detail = format!("a record of {} bytes; the encoder takes {}", record.len(), Version::V7.bytes());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    let frame = Frame::new(record)?;
    match frame.version() {
        6 | 7 => Ok(frame),
        other => {
            let detail = format!("record version {other}; the encoder takes 6 (widened) and 7");
            Err(Error::new(Kind::UnknownVersion, detail).at_byte(at::VERSION as u64))
        }
    }
}

/// The men of a frame, any canonical transform undone.
///
/// Errors: `OutOfRange` for an unknown input format, and for men that no board can hold.
fn board(frame: &Frame<'_>) -> Result<nnue::Board> {
    let view = View::new(*frame)?;
    nnue::Board::new(view.men, Some(view.black)).map_err(|e| e.at_byte(at::PLANES as u64))
}

fn planes(stores: Stores, frame: &Frame<'_>, element: Element, ahead: &[u8], row: &mut [u8]) -> Result<()> {
    let mut words = [0u64; 112];
    let mut values = [bits(element, 1.0, 1); 112];
    for (word, bytes) in words.iter_mut().zip(frame.plane_bytes().as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    for (i, plane) in meta_planes(frame)?.iter().enumerate() {
        words[PLANES + i] = plane.word;
        values[PLANES + i] = bits(element, plane.value, plane.raw);
    }
    let block = words.len() / ahead.len().div_ceil(AHEAD).max(1);
    let mut ahead = ahead.chunks(AHEAD);
    let blocks = words.chunks(block).zip(values.chunks(block));
    for ((words, values), out) in blocks.zip(row.chunks_mut(block * element.row_bytes() / 112)) {
        simd::prefetch(ahead.next().unwrap_or_default());
        simd::expand(stores, element, words, values, out);
    }
    Ok(())
}

/// The bits of a plane's value in the element type.
fn bits(element: Element, value: f32, raw: u8) -> u32 {
    match element {
        Element::F32 => value.to_bits(),
        Element::F16 => u32::from(half::f16::from_f32(value).to_bits()),
        Element::Bf16 => u32::from(half::bf16::from_f32(value).to_bits()),
        Element::U8 => u32::from(raw),
    }
}

fn put(row: &mut [u8], values: &[f32]) {
    for (slot, value) in row.chunks_exact_mut(Scalar::F32.size()).zip(values) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
}

fn put_index(row: &mut [u8], index: u16) {
    let index = if index == u16::MAX { -1 } else { i32::from(index) };
    row.copy_from_slice(&index.to_le_bytes());
}

/// The six rows (q, d, m) of spec 3.
fn values(f: &Frame<'_>) -> [f32; 18] {
    let unknown = f32::from_bits(0x7fc0_0000);
    #[rustfmt::skip]
    let rows = [
        f.result_q(), f.result_d(), f.plies_left(),
        f.best_q(), f.best_d(), f.best_m(),
        f.played_q(), f.played_d(), f.played_m(),
        f.orig_q(), f.orig_d(), f.orig_m(),
        f.root_q(), f.root_d(), f.root_m(),
        f.q_st(), f.d_st(), unknown,
    ];
    rows
}

/// The same with a fourth column: the plies until progress, of the result.
fn values_and_progress(f: &Frame<'_>) -> [f32; 24] {
    let mut rows = [f32::from_bits(0x7fc0_0000); 24];
    for (row, values) in rows.chunks_exact_mut(4).zip(values(f).chunks_exact(3)) {
        row[..3].copy_from_slice(values);
    }
    rows[3] = progress::of(f).map_or(rows[3], f32::from);
    rows
}

/// Computed in binary64 and rounded once, as the trainers did that took these.
fn win_draw_loss(q: f32, d: f32) -> [f32; 3] {
    let [wide_q, wide_d] = [q, d].map(f64::from);
    [(0.5 * (1.0 - wide_d + wide_q)) as f32, d, (0.5 * (1.0 - wide_d - wide_q)) as f32]
}

fn legal(probabilities: &[u8], row: &mut [u8]) {
    for (slot, p) in row.iter_mut().zip(probabilities.as_chunks::<4>().0) {
        *slot = u8::from(f32::from_le_bytes(*p) >= 0.0);
    }
}

fn legal_of(policy: &Sparse<'_>, row: &mut [u8]) {
    row.fill(u8::from(policy.fill >= 0.0));
    for (i, p) in policy.indices.iter().zip(policy.values) {
        row[usize::from(*i)] = u8::from(*p >= 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Outputs;
    use crate::chess::frame::FrameMut;
    use crate::chess::record::{InputFormat, V7_BYTES};
    use gristmill_bytes::encode::Provenance;

    #[test]
    fn policies_that_go_past_the_cache_are_those_that_do_not() {
        let mut record = vec![0; V7_BYTES];
        FrameMut::blank(&mut record, InputFormat::Classical).unwrap();
        let encoder = ChessEncoder::new(&Outputs::parse(&["probs".to_owned(), "winner".to_owned()]).unwrap()).unwrap();
        let indices: Vec<Vec<u16>> = (0..64).map(|i| (i..i + 40).step_by(1 + usize::from(i) % 3).collect()).collect();
        let values = [0.25f32; 40];
        let fills = [-1.0, -1.0, f32::NAN, 0.0, -0.0];
        let rows: Vec<Row<'_>> = indices
            .iter()
            .zip(fills.iter().cycle())
            .map(|(indices, fill)| {
                let sparse = Some(Sparse { indices, values: &values[..indices.len()], fill: *fill });
                Row { record: &record, provenance: Provenance::default(), bits: Default::default(), sparse }
            })
            .collect();
        let sizes: Vec<usize> = encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        assert!(rows.len() * sizes[0] >= PAST_CACHE_FROM);
        let encoded = |rows: &[Row<'_>]| {
            let mut out: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0xaa; rows.len() * size]).collect();
            encoder.encode(rows, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
            out
        };
        let together = encoded(&rows);
        let alone: Vec<u8> = rows.iter().flat_map(|row| encoded(&[*row]).swap_remove(0)).collect();
        assert!(together[0] == alone);
    }

    #[test]
    fn win_draw_and_loss_are_rounded_once() {
        // Each of these has another last bit where it is computed in binary32.
        for [q, d, win, loss] in [
            [0xbde1_ea78, 0x3e8f_b123, 0x3e9b_ea20, 0x3ed4_64be],
            [0xbed2_a7eb, 0x3eed_cded, 0x3d7e_28a0, 0x3ef2_6cff],
            [0x3d61_db96, 0x3d11_f487, 0x3f02_7f38, 0x3ee8_c2fe],
        ] {
            let [q, d] = [q, d].map(f32::from_bits);
            assert_eq!(win_draw_loss(q, d).map(f32::to_bits), [win, d.to_bits(), loss]);
            let mut record = vec![0; V7_BYTES];
            FrameMut::blank(&mut record, InputFormat::Classical).unwrap().set_best_q(q).set_best_d(d);
            let encoder = ChessEncoder::new(&[Output::BestQ]).unwrap();
            let row =
                Row { record: &record, provenance: Provenance::default(), bits: Default::default(), sparse: None };
            let mut out = [0; 12];
            encoder.encode(&[row], &mut [&mut out]).unwrap();
            assert_eq!(out[..4], win.to_le_bytes());
        }
    }
}

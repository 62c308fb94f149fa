//! Chess records in, named tensors or a verdict out; and the moves of the policy vector.

use std::borrow::Cow;
use std::ops::ControlFlow;

use gristmill_format::binpack::{self, write::Writer};
use gristmill_format::chess::check::{self, Rule, Rules};
use gristmill_format::chess::{Board, ChessEncoder, Frame, Outputs, layout_v6, layout_v7, policy};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Order;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;
use crate::layout::Layout;

/// Name, NumPy type string, shape and memory of a tensor.
pub(crate) type Tensor = (String, String, Vec<usize>, Memory);

/// The move played and the best one.
type Moves = (Option<String>, Option<String>);

/// Layouts of stored V6 and V7 records.
#[pyfunction]
pub(crate) fn chess_layouts() -> (Layout, Layout) {
    (Layout(layout_v6().as_ref().clone()), Layout(layout_v7().as_ref().clone()))
}

/// Every move of the policy vector in UCI letters, as the side to move sees it, in order of index.
#[pyfunction]
pub(crate) fn chess_policy_moves() -> Vec<String> {
    (0..).map_while(policy::entry).map(|entry| entry.to_string()).collect()
}

/// The position of each V6 or V7 record in Forsyth-Edwards notation.
#[pyfunction]
pub(crate) fn chess_fens(py: Python<'_>, records: Contiguous, itemsize: usize) -> Result<Vec<String>, Fault> {
    py.detach(|| {
        let boards =
            records.bytes().chunks(itemsize.max(1)).enumerate().map(|(i, bytes)| {
                Frame::new(bytes).and_then(|frame| Board::from_frame(&frame)).map_err(|e| e.in_frame(i))
            });
        Ok(boards.map(|board| board.map(|board| board.fen())).collect::<Result<Vec<_>, _>>()?)
    })
}

/// Positions of a binpack, as a binpack.
#[pyfunction]
pub(crate) fn binpack_of(py: Python<'_>, records: Contiguous) -> Result<Cow<'static, [u8]>, Fault> {
    py.detach(|| {
        let (mut writer, mut file) = (Writer::default(), Vec::new());
        for (i, record) in records.bytes().chunks(binpack::BYTES).enumerate() {
            writer.add(&binpack::Position::new(record).map_err(|e| e.in_frame(i))?, &mut file);
        }
        writer.finish(&mut file);
        Ok(file.into())
    })
}

/// The move that was played and the best one of each V6 or V7 record, as White sees the board; none without a search.
#[pyfunction]
pub(crate) fn chess_moves(py: Python<'_>, records: Contiguous, itemsize: usize) -> Result<Vec<Moves>, Fault> {
    py.detach(|| {
        let moves = records.bytes().chunks(itemsize.max(1)).enumerate().map(|(i, bytes)| {
            let frame = Frame::new(bytes).map_err(|e| e.in_frame(i))?;
            let board = Board::from_frame(&frame).map_err(|e| e.in_frame(i))?;
            let shown = |index| if frame.visits() > 0 { board.uci(index) } else { None };
            Ok((shown(frame.played_idx()), shown(frame.best_idx())))
        });
        moves.collect()
    })
}

/// Name of each rule that games are judged by, what it says, and whether it is among the default ones.
#[pyfunction]
pub(crate) fn chess_rules() -> Vec<(&'static str, &'static str, bool)> {
    Rule::ALL.into_iter().map(|rule| (rule.name(), rule.says(), Rules::DEFAULT.has(rule))).collect()
}

/// What breaks the rules in one game of V6 or V7 records: rule, frame, byte within the record, reason.
#[pyfunction]
pub(crate) fn chess_check(
    py: Python<'_>,
    records: Contiguous,
    itemsize: usize,
    rules: Vec<String>,
) -> Result<Vec<(&'static str, usize, usize, String)>, Fault> {
    py.detach(|| {
        let rules = Rules::parse(&rules)?;
        let frames = records.bytes().chunks(itemsize.max(1)).map(Frame::new);
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        let mut breaches = Vec::new();
        check::game(&frames, rules, &mut |breach| {
            breaches.push((breach.rule.name(), breach.frame, breach.offset, breach.reason));
            ControlFlow::Continue(())
        });
        Ok(breaches)
    })
}

/// Encodes whole V7 records into the tensors that are named, with a leading batch axis.
#[pyfunction]
pub(crate) fn chess_encode(py: Python<'_>, records: Contiguous, tensors: Vec<String>) -> Result<Vec<Tensor>, Fault> {
    py.detach(|| {
        let encoder = ChessEncoder::new(&Outputs::parse(&tensors)?)?;
        if encoder.is_completed() {
            let text = "`values:4` is known of whole games, which loaders of streams have; take `values`";
            return Err(gristmill_format::Error::new(gristmill_format::Kind::Unsupported, text).into());
        }
        let size = encoder.input().size();
        let rows: Vec<_> = (0u32..)
            .zip(records.bytes().chunks_exact(size))
            .map(|(frame, record)| Row {
                record,
                provenance: Provenance { frame, ..Provenance::default() },
                bits: Default::default(),
                sparse: None,
            })
            .collect();
        let specs = encoder.outputs();
        let mut out =
            specs.iter().map(|spec| Memory::zeroed(rows.len() * spec.row_bytes())).collect::<Result<Vec<_>, _>>()?;
        let mut slices = out.iter_mut().map(Memory::bytes_mut).collect::<Result<Vec<_>, _>>()?;
        encoder.encode(&rows, &mut slices)?;
        let tensor = |(spec, memory): (&gristmill_format::encode::TensorSpec, Memory)| {
            let shape = [&[rows.len()], &spec.row_shape[..]].concat();
            (spec.name.clone(), spec.dtype.type_str(Order::Little), shape, memory)
        };
        Ok(specs.iter().zip(out).map(tensor).collect())
    })
}

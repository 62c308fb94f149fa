//! 2048 boards in, packed boards and heuristic values out, and back; and the layouts of step rows.

use std::sync::Arc;

use gristmill_format::g2048::board::{CELLS, pack_all, unpack_all};
use gristmill_format::g2048::heuristic::{board_eval_all, board_eval_interactive_all};
use gristmill_format::g2048::row::{layout_aligned, layout_packed};
use gristmill_format::g2048::value::value_layout;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::error::Fault;
use crate::layout::Layout;

/// Layouts of aligned and packed step rows, and of value rows.
#[pyfunction]
pub(crate) fn g2048_layouts() -> (Layout, Layout, Layout) {
    let layout = |layout: &Arc<gristmill_format::layout::Layout>| Layout(layout.as_ref().clone());
    (layout(layout_aligned()), layout(layout_packed()), layout(value_layout()))
}

/// The heuristic value (i32) of boards of sixteen ranks each.
#[pyfunction]
pub(crate) fn g2048_board_eval(py: Python<'_>, ranks: Contiguous, interactive: bool) -> Result<Memory, Fault> {
    py.detach(|| {
        let evaluate = if interactive { board_eval_interactive_all } else { board_eval_all };
        let mut values = vec![0; ranks.bytes().len() / CELLS];
        evaluate(ranks.bytes(), &mut values)?;
        memory(values.into_iter().map(i32::to_le_bytes))
    })
}

/// The packed boards (u64) and masks of 65536 tiles (u16) of boards of sixteen ranks each.
#[pyfunction]
pub(crate) fn g2048_pack(py: Python<'_>, ranks: Contiguous) -> Result<(Memory, Memory), Fault> {
    py.detach(|| {
        let count = ranks.bytes().len() / CELLS;
        let (mut boards, mut masks) = (vec![0; count], vec![0; count]);
        pack_all(ranks.bytes(), &mut boards, &mut masks)?;
        Ok((memory(boards.into_iter().map(u64::to_le_bytes))?, memory(masks.into_iter().map(u16::to_le_bytes))?))
    })
}

/// Sixteen ranks for each packed board (u64) and mask (u16).
#[pyfunction]
pub(crate) fn g2048_unpack(py: Python<'_>, boards: Contiguous, masks: Contiguous) -> Result<Memory, Fault> {
    py.detach(|| {
        let boards: Vec<u64> = boards.bytes().as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let masks: Vec<u16> = masks.bytes().as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect();
        let mut ranks = Memory::zeroed(CELLS * boards.len())?;
        unpack_all(&boards, &masks, ranks.bytes_mut()?)?;
        Ok(ranks)
    })
}

/// Numbers of `N` bytes each as memory.
fn memory<const N: usize>(numbers: impl ExactSizeIterator<Item = [u8; N]>) -> Result<Memory, Fault> {
    let mut memory = Memory::zeroed(N * numbers.len())?;
    for (bytes, number) in memory.bytes_mut()?.as_chunks_mut().0.iter_mut().zip(numbers) {
        *bytes = number;
    }
    Ok(memory)
}

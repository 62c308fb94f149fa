//! Rows as they lie in files -> rows by game and step: as they are where they lie so, else sorted in pieces that fit
//! memory and merged. Rows that have one key are refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_format::{Error as FormatError, Kind};

use super::stored::{BLOCK, Block, Key, Keys, Stored, Walk};

/// Bytes of rows that are sorted at a time, and of buffers while the pieces are merged.
const MEMORY: usize = 64 << 20;

/// Bytes before a record in a piece: run, step, number of the row.
const HEAD: usize = 20;

/// Rows in order of their keys, or as they lie.
pub(super) struct Ordered {
    stored: Arc<Stored>,
    from: From,
    block: Block,
    at: usize,
    /// Whether a key may stand there once only.
    unique: bool,
    last: Option<Key>,
}

enum From {
    Stored(Walk),
    Pieces(Merge),
}

impl Ordered {
    /// The rows as they lie.
    pub(super) fn stored(stored: &Arc<Stored>, keys: &Arc<Keys>, unique: bool) -> Self {
        let from = From::Stored(Walk::new(stored, keys));
        Ordered { stored: stored.clone(), from, block: Block::default(), at: 0, unique, last: None }
    }

    /// The rows sorted, by way of a file at `spill`; `done` gets the number of rows read so far.
    ///
    /// Errors: `Path`; `Format` with file and row; what `done` returns.
    pub(super) fn sorted(
        stored: &Arc<Stored>,
        keys: &Arc<Keys>,
        spill: PathBuf,
        done: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Self> {
        let from = From::Pieces(Merge::sort(stored, keys, spill, MEMORY, done)?);
        Ok(Ordered { stored: stored.clone(), from, block: Block::default(), at: 0, unique: true, last: None })
    }

    /// The key of the row that is next, its number in the files, and its record.
    ///
    /// Errors: `Format` with file and row: `Corrupt` for a second row of one key; `Path`.
    pub(super) fn peek(&mut self) -> Result<Option<(Key, u64, &[u8])>> {
        if self.at == self.block.keys.len() {
            self.at = 0;
            let more = match &mut self.from {
                From::Stored(walk) => walk.next(&mut self.block)?,
                From::Pieces(merge) => merge.next(&mut self.block)?,
            };
            if !more {
                self.block.keys.clear();
                return Ok(None);
            }
        }
        let size = self.stored.layout.size();
        Ok(Some((self.block.keys[self.at], self.block.rows[self.at], &self.block.records[self.at * size..][..size])))
    }

    /// Moves past the row that [`Ordered::peek`] gave.
    ///
    /// Errors: as it.
    pub(super) fn advance(&mut self) -> Result<()> {
        let (key, row) = (self.block.keys[self.at], self.block.rows[self.at]);
        if self.unique && self.last.is_some_and(|last| last >= key) {
            let detail = format!("step {} of run {} stands there twice", key.1, key.0);
            return Err(self.stored.place(FormatError::new(Kind::Corrupt, detail), row).into());
        }
        self.last = Some(key);
        self.at += 1;
        Ok(())
    }
}

/// Sorted pieces in one file, and a row of each that is next.
struct Merge {
    file: File,
    path: PathBuf,
    record: usize,
    pieces: Vec<Piece>,
    next: BinaryHeap<Reverse<(Key, u64, usize)>>,
}

struct Piece {
    /// Bytes of the file that are not in the buffer yet.
    from: u64,
    to: u64,
    buffer: Vec<u8>,
    at: usize,
    capacity: usize,
}

impl Merge {
    fn sort(
        stored: &Arc<Stored>,
        keys: &Arc<Keys>,
        path: PathBuf,
        memory: usize,
        done: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Self> {
        let refuse = |e: std::io::Error| Error::path(&path, &e);
        let opened = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = opened.map_err(refuse)?;
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let record = stored.layout.size();
        let (mut walk, mut block, mut held, mut ends) =
            (Walk::new(stored, keys), Block::default(), Block::default(), Vec::new());
        let mut end = 0u64;
        let mut more = true;
        while more {
            more = walk.next(&mut block)?;
            held.keys.append(&mut block.keys);
            held.rows.append(&mut block.rows);
            held.records.append(&mut block.records);
            let full = held.keys.len() * (record + HEAD + 8) >= memory;
            if held.keys.is_empty() || more && !full {
                continue;
            }
            let mut order: Vec<u32> = (0..held.keys.len() as u32).collect();
            order.sort_unstable_by_key(|i| (held.keys[*i as usize], held.rows[*i as usize]));
            for i in order {
                let ((run, step), i) = (held.keys[i as usize], i as usize);
                let mut head = [0; HEAD];
                head[..8].copy_from_slice(&run.to_le_bytes());
                head[8..12].copy_from_slice(&step.to_le_bytes());
                head[12..].copy_from_slice(&held.rows[i].to_le_bytes());
                let put = out.write_all(&head).and_then(|()| out.write_all(&held.records[i * record..][..record]));
                put.map_err(refuse)?;
            }
            end += (held.keys.len() * (record + HEAD)) as u64;
            ends.push(end);
            done(held.keys.len() as u64)?;
            held = Block::default();
        }
        out.flush().map_err(refuse)?;
        drop(out);
        let row = record + HEAD;
        let capacity = (memory / ends.len().max(1)).clamp(row, 1 << 20) / row * row;
        let starts = [0].into_iter().chain(ends.iter().copied());
        let piece = |(from, to)| Piece { from, to, buffer: Vec::new(), at: 0, capacity };
        let pieces = starts.zip(ends.iter().copied()).map(piece).collect();
        let mut merge = Merge { file, path, record, pieces, next: BinaryHeap::new() };
        (0..merge.pieces.len()).try_for_each(|i| merge.fill(i))?;
        Ok(merge)
    }

    /// Puts the next row of a piece among those that wait.
    fn fill(&mut self, i: usize) -> Result<()> {
        let piece = &mut self.pieces[i];
        if piece.at == piece.buffer.len() {
            let bytes = (piece.to - piece.from).min(piece.capacity as u64);
            piece.buffer.resize(bytes as usize, 0);
            piece.at = 0;
            let read = self.file.read_exact_at(&mut piece.buffer, piece.from);
            read.map_err(|e| Error::path(&self.path, &e))?;
            piece.from += bytes;
        }
        if let Some(head) = piece.buffer.get(piece.at..piece.at + HEAD) {
            let number = |from: usize| head[from..from + 8].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
            let step = head[8..12].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
            self.next.push(Reverse(((number(0), step), number(12), i)));
        }
        Ok(())
    }

    fn next(&mut self, block: &mut Block) -> Result<bool> {
        block.keys.clear();
        block.rows.clear();
        block.records.clear();
        while block.keys.len() < BLOCK as usize
            && let Some(Reverse((key, row, i))) = self.next.pop()
        {
            let piece = &mut self.pieces[i];
            block.keys.push(key);
            block.rows.push(row);
            block.records.extend_from_slice(&piece.buffer[piece.at + HEAD..][..self.record]);
            piece.at += HEAD + self.record;
            self.fill(i)?;
        }
        Ok(!block.keys.is_empty())
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        // What is left of it goes with the staging.
        let _ = fs::remove_file(&self.path);
    }
}

/// Where pieces are kept while number `i` of several tables is sorted.
pub(super) fn spill(staging: &Path, i: usize) -> PathBuf {
    staging.join(format!("sorting-{i}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_format::container::npy::{Header, Spelling};
    use gristmill_format::layout::{DType, Layout, Scalar};

    #[test]
    fn rows_are_sorted_through_many_small_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let layout =
            Layout::packed(&[("run_id", Scalar::U64, &[]), ("step_idx", Scalar::U32, &[]), ("x", Scalar::U32, &[])]);
        let layout = layout.unwrap();
        let rows = 50_000u64;
        let mut bytes = Header::write(&DType::Record(layout.clone()), &[rows], Spelling::NumPy).unwrap();
        for i in 0..rows {
            let scattered = i * 7919 % rows;
            bytes.extend((scattered / 100).to_le_bytes());
            bytes.extend(((scattered % 100) as u32).to_le_bytes());
            bytes.extend((i as u32).to_le_bytes());
        }
        fs::write(folder.path().join("steps.npy"), bytes).unwrap();
        let stored = Arc::new(
            Stored::open(layout.clone(), gristmill_engine::pack::shards::list(folder.path()).unwrap()).unwrap(),
        );
        let keys = Arc::new(Keys::new(&layout, false, None).unwrap());
        let path = spill(folder.path(), 0);
        let mut told = 0;
        let mut add = |rows| {
            told += rows;
            Ok(())
        };
        let mut merge = Merge::sort(&stored, &keys, path.clone(), 300_000, &mut add).unwrap();
        assert!(merge.pieces.len() > 3 && path.exists() && told == rows);
        let (mut block, mut at) = (Block::default(), 0u64);
        while merge.next(&mut block).unwrap() {
            for ((key, row), record) in block.keys.iter().zip(&block.rows).zip(block.records.chunks_exact(16)) {
                assert_eq!(*key, (at / 100, (at % 100) as u32));
                assert_eq!(record[12..], (*row as u32).to_le_bytes());
                at += 1;
            }
        }
        drop(merge);
        assert!(at == rows && !path.exists());
    }
}

//! Blocks that are missing -> those that another process brought, and those that requests bring: into the file first, then into the journal.
//! A block counts as there only after its bytes were held against its checksum, or were written by this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use gristmill_format::Result;
use gristmill_format::source::Span;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::super::blocks::{BLOCK, requests};
use super::Twin;

impl Twin {
    fn span(&self, first: u64, behind: u64) -> Span {
        let offset = first * BLOCK;
        Span { offset, len: (behind * BLOCK).min(self.len) - offset }
    }

    /// Of blocks that this process has not, those that no other process brought whole either.
    pub(super) fn known(&self, blocks: &[u64]) -> Result<Vec<u64>> {
        let Some(journal) = &self.journal else { return Ok(blocks.to_vec()) };
        let (mut unknown, mut bytes) = (Vec::new(), Vec::new());
        for block in blocks {
            let mut noted = [0; 8];
            journal.read_exact_at(&mut noted, block * 8)?;
            let noted = u64::from_le_bytes(noted);
            if noted != 0 {
                let span = self.span(*block, block + 1);
                bytes.resize(span.len as usize, 0);
                self.kept.as_ref().unwrap_or(&self.file).read_exact_at(&mut bytes, span.offset)?;
                if checksum(&bytes) == noted {
                    if self.kept.is_some() {
                        self.file.write_all_at(&bytes, span.offset)?;
                    }
                    self.arrive(*block);
                    continue;
                }
            }
            unknown.push(*block);
        }
        Ok(unknown)
    }

    /// Notes the checksum of a block for other processes, or 0 for one that is not there.
    pub(super) fn note(&self, block: u64, sum: u64) -> Result<()> {
        match &self.journal {
            Some(journal) if self.kept.is_none() => Ok(journal.write_all_at(&sum.to_le_bytes(), block * 8)?),
            _ => Ok(()),
        }
    }

    /// Fetches blocks, neighbours in one request.
    pub(super) fn fetch(&self, blocks: &[u64]) -> Result<()> {
        if let Some(bound) = &self.bound {
            bound.takes(self, blocks)?;
        }
        let runs = requests(blocks.iter().copied());
        let spans: Vec<Span> = runs.iter().map(|(first, behind)| self.span(*first, *behind)).collect();
        self.from.read_spans(&spans, &mut |i, pieces| {
            write_pieces(&self.file, pieces, spans[i].offset)?;
            for (block, sum) in (runs[i].0..runs[i].1).zip(checksums(pieces)) {
                self.note(block, sum)?;
                self.arrive(block);
            }
            Ok(())
        })
    }
}

/// Writes pieces that follow each other to a file, from `offset` on.
///
/// Errors: as writing a file.
pub(in crate::store) fn write_pieces(file: &File, pieces: &[&[u8]], mut offset: u64) -> io::Result<()> {
    for piece in pieces {
        file.write_all_at(piece, offset)?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// The checksum of a block, as the journal has it: never the 0 of a block that is not there.
fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes).max(1)
}

/// The checksums of neighbouring blocks, of which only the last may be shorter.
fn checksums(pieces: &[&[u8]]) -> Vec<u64> {
    let (mut sums, mut hash, mut room) = (Vec::new(), Xxh3::new(), BLOCK as usize);
    for mut piece in pieces.iter().copied() {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(room));
            hash.update(now);
            (piece, room) = (later, room - now.len());
            if room == 0 {
                sums.push(hash.digest().max(1));
                (hash, room) = (Xxh3::new(), BLOCK as usize);
            }
        }
    }
    if room < BLOCK as usize {
        sums.push(hash.digest().max(1));
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn checksums_are_those_of_blocks_in_whatever_pieces_they_come(
            len in 0..3 * BLOCK as usize,
            mut cuts in prop::collection::vec(0..3 * BLOCK as usize, 0..9),
        ) {
            let bytes: Vec<u8> = (0..len).map(|i| (i / 7 % 251) as u8).collect();
            cuts.extend([0, len]);
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(len));
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let expected: Vec<u64> = bytes.chunks(BLOCK as usize).map(checksum).collect();
            prop_assert_eq!(checksums(&pieces), expected);
        }
    }
}

//! Chunk files <-> what opening a pack of them needs: names, lengths and checksums of indexes, what chunks hold, and the bytes and
//! frames of each game. A reader holds each index against it before it reads the first game of that file.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_format::Result as FormatResult;
use gristmill_format::container::chunks::{ChunkFile, Codec as Tag};
use gristmill_format::layout::Layout;
use gristmill_format::source::ReadAt;
use gristmill_runtime::error::Result;
use gristmill_runtime::names::{file_name, is_chunks};
use gristmill_runtime::store::Residence;

use super::open::{Codecs, File, kind};
use crate::opening::numbers::{Bytes, put, put_block};
use crate::opening::{self, From, Opening, sealed};

/// A chunk file, as it is listed.
struct Listed<'a> {
    name: &'a str,
    len: u64,
    from: Arc<dyn ReadAt>,
    identity: u64,
    chunks: Vec<(u32, u32)>,
}

/// The files of a pack, open, with the layout of their records.
pub(super) type Opened = (Vec<File>, Arc<Layout>);

/// The bytes of the file for a pack whose chunk files are at `paths`, in order, and whose manifest has this text; none where the
/// layout of its records has no text that says it.
///
/// Errors: as [`ChunkFile::open`], with the file.
pub(crate) fn bytes_of(paths: &[PathBuf], manifest: &str, codecs: Codecs) -> FormatResult<Option<Vec<u8>>> {
    let files = paths.iter().map(|path| File::open_as(path.clone(), Residence::Mapped, codecs));
    let files = files.collect::<FormatResult<Vec<_>>>()?;
    let (codec, layout) = kind(&files)?;
    let descr = layout.to_descr();
    if !Layout::parse_descr(&descr).is_ok_and(|read| read == *layout) {
        return Ok(None);
    }
    let mut body = codec.tag().to_vec();
    put_block(&mut body, descr.as_bytes());
    body.extend_from_slice(&(files.len() as u64).to_le_bytes());
    for file in &files {
        let (name, index) = (file.path().file_name().unwrap_or_default().to_string_lossy().into_owned(), file.index());
        let span = index.index_span();
        put_block(&mut body, name.as_bytes());
        let frames: Vec<u64> = (0..index.len()).map(|i| index.frames(i).into()).collect();
        let lens: Vec<u64> = (0..index.len()).map(|i| index.span(i).unwrap_or_default().len).collect();
        let unit = unit(&frames, &lens);
        for number in [span.offset + span.len, index.identity(), index.len() as u64, unit] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        put(&mut body, &frames);
        if unit == 0 {
            put(&mut body, &lens);
        }
    }
    Ok(Some(sealed(opening::Layout::Chunks, manifest, &body)))
}

/// Bytes of a frame if every frame of every chunk takes the same number of bytes, else 0.
fn unit(frames: &[u64], lens: &[u64]) -> u64 {
    let unit = frames.first().zip(lens.first()).map_or(0, |(frames, len)| len / frames.max(&1));
    let fits = frames.iter().zip(lens).all(|(frames, len)| frames * unit == *len);
    if fits { unit } else { 0 }
}

/// Opens the files of a pack in a bucket by its `opening.index`. `None` if that file is missing or damaged, or belongs to another pack.
///
/// Errors: those of reading; as [`HeldFile::of`](gristmill_runtime::store::HeldFile::of).
pub(super) fn open(from: &From, residence: Residence, codecs: Codecs) -> Result<Option<Opened>> {
    let folder = &*from.folder;
    let Some(opening) = Opening::read(from, opening::Layout::Chunks, &is_chunks)? else { return Ok(None) };
    let Some((tag, layout, listed)) = read(&opening) else { return Ok(None) };
    if listed.is_empty() || listed.len() != opening.files.len() {
        return Ok(None);
    }
    let Ok(codec) = codecs(tag) else { return Ok(None) };
    let pool = opening.pool(folder, residence, |_| true)?;
    let mut files = Vec::new();
    for Listed { name, len, from, identity, chunks } in listed {
        let Ok(index) = ChunkFile::outlined(tag, identity, len, chunks) else { return Ok(None) };
        files.push(File::outlined(folder.join(name), from, index, codec, (residence, pool.as_ref()))?);
    }
    Ok(Some((files, Arc::new(layout))))
}

/// What a body says of files that are there: what chunks hold, the layout of their records, and the files.
fn read(opening: &Opening) -> Option<(Tag, Layout, Vec<Listed<'_>>)> {
    let mut bytes = Bytes(&opening.body);
    let tag = *bytes.take(8)?.first_chunk()?;
    let layout = Layout::parse_descr(bytes.text()?).ok()?;
    let (count, mut files) = (bytes.word()?, Vec::new());
    for i in 0..count {
        let name = bytes.text()?;
        let (len, identity, games, unit) = (bytes.word()?, bytes.word()?, bytes.word()?, bytes.word()?);
        let from = opening.file(name, len).filter(|_| name == file_name(i as usize))?;
        // No file has more games than its index has room for.
        if games > len / 32 {
            return None;
        }
        let frames = bytes.numbers(games)?;
        let lens = match unit {
            0 => bytes.numbers(games)?,
            _ => frames.iter().map(|frames| frames.checked_mul(unit)).collect::<Option<_>>()?,
        };
        let pair = |(len, frames): (u64, u64)| Some((u32::try_from(len).ok()?, u32::try_from(frames).ok()?));
        let chunks = lens.into_iter().zip(frames).map(pair).collect::<Option<_>>()?;
        files.push(Listed { name, len, from, identity, chunks });
    }
    bytes.0.is_empty().then_some((tag, layout, files))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The body of two files. In one of them every frame takes the same number of bytes.
    fn body() -> Vec<u8> {
        let mut body = b"bullet\0\x01".to_vec();
        put_block(&mut body, b"[('a', '<u4')]");
        body.extend_from_slice(&2u64.to_le_bytes());
        for (i, unit) in [(0, 32u64), (1, 0)] {
            put_block(&mut body, file_name(i).as_bytes());
            for number in [100_000, 7, 300, unit] {
                body.extend_from_slice(&u64::to_le_bytes(number));
            }
            put(&mut body, &(0..300).map(|i| 1 + i % 9).collect::<Vec<_>>());
            if unit == 0 {
                put(&mut body, &(0..300).map(|i| i % 100).collect::<Vec<_>>());
            }
        }
        body
    }

    fn opening(body: Vec<u8>) -> Opening {
        let file = || Arc::new(Zeros(100_000)) as Arc<dyn ReadAt>;
        Opening { body, files: BTreeMap::from([0, 1].map(|i| (file_name(i), file()))) }
    }

    struct Zeros(u64);

    impl ReadAt for Zeros {
        fn len(&self) -> FormatResult<u64> {
            Ok(self.0)
        }

        fn read_at(&self, _: u64, _: &mut [u8]) -> FormatResult<usize> {
            Ok(0)
        }
    }

    #[test]
    fn games_lie_where_the_body_says() {
        let opening = opening(body());
        let (tag, layout, files) = read(&opening).unwrap();
        assert_eq!((tag, layout.size(), files.len()), (*b"bullet\0\x01", 4, 2));
        assert_eq!((files[0].chunks[1], files[1].chunks[101]), ((64, 2), (1, 1 + 101 % 9)));
    }

    proptest! {
        #[test]
        fn no_body_breaks_a_reader(at in 0usize..900, with in any::<[u8; 8]>(), end in 0usize..1200) {
            let mut body = body();
            let at = at.min(body.len() - 8);
            body[at..at + 8].copy_from_slice(&with);
            let len = body.len();
            for body in [body.clone(), body[..end.min(len)].to_vec()] {
                for Listed { len, identity, chunks, .. } in read(&opening(body)).into_iter().flat_map(|read| read.2) {
                    let _ = ChunkFile::outlined(*b"anything", identity, len, chunks);
                }
            }
        }
    }
}

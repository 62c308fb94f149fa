//! Rows, in order -> the files of a pack: one, or shards of equal length, each with its header and hash.
//! Can go back to a mark, and resume where a killed process stopped. Publishes nothing by itself.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::RowForm;
use gristmill_format::layout::DType;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::publish::sync_folder;
use xxhash_rust::xxh3::Xxh3;

use super::checksums::{self, SumMark, Summing};
use super::manifest::RowFile;
use super::shards;
use crate::row_files;

/// Bytes gathered before they are written.
const GATHERED: usize = 1 << 20;

/// Where a writer stands: see [`RowWriter::rewind`].
#[derive(Clone)]
pub struct Mark {
    /// Files that were complete.
    complete: usize,
    /// Rows of the file that was open, the hash of these, and where the checksums of their blocks stood.
    open: Option<(u64, Xxh3, SumMark)>,
}

/// Writes rows of one form into the files of a folder.
pub struct RowWriter {
    folder: PathBuf,
    form: RowForm,
    shard_rows: Option<u64>,
    complete: Vec<RowFile>,
    open: Option<Open>,
    /// Names of files that may not be on the disk yet.
    volatile: Vec<String>,
}

struct Open {
    name: String,
    path: PathBuf,
    file: File,
    offset: u64,
    rows: u64,
    hash: Xxh3,
    sums: Summing,
    /// Bytes of rows that are in the file already.
    written: u64,
    /// Rows that are not in the file yet.
    gathered: Vec<u8>,
}

impl RowWriter {
    /// A writer into `folder` that has written nothing. `shard_rows` is at least 1, or none for one file of all rows.
    pub fn new(folder: &Path, form: RowForm, shard_rows: Option<u64>) -> Self {
        Self::after(folder, form, shard_rows, Vec::new())
    }

    /// A writer that resumes where another one stood: after files that are complete, and `open_rows` rows in the next
    /// one. What was written later is removed.
    ///
    /// Errors: `Path`; of kind `UnexpectedEof` when a file is shorter than that.
    pub fn resume(
        folder: &Path,
        form: RowForm,
        shard_rows: Option<u64>,
        complete: Vec<RowFile>,
        open_rows: u64,
    ) -> Result<Self> {
        let mut writer = Self::after(folder, form, shard_rows, complete);
        if open_rows > 0 {
            writer.reopen(open_rows)?;
        }
        for name in shards::names(folder)? {
            let known = writer.complete.iter().any(|file| file.name == name);
            if !known && writer.open.as_ref().is_none_or(|open| open.name != name) {
                remove(&folder.join(name))?;
            }
        }
        // Of rows that were taken back when the other writer was killed.
        for name in row_files::listed(folder, row_files::is_checksums)? {
            if !folder.join(name.trim_end_matches(row_files::CHECKSUMS)).exists() {
                fs::remove_file(folder.join(&name)).map_err(|e| Error::path(folder.join(name), &e))?;
            }
        }
        Ok(writer)
    }

    fn after(folder: &Path, form: RowForm, shard_rows: Option<u64>, complete: Vec<RowFile>) -> Self {
        RowWriter { folder: folder.to_owned(), form, shard_rows, complete, open: None, volatile: Vec::new() }
    }

    /// Files that are complete.
    pub fn complete(&self) -> &[RowFile] {
        &self.complete
    }

    /// Rows of the file that is being written.
    pub fn open_rows(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.rows)
    }

    /// Rows in all files.
    pub fn rows(&self) -> u64 {
        self.complete.iter().map(|file| file.rows).sum::<u64>() + self.open_rows()
    }

    /// Opens the next file, which holds at least `rows` rows; what follows them is cut off.
    fn reopen(&mut self, rows: u64) -> Result<()> {
        let mut open = self.next(false)?;
        let refuse = |e: std::io::Error| Error::path(&open.path, &e);
        let mut left = rows * self.form.bytes() as u64;
        let there = open.file.metadata().map_err(refuse)?.len();
        if there < open.offset + left {
            return Err(refuse(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let mut block = vec![0; GATHERED];
        let mut at = open.offset;
        while left > 0 {
            let n = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            open.file.read_exact_at(&mut block[..n], at).map_err(refuse)?;
            open.hash.update(&block[..n]);
            open.sums.update(&block[..n]);
            (at, left) = (at + n as u64, left - n as u64);
        }
        open.rows = rows;
        open.written = at - open.offset;
        open.file.set_len(at).map_err(refuse)?;
        self.open = Some(open);
        Ok(())
    }

    /// Appends rows, back to back in the writer's form.
    ///
    /// Errors: `Path`.
    pub fn write(&mut self, mut rows: &[u8]) -> Result<()> {
        let size = self.form.bytes();
        while !rows.is_empty() {
            let open = match self.open.take() {
                Some(open) => open,
                None => self.next(true)?,
            };
            let open = self.open.insert(open);
            let room = self.shard_rows.map_or(u64::MAX, |most| most - open.rows);
            let n = (rows.len() / size).min(usize::try_from(room).unwrap_or(usize::MAX));
            let (now, later) = rows.split_at(n * size);
            open.append(now)?;
            open.rows += n as u64;
            rows = later;
            if self.shard_rows == Some(open.rows) {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Where the writer stands now.
    pub fn mark(&self) -> Mark {
        let open = self.open.as_ref().map(|open| (open.rows, open.hash.clone(), open.sums.mark()));
        Mark { complete: self.complete.len(), open }
    }

    /// Takes back everything that was written since `mark`.
    ///
    /// Errors: `Path`.
    pub fn rewind(&mut self, mark: Mark) -> Result<()> {
        let newest = self.open.take();
        let same_file = newest.is_some() && mark.complete == self.complete.len() && mark.open.is_some();
        if let Some(open) = &newest
            && !same_file
        {
            remove(&open.path)?;
        }
        let kept = mark.complete + usize::from(mark.open.is_some());
        for file in self.complete.iter().skip(kept) {
            remove(&self.folder.join(&file.name))?;
        }
        self.complete.truncate(mark.complete);
        self.volatile.retain(|name| self.complete.iter().any(|file| file.name == *name));
        let Some((rows, hash, sums)) = mark.open else { return Ok(()) };
        let (mut open, done) = match newest {
            Some(open) if same_file => (open, None),
            _ => {
                let open = self.next(false)?;
                let done =
                    checksums::written(&open.path).map_err(|e| Error::path(checksums::beside(&open.path), &e))?;
                (open, Some(done))
            }
        };
        open.sums.rewind(sums, done);
        let bytes = rows * self.form.bytes() as u64;
        if open.written > bytes || !same_file {
            open.file.set_len(open.offset + bytes).map_err(|e| Error::path(&open.path, &e))?;
            open.written = bytes;
            open.gathered.clear();
        } else {
            open.gathered.truncate((bytes - open.written) as usize);
        }
        (open.rows, open.hash) = (rows, hash);
        self.open = Some(open);
        Ok(())
    }

    /// Makes everything that was written durable, also the names of files, but not the header of the open file.
    ///
    /// Errors: `Path`.
    pub fn sync(&mut self) -> Result<()> {
        for name in std::mem::take(&mut self.volatile) {
            let path = self.folder.join(name);
            for path in [checksums::beside(&path), path] {
                let synced = File::open(&path).and_then(|file| file.sync_all());
                synced.map_err(|e| Error::path(path, &e))?;
            }
        }
        if let Some(open) = &mut self.open {
            open.flush()?;
            open.file.sync_data().map_err(|e| Error::path(&open.path, &e))?;
        }
        sync_folder(&self.folder)
    }

    /// Completes the last file; a pack without rows has one file without rows.
    ///
    /// Errors: `Path`.
    pub fn finish(mut self) -> Result<Vec<RowFile>> {
        if self.open.is_none() && self.complete.is_empty() {
            self.open = Some(self.next(true)?);
        }
        if self.open.is_some() {
            self.close()?;
        }
        self.sync()?;
        Ok(self.complete)
    }

    /// The next file: made (`fresh`), or opened as it is.
    fn next(&self, fresh: bool) -> Result<Open> {
        let name = match self.shard_rows {
            Some(_) => shards::name(self.complete.len()),
            None => row_files::SINGLE.to_owned(),
        };
        let path = self.folder.join(&name);
        let header = self.header(0)?;
        let opened = OpenOptions::new().read(true).write(true).create(fresh).truncate(fresh).open(&path);
        let file = opened.map_err(|e| Error::path(&path, &e))?;
        if fresh {
            file.write_all_at(&header, 0).map_err(|e| Error::path(&path, &e))?;
        }
        let (offset, hash, sums) = (header.len() as u64, Xxh3::new(), Summing::new(self.form.bytes()));
        Ok(Open { name, path, file, offset, rows: 0, hash, sums, written: 0, gathered: Vec::new() })
    }

    /// As long for any number of rows, so that it can be written last.
    fn header(&self, rows: u64) -> Result<Vec<u8>> {
        let spelling = match self.form {
            RowForm::Aligned => Spelling::NumPy,
            RowForm::Packed => Spelling::Reserved,
        };
        Ok(Header::write(&DType::Record((**self.form.layout()).clone()), &[rows], spelling)?)
    }

    fn close(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.flush()?;
        let header = self.header(open.rows)?;
        open.file.write_all_at(&header, 0).map_err(|e| Error::path(&open.path, &e))?;
        let sums = open.sums.finish(open.rows, self.form.bytes(), &header);
        let beside = checksums::beside(&open.path);
        fs::write(&beside, sums).map_err(|e| Error::path(&beside, &e))?;
        self.volatile.push(open.name.clone());
        let xxh3_128 = format!("{:032x}", open.hash.digest128());
        self.complete.push(RowFile { name: open.name, rows: open.rows, xxh3_128 });
        Ok(())
    }
}

impl Open {
    fn append(&mut self, rows: &[u8]) -> Result<()> {
        self.hash.update(rows);
        self.sums.update(rows);
        if self.gathered.len() + rows.len() > GATHERED {
            self.flush()?;
        }
        if rows.len() >= GATHERED {
            return self.put(rows);
        }
        self.gathered.extend_from_slice(rows);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        self.put(&gathered)?;
        gathered.clear();
        self.gathered = gathered;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let put = self.file.write_all_at(bytes, self.offset + self.written);
        put.map_err(|e| Error::path(&self.path, &e))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Removes a file of rows, and the checksums beside it if there are some.
fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| Error::path(path, &e))?;
    let beside = checksums::beside(path);
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::path(beside, &e)),
        _ => Ok(()),
    }
}

/// The hash of the rows in a file, as [`RowFile`] has it: of `bytes` bytes from `offset` on.
///
/// Errors: `Path`; of kind `UnexpectedEof` when the file is shorter.
pub fn hash_rows(path: &Path, offset: u64, bytes: u64) -> Result<u128> {
    let refuse = |e: std::io::Error| Error::path(path, &e);
    let mut file = File::open(path).map_err(refuse)?;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(offset)).map_err(refuse)?;
    let (mut hash, mut block, mut left) = (Xxh3::new(), vec![0; GATHERED], bytes);
    while left > 0 {
        let n = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.read_exact(&mut block[..n]).map_err(refuse)?;
        hash.update(&block[..n]);
        left -= n as u64;
    }
    Ok(hash.digest128())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(form: RowForm, range: std::ops::Range<u64>) -> Vec<u8> {
        range.flat_map(|i| vec![i as u8; form.bytes()]).collect()
    }

    /// Everything that was written, checksums too.
    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = names.map(|n| (n.clone(), fs::read(folder.join(n)).unwrap())).collect();
        files.sort();
        files
    }

    #[test]
    fn files_are_filled_exactly_and_their_headers_count() {
        for (shard_rows, total, expected) in [
            (None, 10, vec![("steps.npy", 10)]),
            (None, 0, vec![("steps.npy", 0)]),
            (Some(4), 0, vec![("steps-00000.npy", 0)]),
            (Some(4), 8, vec![("steps-00000.npy", 4), ("steps-00001.npy", 4)]),
            (Some(4), 9, vec![("steps-00000.npy", 4), ("steps-00001.npy", 4), ("steps-00002.npy", 1)]),
        ] {
            for form in [RowForm::Aligned, RowForm::Packed] {
                let folder = tempfile::tempdir().unwrap();
                let mut writer = RowWriter::new(folder.path(), form, shard_rows);
                for start in (0..total).step_by(3) {
                    writer.write(&rows(form, start..total.min(start + 3))).unwrap();
                }
                assert_eq!(writer.rows(), total);
                let written = writer.finish().unwrap();
                let named: Vec<(&str, u64)> = written.iter().map(|f| (f.name.as_str(), f.rows)).collect();
                assert_eq!(named, expected);
                let mut whole = Vec::new();
                for (shard, file) in shards::list(folder.path()).unwrap().iter().zip(&written) {
                    assert_eq!((shard.rows, &shard.layout, shard.offset), (file.rows, &**form.layout(), 384));
                    let hash = hash_rows(&shard.path, 384, file.rows * form.bytes() as u64).unwrap();
                    assert_eq!(format!("{hash:032x}"), file.xxh3_128);
                    let (made, again) = checksums::of(shard).unwrap();
                    assert_eq!((made, again), (fs::read(checksums::beside(&shard.path)).unwrap(), hash));
                    whole.extend_from_slice(&fs::read(&shard.path).unwrap()[384..]);
                }
                assert_eq!(whole, rows(form, 0..total));
            }
        }
    }

    #[test]
    fn rows_that_are_gathered_and_rows_that_are_not_come_in_their_order() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let form = RowForm::Packed;
        let block = GATHERED.div_ceil(form.bytes()) as u64;
        let parts = [0..3, 3..block + 5, block + 5..block + 6, block + 6..2 * block, 2 * block..2 * block + 9];
        let mut straight = RowWriter::new(a.path(), form, None);
        straight.write(&rows(form, 0..2 * block + 9)).unwrap();
        let expected = straight.finish().unwrap();
        let mut writer = RowWriter::new(b.path(), form, None);
        for part in parts {
            let mark = writer.mark();
            writer.write(&rows(form, 50..50 + block)).unwrap();
            writer.rewind(mark).unwrap();
            let mark = writer.mark();
            writer.write(&rows(form, 7..9)).unwrap();
            writer.rewind(mark).unwrap();
            writer.write(&rows(form, part)).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), expected);
        assert!(files(b.path()) == files(a.path()), "the bytes of the files");
    }

    #[test]
    fn a_writer_that_stood_between_two_files_resumes_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RowWriter::new(folder.path(), RowForm::Packed, Some(4));
        writer.write(&rows(RowForm::Packed, 0..4)).unwrap();
        let (complete, open) = (writer.complete().to_vec(), writer.open_rows());
        let writer = RowWriter::resume(folder.path(), RowForm::Packed, Some(4), complete.clone(), open).unwrap();
        assert_eq!((writer.rows(), writer.finish().unwrap()), (4, complete));
    }

    #[test]
    fn checksums_that_cannot_be_removed_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.npy");
        fs::write(&path, "rows").unwrap();
        remove(&path).unwrap();
        fs::write(&path, "rows").unwrap();
        fs::create_dir(checksums::beside(&path)).unwrap();
        assert!(remove(&path).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The files are the same, whatever is taken back, and wherever a process is killed and resumes.
        #[test]
        fn going_back_and_going_on_leave_no_trace(
            shard_rows in prop::option::of(1u64..9),
            kept in 0u64..30,
            lost in 0u64..30,
            more in 0u64..30,
            killed in any::<bool>(),
        ) {
            let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let form = RowForm::Packed;
            let mut straight = RowWriter::new(a.path(), form, shard_rows);
            straight.write(&rows(form, 0..kept + more)).unwrap();
            let expected = straight.finish().unwrap();

            let mut writer = RowWriter::new(b.path(), form, shard_rows);
            writer.write(&rows(form, 0..kept)).unwrap();
            let (mark, complete, open) = (writer.mark(), writer.complete().to_vec(), writer.open_rows());
            writer.sync().unwrap();
            writer.write(&rows(form, 100..100 + lost)).unwrap();
            if killed {
                drop(writer);
                writer = RowWriter::resume(b.path(), form, shard_rows, complete, open).unwrap();
            } else {
                writer.rewind(mark).unwrap();
            }
            prop_assert_eq!(writer.rows(), kept);
            writer.write(&rows(form, kept..kept + more)).unwrap();
            prop_assert_eq!(writer.finish().unwrap(), expected);
            prop_assert_eq!(files(b.path()), files(a.path()));
        }
    }
}

//! A solid file -> its plain bytes: read when the first of them is wanted, and let go when as many were given as there are.
//! So a job that opens a thousand files, and reads each once in any order, holds those that it is at.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::detect::{Format, read_whole};
use gristmill_format::plain::Rooms;
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};

/// The plain bytes of a solid file.
pub(crate) struct Reread {
    format: Format,
    key: String,
    from: Arc<dyn ReadAt>,
    /// How many there are.
    len: u64,
    /// Most that are taken.
    max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// The bytes, or why they cannot be had.
    plain: Option<Result<Arc<Vec<u8>>>>,
    given: u64,
}

impl Reread {
    /// The file `from`, called `key`, whose plain bytes are `len`, at most `max`.
    pub(crate) fn new(format: Format, key: &str, from: Arc<dyn ReadAt>, (len, max): (u64, usize)) -> Self {
        Reread { format, key: key.to_owned(), from, len, max, held: Mutex::default() }
    }

    fn read(&self) -> Result<Arc<Vec<u8>>> {
        let (whole, _) = read_whole(self.format, &self.key, &*self.from, self.max, &mut Rooms::default())?;
        let plain = whole.plain.into_bytes();
        if plain.len() as u64 != self.len {
            let detail =
                format!("{} bytes of rows, and {} when it was opened: it was written over", plain.len(), self.len);
            return Err(Error::new(Kind::Corrupt, detail));
        }
        Ok(Arc::new(plain))
    }
}

impl ReadAt for Reread {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let plain = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let plain = held.plain.get_or_insert_with(|| self.read()).clone()?;
            held.given = held.given.saturating_add(buf.len() as u64);
            if held.given >= self.len {
                *held = Held::default();
            }
            plain
        };
        plain.read_at(offset, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that counts how often it is read.
    struct Counted(Vec<u8>, Mutex<u32>);

    impl ReadAt for Counted {
        fn len(&self) -> Result<u64> {
            *self.1.lock().unwrap() += 1;
            ReadAt::len(&*self.0)
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            ReadAt::read_at(&*self.0, offset, buf)
        }
    }

    #[test]
    fn bytes_are_read_once_for_a_pass_in_any_order_and_again_for_the_next() {
        let text = b"[Event \"a\"]\n\n1. e4 *\n".repeat(8);
        let packed = gristmill_format::container::gzip::compress(6, &text).unwrap();
        let file = Arc::new(Counted(packed, Mutex::new(0)));
        let len = text.len() as u64;
        let plain = Reread::new(Format::PackedPgn, "a.pgn.gz", file.clone(), (len, 1 << 20));
        let (mut half, mut counted) = (vec![0; text.len() / 2], Vec::new());
        for _ in 0..3 {
            for offset in [half.len(), 0] {
                assert_eq!(plain.read_at(offset as u64, &mut half).unwrap(), half.len());
                assert_eq!(half, text[offset..][..half.len()]);
                counted.push(*file.1.lock().unwrap());
            }
        }
        let once = counted[0];
        assert_eq!(counted, [once, once, 2 * once, 2 * once, 3 * once, 3 * once]);
        let other = Reread::new(Format::PackedPgn, "a.pgn.gz", file, (len + 1, 1 << 20));
        assert!(other.read_at(0, &mut half).unwrap_err().detail().contains("written over"));
    }
}

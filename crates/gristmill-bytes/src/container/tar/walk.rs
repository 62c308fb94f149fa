//! Tar bytes -> index, by one pass over the headers that skips the payloads.
//! Damage is noted and stepped over: what lies before it and, where headers can be found again, after it is kept.

use super::BLOCK;
use super::blocks::{Blocks, Windows, cut};
use super::extended::Extended;
use super::header::{self, Block};
use super::index::TarIndex;
use crate::error::{Error, Kind, Result};
use crate::source::ReadAt;

/// Bytes read at a time.
const WINDOW: usize = 256 << 10;

/// Bounds that the walk keeps, whatever the tar says.
#[derive(Debug, Clone, Copy)]
pub struct TarLimits {
    /// Most members.
    pub max_entries: usize,
    /// Longest name of a member, in bytes.
    pub max_name_bytes: usize,
    /// Largest pax or GNU name header, in bytes.
    pub max_extended_bytes: u64,
    /// Faults after which the rest of the tar is given up.
    pub max_faults: usize,
}

impl Default for TarLimits {
    /// 16 Mi members, names of 4096 bytes, 1 MiB of extended header, 1000 faults.
    fn default() -> Self {
        TarLimits { max_entries: 16 << 20, max_name_bytes: 4096, max_extended_bytes: 1 << 20, max_faults: 1000 }
    }
}

/// Walks the headers of a tar.
///
/// Errors: only what reading gives (`Io`). Whatever is wrong with the tar itself is in
/// [`TarIndex::faults`] (`Empty`, `Truncated`, `Corrupt`, `TooLarge`, `Unsupported`, each with its byte); a member
/// that reaches beyond the end of the file keeps its entry and has a `Truncated` fault. What comes after the end mark
/// is no part of the tar, and a `Corrupt` fault where it is not zero.
pub fn walk(from: &(impl ReadAt + ?Sized), limits: &TarLimits) -> Result<TarIndex> {
    let mut walk = Walk::new(Windows::new(from, WINDOW)?, *limits);
    let mut at = 0;
    while let Some(following) = walk.step(at)? {
        if following <= at || walk.index.faults().len() >= limits.max_faults {
            break;
        }
        at = following;
    }
    if let Some(fault) = walk.behind()? {
        walk.index.fault(fault);
    }
    Ok(walk.index)
}

pub(super) struct Walk<B> {
    pub(super) blocks: B,
    limits: TarLimits,
    /// What was found; a caller that takes members one by one empties it.
    pub(super) index: TarIndex,
    members: usize,
    /// What extended headers said about the next member.
    next: Extended,
    /// An extended header of the next member could not be read: its name or size may be wrong.
    next_unknown: bool,
    global: Extended,
    /// After damage: looking for the next header that is certainly one.
    lost: bool,
    /// The first block of the end mark.
    end_mark: Option<u64>,
}

impl<B: Blocks> Walk<B> {
    pub(crate) fn new(blocks: B, limits: TarLimits) -> Self {
        Walk {
            blocks,
            limits,
            index: TarIndex::default(),
            members: 0,
            next: Extended::default(),
            next_unknown: false,
            global: Extended::default(),
            lost: false,
            end_mark: None,
        }
    }

    /// Whether something was said of a member that has not come yet.
    pub(super) fn gathers(&self) -> bool {
        self.next_unknown || self.next != Extended::default()
    }

    /// Whether a global header says something of every member.
    pub(super) fn says_of_all(&self) -> bool {
        self.global != Extended::default()
    }

    /// Looks at the block at `at`; returns where to look next, or `None` at the end.
    pub(super) fn step(&mut self, at: u64) -> Result<Option<u64>> {
        let Some(block) = self.blocks.block(at)? else {
            self.ran_out(at);
            return Ok(None);
        };
        let beyond = at + BLOCK;
        if header::is_zero(&block) {
            if self.lost {
                return Ok(Some(beyond));
            }
            self.end_mark = Some(at);
            return Ok(None);
        }
        let sound = header::checksum_holds(&block) && (!self.lost || header::has_magic(&block));
        let Some(size) = header::size(&block).filter(|_| sound) else {
            let on = self.lose(at, at, Kind::Corrupt, "not a tar header: its checksum or size field is wrong");
            return Ok((sound || at > 0).then_some(on));
        };
        self.lost = false;
        match header::kind(&block) {
            kind @ (b'x' | b'X' | b'g' | b'L') => self.extended(kind, at, size),
            b'K' => Ok(self.skip(at, beyond, size)),
            b'1'..=b'6' => self.bodiless(at, size),
            b'S' => self.sparse(at, &block, size),
            kind => Ok(self.member(at, kind, &block, size)),
        }
    }

    /// What comes after the end mark, if it was reached and anything does: every reader of tars ends there without a word.
    pub(crate) fn behind(&mut self) -> Result<Option<Error>> {
        let Some(mark) = self.end_mark else { return Ok(None) };
        let Some(set) = self.blocks.first_set(mark + BLOCK)? else { return Ok(None) };
        let begins = set - (set - mark) % BLOCK;
        let header = match self.blocks.block(begins)? {
            Some(block) => header::checksum_holds(&block) && header::has_magic(&block),
            None => false,
        };
        let detail = if begins == mark + BLOCK {
            "a header of zeros ends the tar here; what follows it is reached by no reader of tars".to_owned()
        } else if header {
            format!(
                "another tar begins at byte {begins}, after the end mark of the first: tars that were joined; give each as \
                 a file of its own, or unpack and pack them as one (`tar --ignore-zeros -x`)"
            )
        } else {
            format!(
                "byte {set}, after the end mark, is not zero: something was joined to the tar, or a part of it is lost"
            )
        };
        Ok(Some(Error::new(Kind::Corrupt, detail).at_byte(mark)))
    }

    /// Notes a fault at byte `at` and looks for further headers after block `from`.
    fn lose(&mut self, at: u64, from: u64, kind: Kind, detail: impl Into<String>) -> u64 {
        if !self.lost {
            self.index.fault(Error::new(kind, detail).at_byte(at));
        }
        self.lost = true;
        self.forget();
        from + BLOCK
    }

    fn forget(&mut self) {
        self.next = Extended::default();
        self.next_unknown = false;
    }

    /// The end of the file came before the end mark.
    fn ran_out(&mut self, at: u64) {
        let error = match self.blocks.end() {
            0 => Error::new(Kind::Empty, "a tar of no bytes"),
            end => Error::new(Kind::Truncated, format!("the tar ends at {end} without its end mark")),
        };
        if !self.lost {
            self.index.fault(error.at_byte(at.min(self.blocks.end())));
        }
    }

    /// A regular file, or something unknown with a payload.
    fn member(&mut self, at: u64, kind: u8, block: &Block, size: u64) -> Option<u64> {
        let said = std::mem::take(&mut self.next).over(&self.global);
        let unknown = std::mem::take(&mut self.next_unknown);
        let len = said.size.unwrap_or(size);
        let name = said.path.unwrap_or_else(|| header::name(block));
        if matches!(kind, b'0' | 0 | b'7') && !name.ends_with('/') && !unknown {
            let refused = if said.sparse {
                Some((Kind::Unsupported, "a sparse file; unpack it".to_owned()))
            } else if name.len() > self.limits.max_name_bytes {
                Some((Kind::TooLarge, format!("a name of {} bytes", name.len())))
            } else if self.members >= self.limits.max_entries || !self.index.push(at + BLOCK, len, &name) {
                self.index.fault(Error::new(Kind::TooLarge, format!("more than {} members", self.members)).at_byte(at));
                return None;
            } else {
                self.members += 1;
                None
            };
            if let Some((kind, detail)) = refused {
                self.index.fault(Error::new(kind, detail).at_byte(at));
            }
        }
        self.skip(at, at + BLOCK, len)
    }

    /// Where the header after a payload lies, if the payload ends within the file.
    fn skip(&mut self, at: u64, payload: u64, size: u64) -> Option<u64> {
        let end = self.blocks.end();
        match payload.checked_add(size) {
            Some(last) if last <= end => last.checked_next_multiple_of(BLOCK),
            _ => Some(self.lose(payload, at, Kind::Truncated, cut(size, end).detail())),
        }
    }

    /// A pax or GNU long-name header: kept for the members it is about.
    fn extended(&mut self, kind: u8, at: u64, size: u64) -> Result<Option<u64>> {
        let payload = at + BLOCK;
        let following = self.skip(at, payload, size);
        if self.lost {
            return Ok(following);
        }
        if size > self.limits.max_extended_bytes {
            self.index.fault(Error::new(Kind::TooLarge, format!("an extended header of {size} bytes")).at_byte(at));
            self.next_unknown = true;
            return Ok(following);
        }
        let mut bytes = Vec::new();
        match self.blocks.read(payload, size, &mut bytes) {
            Err(e) if e.kind() == Kind::Truncated => {
                self.index.fault(e);
                return Ok(None);
            }
            read => read?,
        }
        let understood = match kind {
            b'L' => {
                self.next.path = Some(String::from_utf8_lossy(header::text(&bytes)).into_owned());
                true
            }
            b'g' => self.global.pax(&bytes),
            _ => self.next.pax(&bytes),
        };
        if !understood {
            self.index.fault(Error::new(Kind::Corrupt, "a pax header that does not add up").at_byte(payload));
            self.next_unknown = true;
        }
        Ok(following)
    }

    /// Links, directories and devices store no payload, whatever their size says, unless a writer put one there.
    fn bodiless(&mut self, at: u64, size: u64) -> Result<Option<u64>> {
        let said = std::mem::take(&mut self.next);
        self.forget();
        let beyond = at + BLOCK;
        let size = said.size.unwrap_or(size);
        let follows = match self.blocks.block(beyond)? {
            Some(block) => header::is_zero(&block) || header::checksum_holds(&block),
            None => true,
        };
        Ok(if size == 0 || follows { Some(beyond) } else { self.skip(at, beyond, size) })
    }

    /// An old GNU sparse file: more map blocks, then the payload; not a file that can be read as it lies.
    fn sparse(&mut self, at: u64, block: &Block, size: u64) -> Result<Option<u64>> {
        self.forget();
        self.index.fault(Error::new(Kind::Unsupported, "a sparse file; unpack it").at_byte(at));
        let mut payload = at + BLOCK;
        let mut more = header::sparse_continues(block, 482);
        while more {
            let Some(map) = self.blocks.block(payload)? else { break };
            more = header::sparse_continues(&map, 504);
            payload += BLOCK;
        }
        Ok(self.skip(at, payload, size))
    }
}

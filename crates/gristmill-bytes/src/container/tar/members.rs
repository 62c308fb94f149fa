//! A tar -> its members one after another, front to back: for what must be whole. The first fault ends it; what lies
//! after the end mark is one, unless it is to be passed over.
//! Remembers one member at a time, however many there are.

use super::blocks::Blocks;
use super::walk::{TarLimits, Walk};
use crate::error::{Error, Result};

/// One regular file in the tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// First byte of its first header.
    pub header: u64,
    /// First byte of the payload.
    pub offset: u64,
    /// Bytes of payload.
    pub len: u64,
    /// Full name; bytes that are not UTF-8 are replaced.
    pub name: String,
}

/// The members of a tar that is read once.
pub struct Members<B> {
    walk: Walk<B>,
    at: Option<u64>,
    until: u64,
    lenient: bool,
    behind: Option<Error>,
}

impl<B: Blocks> Members<B> {
    /// The members that `blocks` hold, within `limits`.
    pub fn new(blocks: B, limits: TarLimits) -> Self {
        Members::within(blocks, limits, 0, u64::MAX)
    }

    /// The same; what follows the end mark is noted ([`Members::behind`]) instead of refused.
    pub fn lenient(self, lenient: bool) -> Self {
        Members { lenient, ..self }
    }

    /// What came after the end mark, once that was reached.
    pub fn behind(&mut self) -> Option<Error> {
        self.behind.take()
    }

    /// Those between two bytes, which are known to be the first of a header and the last of a payload.
    pub fn within(blocks: B, limits: TarLimits, from: u64, until: u64) -> Self {
        Members { walk: Walk::new(blocks, limits), at: Some(from), until, lenient: false, behind: None }
    }

    /// Where the bytes come from. What lies before the member last given may be gone.
    pub fn blocks(&mut self) -> &mut B {
        &mut self.walk.blocks
    }

    /// Whether a global header says anything of all members that follow it, so that none can be read alone.
    pub fn depend(&self) -> bool {
        self.walk.says_of_all()
    }

    /// The next member; `None` after the end mark.
    ///
    /// Errors, with the byte: whatever is wrong with the tar up to there, its end mark included; `Io`.
    pub fn following(&mut self) -> Result<Option<Member>> {
        let mut header = self.at;
        while let Some(at) = self.at.filter(|at| *at < self.until) {
            let following = self.walk.step(at)?;
            if let Some(fault) = self.walk.index.faults().first() {
                self.at = None;
                return Err(fault.clone());
            }
            self.at = following.filter(|following| *following > at);
            if self.at.is_none()
                && let Some(fault) = self.walk.behind()?
            {
                match self.lenient {
                    true => self.behind = Some(fault),
                    false => return Err(fault),
                }
            }
            if let Some(found) = self.walk.index.get(0) {
                let (offset, len, name) = (found.offset, found.len, found.name.to_owned());
                self.walk.index.clear();
                return Ok(Some(Member { header: header.unwrap_or(at), offset, len, name }));
            }
            // Headers of the next member gather in front of it; what is no member is behind us.
            if !self.walk.gathers() {
                header = self.at;
            }
        }
        Ok(None)
    }
}

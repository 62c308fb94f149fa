//! A share of the games of a pack -> their keys, kept beside the report; the keys of all shares -> the report of one process, and its
//! mark. A share holds few keys at a time, the commit all of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::marks;
use gristmill_engine::pack_table::{Content, PackTable};
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_engine::store::publish::Staged;
use gristmill_format::container::marks::Origin;
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::{Duplicates, grouped};
use crate::content::contents_of;
use crate::mark::{self, MarkOptions};
use crate::reports::{self, Sharing, check_absent, named};
use crate::shares::{Attempt, Job, Outcome, Said, Shared, Unit, Whole, make, place};

/// The name of the job in plans.
pub(crate) const JOB: &str = "dedup";

/// The file of a share with an entry for each of its games, by ascending id. An entry is the id (8 bytes), the key (16) and the hash of the
/// game's records (16), all little-endian, and the number of the image (1).
const KEYS: &str = "keys";

/// Bytes of a game there.
const KEY: usize = 8 + 16 + 16 + 1;

/// Most pieces that games are cut into.
const PIECES: u64 = 1 << 16;

/// The options with the name of the mark, and with what the pack is.
const MARK: &str = "mark";
const PACK: &str = "pack";

/// A share of the search for games that are the same.
#[derive(Debug, Clone, Serialize)]
pub struct PartFound {
    /// Its folder, which the commit removes.
    pub folder: String,
    /// Which it is. Its inputs are games.
    pub share: Shared,
    /// Games whose keys it has; none in a dry run.
    pub games: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Finds the keys of a share of the games of a pack, unless that is done. `progress` gets the number of games that are done, and of all
/// games of the share. The commit makes the mark that `options` names.
///
/// Errors: as [`super::dedup`]; `Config` in `output` for a report or a mark that is there, in `share` for a mark to be replaced, which the
/// commit does; as [`make`].
pub fn share(
    pack: &Arc<dyn PackTable>,
    options: &MarkOptions,
    sharing: &Sharing,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PartFound> {
    if options.replace {
        return Err(Error::config("share", "a share replaces no mark; a commit with overwrite does"));
    }
    if !options.name.is_empty() {
        marks::check_name(&options.name)?;
    }
    crate::in_order::check(options.workers)?;
    let (output, games) = (place(&sharing.output)?, pack.game_count() as u64);
    let bytes = pack.total().saturating_mul(Arc::clone(pack).table().layout().size() as u64);
    let pieces = games.min(PIECES);
    let bound = |of: u64, piece: u64| (u128::from(of) * u128::from(piece) / u128::from(pieces.max(1))) as u64;
    let part = |of: u64, piece: u64| bound(of, piece + 1) - bound(of, piece);
    let unit = |piece| Unit { name: String::new(), bytes: part(bytes, piece), inputs: part(games, piece) };
    let units = (0..pieces).map(unit).collect();
    let bound = |piece: usize| bound(games, piece as u64) as usize;
    let job = Finding { pack, options, output, units, bound, progress };
    let Outcome { shared, folder, said } = make(job, sharing.share, sharing.dry_run)?;
    let games = said.map_or(0, |said| said.inputs);
    Ok(PartFound { folder: folder.display().to_string(), share: shared, games, dry_run: sharing.dry_run })
}

/// The record of a share. Its inputs are its games.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    inputs: u64,
    bytes: u64,
    /// XXH3-128 of its keys, as 32 hexadecimal digits.
    xxh3_128: String,
}

impl Said for Record {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// A share whose keys are being found.
struct Finding<'a, B> {
    pack: &'a Arc<dyn PackTable>,
    options: &'a MarkOptions,
    output: PathBuf,
    units: Vec<Unit>,
    /// The first game of a piece, by its place in the order of ids.
    bound: B,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl<B: Fn(usize) -> usize> Job for Finding<'_, B> {
    type Said = Record;

    fn name(&self) -> &'static str {
        JOB
    }

    fn input(&self) -> &Path {
        self.pack.folder()
    }

    fn output(&self) -> &Path {
        &self.output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let mark = (!self.options.name.is_empty()).then_some(&self.options.name);
        let options = [(MARK.to_owned(), json!(mark)), (PACK.to_owned(), json!(identity(self.pack)))];
        Ok(named(options.into(), &[self.pack.folder().to_owned()]))
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        check_absent(&self.output)?;
        match &self.options.name {
            none if none.is_empty() => Ok(()),
            name => mark::check_absent(self.pack, name),
        }
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record> {
        let games = (self.bound)(units.start)..(self.bound)(units.end);
        let (mut done, all) = (0, games.len() as u64);
        let (mut keys, mut hash) = (Staged::new(attempt.folder().join(KEYS))?, Xxh3::new());
        contents_of(self.pack, games, self.options.workers, &self.options.stop, &mut |some| {
            let bytes: Vec<u8> = some.iter().flat_map(to_bytes).collect();
            hash.update(&bytes);
            keys.append(&bytes)?;
            attempt.renew();
            done += some.len() as u64;
            (self.progress)(done, all);
            Ok(())
        })?;
        keys.seal()?;
        keys.publish()?;
        Ok(Record { inputs: of.inputs, bytes: of.bytes, xxh3_128: format!("{:032x}", hash.digest128()) })
    }
}

/// What a pack is, for people too.
fn identity(pack: &Arc<dyn PackTable>) -> String {
    format!("{} games of {} frames {:016x}", pack.game_count(), pack.total(), pack.identity())
}

fn to_bytes(content: &Content) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    bytes[..8].copy_from_slice(&content.game.to_le_bytes());
    bytes[8..24].copy_from_slice(&content.key.to_le_bytes());
    bytes[24..40].copy_from_slice(&content.records.to_le_bytes());
    bytes[40] = content.image;
    bytes
}

fn from_bytes(bytes: &[u8; KEY]) -> Content {
    let number = |from: usize, len: usize| bytes[from..from + len].iter().rfold(0, |n, b| n << 8 | u128::from(*b));
    Content { game: number(0, 8) as u64, key: number(8, 16), records: number(24, 16), image: bytes[40] }
}

/// Groups the games of all shares: the report of one process, which becomes the output, and the mark that the shares name.
///
/// Errors: as [`Whole::parts`] and [`reports::publish`]; `Config` in `output` for a mark that is there and another, and for a pack that
/// changed since; `Format` of kind `Corrupt` for keys that are not as they were written; those of the pack.
pub(crate) fn commit(whole: &Whole) -> Result<Duplicates> {
    let parts = whole.parts::<Record>()?;
    let folder = reports::paths(&whole.plan).into_iter().next().unwrap_or_default();
    let pack = selection::open(&folder, Residence::Mapped)?;
    let option = |name: &str| whole.plan.options.get(name).and_then(Value::as_str);
    let (then, now) = (option(PACK).unwrap_or_default(), identity(&pack));
    if then != now {
        let shown = folder.display();
        let text = format!("{shown} has {now}; the shares are of {then}: it changed since; remove the shares");
        return Err(Error::config("output", text));
    }
    let mut all = Vec::with_capacity(pack.game_count());
    for (folder, record) in parts {
        let path = folder.join(KEYS);
        let bytes = std::fs::read(&path).map_err(|e| Error::path(&path, &e))?;
        let (keys, rest) = bytes.as_chunks::<KEY>();
        if keys.len() as u64 != record.inputs
            || !rest.is_empty()
            || format!("{:032x}", xxh3_128(&bytes)) != record.xxh3_128
        {
            let text = "these keys are not as their share wrote them; remove the folder of the share and make it again";
            return Err(FormatError::new(Kind::Corrupt, text).in_source(path.display().to_string()).into());
        }
        all.extend(keys.iter().map(from_bytes));
    }
    let (mut found, rows) = grouped(&pack, all)?;
    let marking = option(MARK).map(|name| mark::committing(whole, name));
    found.mark = marking.as_ref().map(|options| mark::told(&pack, options, String::new(), &rows, 0));
    reports::publish(whole, &reports::line(&found)?, || match &marking {
        Some(options) => mark::settle(&pack, options, Origin::Duplicates, String::new(), &rows).map(drop),
        None => Ok(()),
    })?;
    Ok(found)
}

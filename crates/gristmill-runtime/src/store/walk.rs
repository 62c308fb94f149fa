//! A directory tree -> its visible folders and files, each once. Follows symbolic links and survives their loops.
//! Names files, reads none; a folder is announced before it is listed, so that a watch can be set in between.

use std::collections::HashSet;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::FileStat;

/// What the walk comes across. Names are relative to the root.
pub(super) enum Seen<'a> {
    /// A folder that is about to be listed.
    Folder(&'a str),
    /// A regular file, perhaps through a link.
    File(Found<'a>),
    /// Something that was passed over: a short kind, and a message with the name.
    Fault(&'static str, String),
}

/// A file as the listing has it.
pub(super) struct Found<'a> {
    pub(super) name: &'a str,
    entry: &'a DirEntry,
    behind_link: Option<Metadata>,
}

impl Found<'_> {
    /// Size, time and identity.
    ///
    /// Errors: `NotFound` when the file vanished in the meantime.
    pub(super) fn stat(&self) -> io::Result<FileStat> {
        match &self.behind_link {
            Some(meta) => Ok(stat_of(self.name, meta)),
            None => Ok(stat_of(self.name, &self.entry.metadata()?)),
        }
    }
}

/// A stat under a relative name.
pub(super) fn stat_of(name: &str, meta: &Metadata) -> FileStat {
    FileStat {
        name: name.into(),
        size: meta.len(),
        mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
        device: meta.dev(),
        inode: meta.ino(),
    }
}

type Identity = (u64, u64);

/// A folder still to be listed, with the folders above it.
struct Pending {
    name: String,
    above: Vec<Identity>,
}

/// Walks what lies under the folder `under` (relative to `root`, empty for all of it).
///
/// Each folder is listed once, under its own path if it has one in the tree and else under the first link to it in
/// name order, so that the names are a function of the tree alone. A link to a folder above it is a loop: a fault.
/// `see` ends the walk by `Break`.
pub(super) fn walk(root: &Path, under: &str, see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    walked(root, under, false, see)
}

/// The same with hidden files and folders.
pub(super) fn walk_hidden(
    root: &Path,
    under: &str,
    see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    walked(root, under, true, see)
}

fn walked(root: &Path, under: &str, hidden: bool, see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut listed = HashSet::new();
    let mut folders = vec![Pending { name: under.to_owned(), above: Vec::new() }];
    let mut links = Vec::new();
    while let Some(next) = folders.pop().or_else(|| take_first(&mut links)) {
        list_folder((root, hidden), next, &mut listed, &mut folders, &mut links, see)?;
    }
    ControlFlow::Continue(())
}

fn take_first(links: &mut Vec<Pending>) -> Option<Pending> {
    let first = (0..links.len()).min_by(|&a, &b| links[a].name.cmp(&links[b].name))?;
    Some(links.swap_remove(first))
}

fn list_folder(
    (root, hidden): (&Path, bool),
    folder: Pending,
    listed: &mut HashSet<Identity>,
    folders: &mut Vec<Pending>,
    links: &mut Vec<Pending>,
    see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let path = root.join(&folder.name);
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(e) => return see(refusal(&folder.name, &e)),
    };
    let identity = (meta.dev(), meta.ino());
    if folder.above.contains(&identity) {
        let message = format!("{}: a link to a folder above it; not followed", folder.name);
        return see(Seen::Fault("symlink_loop", message));
    }
    if !listed.insert(identity) {
        return ControlFlow::Continue(());
    }
    see(Seen::Folder(&folder.name))?;
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(e) => return see(refusal(&folder.name, &e)),
    };
    let mut above = folder.above;
    above.push(identity);
    let mut inside = Vec::new();
    let mut name = folder.name;
    if !name.is_empty() {
        name.push('/');
    }
    let stem = name.len();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                see(refusal(&name[..stem], &e))?;
                break;
            }
        };
        let base = entry.file_name();
        if !hidden && base.as_encoded_bytes().first() == Some(&b'.') {
            continue;
        }
        name.truncate(stem);
        let Some(base) = base.to_str() else {
            see(Seen::Fault("name_not_utf8", format!("{name}{}: the name is not UTF-8", base.to_string_lossy())))?;
            continue;
        };
        name.push_str(base);
        match sort_of(&entry) {
            Ok(Sort::Folder) => inside.push(name.clone()),
            Ok(Sort::LinkToFolder) => links.push(Pending { name: name.clone(), above: above.clone() }),
            Ok(Sort::File(behind_link)) => see(Seen::File(Found { name: &name, entry: &entry, behind_link }))?,
            Ok(Sort::Other) => {}
            Err(e) => see(refusal(&name, &e))?,
        }
    }
    inside.sort_unstable_by(|a, b| b.cmp(a));
    folders.extend(inside.into_iter().map(|name| Pending { name, above: above.clone() }));
    ControlFlow::Continue(())
}

enum Sort {
    Folder,
    LinkToFolder,
    File(Option<Metadata>),
    Other,
}

fn sort_of(entry: &DirEntry) -> io::Result<Sort> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        Ok(Sort::Folder)
    } else if kind.is_file() {
        Ok(Sort::File(None))
    } else if kind.is_symlink() {
        let target = fs::metadata(entry.path())?;
        Ok(match (target.is_dir(), target.is_file()) {
            (true, _) => Sort::LinkToFolder,
            (_, true) => Sort::File(Some(target)),
            _ => Sort::Other,
        })
    } else {
        Ok(Sort::Other)
    }
}

/// The word for `ELOOP`, which has no stable name in the standard library.
const TOO_MANY_LINKS: i32 = 40;

fn refusal(name: &str, e: &io::Error) -> Seen<'static> {
    let away = name.is_empty() && e.kind() == io::ErrorKind::NotFound;
    let name = if name.is_empty() { "." } else { name };
    let kind = if away { gristmill_format::Kind::Away } else { gristmill_format::Kind::Io(e.kind()) };
    if e.raw_os_error() == Some(TOO_MANY_LINKS) {
        return Seen::Fault("symlink_loop", format!("{name}: a link that leads to itself"));
    }
    Seen::Fault(kind.name(), format!("{name}: {e}"))
}

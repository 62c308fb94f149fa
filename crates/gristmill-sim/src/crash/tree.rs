//! A folder <-> its files with their bytes and links, in memory. A folder that is put back keeps the files that are as they should be.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    /// The file of this number: two names may be of one.
    File(usize),
}

/// The names below a folder, and the bytes of its files.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    pub(super) names: BTreeMap<PathBuf, Node>,
    pub(super) files: Vec<Vec<u8>>,
}

/// Which file of the disk a name is of.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(meta: &fs::Metadata) -> Identity {
    (meta.dev(), meta.ino())
}

impl Tree {
    /// What is below a folder, and which file of the disk each is.
    pub(super) fn of(root: &Path) -> io::Result<(Self, BTreeMap<Identity, usize>)> {
        let (mut tree, mut numbers) = (Tree::default(), BTreeMap::new());
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let meta = fs::symlink_metadata(&path)?;
                let node = if meta.is_dir() {
                    folders.push(path.clone());
                    Node::Folder
                } else {
                    let next = tree.files.len();
                    let number = *numbers.entry(identity(&meta)).or_insert(next);
                    if number == next {
                        tree.files.push(fs::read(&path)?);
                    }
                    Node::File(number)
                };
                tree.names.insert(path.strip_prefix(root).unwrap_or(&path).to_owned(), node);
            }
        }
        Ok((tree, numbers))
    }

    /// Bytes by name; none of folders.
    pub(super) fn contents(&self) -> BTreeMap<&Path, Option<&[u8]>> {
        let bytes = |node: &Node| match node {
            Node::Folder => None,
            Node::File(number) => Some(&*self.files[*number]),
        };
        self.names.iter().map(|(name, node)| (&**name, bytes(node))).collect()
    }

    /// The files directly in a folder that are not hidden, by name.
    pub(super) fn shown(&self, folder: &Path) -> BTreeMap<&Path, Option<&[u8]>> {
        let hidden = |name: &Path| name.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
        let mut all = self.contents();
        all.retain(|name, _| name.strip_prefix(folder).is_ok_and(|below| !hidden(below) && below != Path::new("")));
        all
    }

    /// The same without the names that end so.
    pub(super) fn without(&self, ending: &str) -> Tree {
        let mut other = self.clone();
        other.names.retain(|name, _| !name.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes()));
        other
    }

    /// Where two trees differ first.
    pub(super) fn unlike(&self, other: &Tree) -> Option<String> {
        let (own, other) = (self.contents(), other.contents());
        let names = own.keys().chain(other.keys()).find(|name| own.get(*name) != other.get(*name));
        names.map(|name| {
            let said = |of: Option<&Option<&[u8]>>| match of {
                None => "is not there".to_owned(),
                Some(None) => "is a folder".to_owned(),
                Some(Some(bytes)) => format!("has {} bytes", bytes.len()),
            };
            format!("{} {}, and {} there", name.display(), said(own.get(name)), said(other.get(name)))
        })
    }

    /// Makes the folder have this and nothing else.
    pub(super) fn put(&self, root: &Path) -> io::Result<()> {
        let (there, _) = Tree::of(root)?;
        let now = there.contents();
        for (name, node) in there.names.iter().rev() {
            let wanted = self.names.get(name);
            let path = root.join(name);
            match node {
                Node::Folder if wanted != Some(&Node::Folder) => fs::remove_dir(path)?,
                Node::File(_) if !self.keeps(name, now.get(&**name).copied().flatten()) => fs::remove_file(path)?,
                _ => {}
            }
        }
        let mut first: BTreeMap<usize, PathBuf> = BTreeMap::new();
        for (name, node) in &self.names {
            let path = root.join(name);
            match node {
                Node::Folder if path.is_dir() => {}
                Node::Folder => fs::create_dir(path)?,
                Node::File(number) => {
                    match first.get(number) {
                        Some(other) if !path.exists() => fs::hard_link(other, &path)?,
                        None if !path.exists() => write(&path, &self.files[*number])?,
                        _ => {}
                    }
                    first.entry(*number).or_insert(path);
                }
            }
        }
        Ok(())
    }

    /// Whether a file that is there may stay as it is.
    fn keeps(&self, name: &Path, bytes: Option<&[u8]>) -> bool {
        let Some(Node::File(number)) = self.names.get(name) else { return false };
        // What has two names is written again, so that both are of one file.
        let links = self.names.values().filter(|node| **node == Node::File(*number)).count();
        links == 1 && bytes == Some(&self.files[*number])
    }
}

/// Bytes of a page of a disk.
const PAGE: usize = 4096;

/// Writes a file with holes where whole pages are zeros: a hole that a process made takes no room again.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = fs::File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for (i, page) in bytes.chunks(PAGE).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0)) {
        file.write_all_at(page, (i * PAGE) as u64)?;
    }
    Ok(())
}

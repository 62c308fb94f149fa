//! Changes of a disk, in the order in which they were made -> the disks that a crash may leave: names are kept in their order,
//! bytes that were not forced in any; what was forced is kept. Runs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tree::{Node, Tree};
use crate::chooser::Chooser;

/// A change, or what makes changes last. Names are below the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    Create(PathBuf, usize),
    Folder(PathBuf),
    Link(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    Write(usize, u64, Vec<u8>),
    Resize(usize, u64),
    Force(usize),
    ForceNames(PathBuf),
}

impl Op {
    /// The file whose bytes it changes.
    fn bytes_of(&self) -> Option<usize> {
        match self {
            Op::Write(file, ..) | Op::Resize(file, _) => Some(*file),
            _ => None,
        }
    }

    /// The names that it changes.
    fn names(&self) -> Vec<&Path> {
        match self {
            Op::Create(name, _) | Op::Folder(name) | Op::Remove(name) | Op::Link(_, name) => vec![name],
            Op::Rename(from, to) => vec![from, to],
            _ => Vec::new(),
        }
    }
}

/// What a crash takes of what was not forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: the process died, the machine did not.
    Nothing,
    /// The bytes; names stay.
    Bytes,
    /// The names, bytes with them.
    All,
    /// Some of the bytes, and the last names, as this number says: some writes, or all that was written to some files. Zeros may be in
    /// place of what was written to an end.
    Some(u64),
}

/// Where a crash comes, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// After this number of changes; modulo as many as there are.
    pub at: u64,
    /// Bytes of the next change that were written, where it writes; modulo its length.
    pub torn: u64,
    /// What is lost.
    pub loss: Loss,
}

impl Crash {
    /// Some crash.
    pub(super) fn drawn(c: &mut Chooser) -> Self {
        Crash {
            at: c.bits() >> 1,
            torn: if c.once_in(2) { c.bits() } else { 0 },
            loss: match c.below(5) {
                0 => Loss::Nothing,
                1 => Loss::Bytes,
                2 => Loss::All,
                _ => Loss::Some(c.bits()),
            },
        }
    }
}

/// What a process did to a disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) before: Tree,
    pub(super) ops: Vec<Op>,
}

impl Log {
    /// The disk after all of it.
    pub(super) fn end(&self) -> Tree {
        self.after(&Crash { at: self.ops.len() as u64, torn: 0, loss: Loss::Nothing })
    }

    /// Crashes around each change, which lose nothing or all, and in the midst of each write: at `most` of its bytes, or at all.
    pub(super) fn everywhere(&self, most: u64) -> Vec<Crash> {
        let mut crashes = Vec::new();
        for (at, op) in self.ops.iter().enumerate().filter(|_| most > 0) {
            let at = at as u64 + 1;
            crashes.extend([Loss::Nothing, Loss::All].map(|loss| Crash { at, torn: 0, loss }));
            if let Op::Write(_, _, bytes) = op {
                let len = bytes.len() as u64;
                let torn = (1..len).step_by(len.div_ceil(most).max(1) as usize);
                crashes.extend(torn.map(|torn| Crash { at: at - 1, torn, loss: Loss::Nothing }));
            }
        }
        crashes
    }

    /// How many changes a crash comes after.
    pub(super) fn place(&self, crash: &Crash) -> usize {
        (crash.at % (self.ops.len() as u64 + 1)) as usize
    }

    /// The disk after a crash.
    pub(super) fn after(&self, crash: &Crash) -> Tree {
        let at = self.place(crash);
        let mut ops = self.ops[..at].to_vec();
        match self.ops.get(at) {
            Some(Op::Write(file, offset, bytes)) if crash.torn > 0 => {
                let torn = (crash.torn % bytes.len().max(1) as u64) as usize;
                ops.push(Op::Write(*file, *offset, bytes[..torn].to_vec()));
            }
            _ => {}
        }
        let mut chooser = Chooser::new(match crash.loss {
            Loss::Some(number) => number,
            _ => 0,
        });
        let mut lengths = chooser.apart(0x6c65_6e67);
        let named: Vec<usize> = (0..ops.len()).filter(|i| !ops[*i].names().is_empty()).collect();
        let lasting = ops.iter().enumerate().filter_map(|(i, op)| match op {
            Op::ForceNames(folder) => named.iter().filter(|n| **n < i && is_in(&ops[**n], folder)).max(),
            _ => None,
        });
        let lasting = lasting.max().map_or(0, |last| last + 1);
        let ends = match crash.loss {
            Loss::Nothing | Loss::Bytes => ops.len(),
            Loss::All => lasting,
            Loss::Some(_) => lasting + chooser.below((ops.len() - lasting) as u64 + 1) as usize,
        };
        let (by_file, mut files) = (chooser.once_in(2), BTreeMap::new());
        let mut tree = self.before.clone();
        for (i, op) in ops.iter().enumerate() {
            if let Some(file) = op.bytes_of() {
                let forced = ops[i..].contains(&Op::Force(file));
                let kept = match crash.loss {
                    Loss::Nothing => true,
                    Loss::Bytes | Loss::All => false,
                    Loss::Some(_) if by_file => *files.entry(file).or_insert_with(|| chooser.once_in(2)),
                    Loss::Some(_) => chooser.once_in(2),
                };
                if forced || kept {
                    apply(&mut tree, op);
                } else if let (Op::Write(file, offset, bytes), Loss::Some(_)) = (op, crash.loss)
                    && lengths.once_in(4)
                {
                    // The disk had the length, and not the bytes.
                    let there = tree.files.get(*file).map_or(0, Vec::len) as u64;
                    apply(&mut tree, &Op::Resize(*file, there.max(offset + bytes.len() as u64)));
                }
            } else if i < ends {
                apply(&mut tree, op);
            }
        }
        tree
    }
}

/// Whether a change is of a name directly in this folder.
fn is_in(op: &Op, folder: &Path) -> bool {
    op.names().iter().any(|name| name.parent() == Some(folder))
}

fn apply(tree: &mut Tree, op: &Op) {
    match op {
        Op::Create(name, file) => {
            make_room(tree, *file);
            tree.names.insert(name.clone(), Node::File(*file));
        }
        Op::Folder(name) => _ = tree.names.insert(name.clone(), Node::Folder),
        Op::Link(from, to) => {
            if let Some(node) = tree.names.get(from).copied() {
                tree.names.insert(to.clone(), node);
            }
        }
        Op::Rename(from, to) => {
            let (old, new) = (tree.names.get(from).copied(), tree.names.get(to).copied());
            // Two names of one file stay as they are.
            if matches!((old, new), (Some(Node::File(a)), Some(Node::File(b))) if a == b) {
                return;
            }
            let below: Vec<PathBuf> = tree.names.keys().filter(|name| name.starts_with(from)).cloned().collect();
            for name in below {
                if let (Some(node), Ok(rest)) = (tree.names.remove(&name), name.strip_prefix(from)) {
                    let name = if rest == Path::new("") { to.clone() } else { to.join(rest) };
                    tree.names.insert(name, node);
                }
            }
        }
        Op::Remove(name) => _ = tree.names.remove(name),
        Op::Write(file, offset, bytes) => {
            make_room(tree, *file);
            let (of, start) = (&mut tree.files[*file], *offset as usize);
            let end = start + bytes.len();
            if of.len() < end {
                of.resize(end, 0);
            }
            of[start..end].copy_from_slice(bytes);
        }
        Op::Resize(file, len) => {
            make_room(tree, *file);
            tree.files[*file].resize(*len as usize, 0);
        }
        Op::Force(_) | Op::ForceNames(_) => {}
    }
}

fn make_room(tree: &mut Tree, file: usize) {
    if tree.files.len() <= file {
        tree.files.resize(file + 1, Vec::new());
    }
}

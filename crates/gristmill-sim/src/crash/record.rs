//! System calls of a process -> the changes that it made below a folder, as they were carried out. Fails a range of them on demand.
//! A change by a call that it does not know is an error, and so is a disk that is not what the changes make.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::log::{Log, Op};
use super::trace::{Call, Watcher, watch};
use super::tree::{Identity, Tree, identity};

/// Which changes fail, by their number, and with which error of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failing {
    pub(super) calls: Range<u64>,
    pub(super) error: i32,
}

/// Names of SQLite's lists of what is in a log end so: they are shared memory, and SQLite makes them again after a crash.
const SHARED: &str = "-shm";

/// How `fallocate` makes a hole, and leaves the length as it is.
const HOLE: u64 = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u64;

/// What a process came to.
pub(super) struct Recorded {
    pub(super) log: Log,
    /// The code that it ended with.
    pub(super) code: i32,
    /// Changes that failed on demand, the first of them in words.
    pub(super) failed: Option<String>,
    /// What it said.
    pub(super) said: String,
}

/// Runs a command, and records what it does below `root`.
///
/// Errors: where processes cannot be traced; where it changed something by a call that is not known.
pub(super) fn record(root: &Path, command: &mut Command, failing: Option<&Failing>) -> io::Result<Recorded> {
    let (before, numbers) = Tree::of(root)?;
    let next = before.files.len();
    let log = Log { before, ops: Vec::new() };
    let mut recorder =
        Recorder { root, failing, calls: 0, failed: None, log, numbers, next, begun: HashMap::new(), odd: None };
    let code = watch(command, &mut recorder)?;
    if let Some(odd) = recorder.odd {
        return Err(io::Error::other(odd));
    }
    let now = Tree::of(root)?.0;
    if let Some(unlike) = recorder.log.end().without(SHARED).unlike(&now.without(SHARED)) {
        return Err(io::Error::other(format!("the record is not what was done: {unlike}")));
    }
    Ok(Recorded { log: recorder.log, code, failed: recorder.failed, said: String::new() })
}

/// A call that was begun, as far as it has to be known before it is done.
#[derive(Debug)]
enum Begun {
    Open {
        path: PathBuf,
        there: bool,
        cut: bool,
    },
    Write {
        file: i32,
        offset: u64,
    },
    Copy {
        file: i32,
        offset: u64,
    },
    Resize(i32, u64),
    Grow(i32, u64),
    /// A hole from an offset on, of a length: bytes that become zeros.
    Punch(i32, u64, u64),
    Force(i32),
    Done(Op),
}

struct Recorder<'a> {
    root: &'a Path,
    failing: Option<&'a Failing>,
    calls: u64,
    failed: Option<String>,
    log: Log,
    /// The number of each file of the disk.
    numbers: BTreeMap<Identity, usize>,
    next: usize,
    begun: HashMap<i32, Begun>,
    odd: Option<String>,
}

/// What `/proc` has of a file that a thread has open.
fn open(thread: i32, file: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{thread}/fd/{file}"))
}

fn memory(thread: i32, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let read = fs::File::open(format!("/proc/{thread}/mem")).and_then(|memory| memory.read_exact_at(&mut bytes, at));
    if read.is_err() {
        bytes.clear();
    }
    bytes
}

fn text(thread: i32, at: u64) -> PathBuf {
    let mut bytes = Vec::new();
    // Texts may end with the last page that can be read.
    while !bytes.contains(&0) && bytes.len() < 4096 {
        let from = at + bytes.len() as u64;
        let more = memory(thread, from, 64 - (from % 64) as usize);
        if more.is_empty() {
            break;
        }
        bytes.extend(more);
    }
    PathBuf::from(OsStr::from_bytes(bytes.split(|byte| *byte == 0).next().unwrap_or_default()))
}

impl Recorder<'_> {
    /// A path that a call names, below the root.
    fn path(&self, call: &Call, folder: Option<usize>, name: usize) -> Option<PathBuf> {
        let named = text(call.thread, call.args[name]);
        let from = match folder.map(|i| call.args[i] as i32) {
            _ if named.is_absolute() => PathBuf::new(),
            None | Some(libc::AT_FDCWD) => fs::read_link(format!("/proc/{}/cwd", call.thread)).ok()?,
            Some(file) => fs::read_link(open(call.thread, file)).ok()?,
        };
        let path: PathBuf = from.join(named).components().filter(|part| *part != Component::CurDir).collect();
        Some(path.strip_prefix(self.root).ok()?.to_owned())
    }

    /// Whether an open file lies below the root.
    fn is_ours(&self, call: &Call, file: usize) -> Option<i32> {
        let file = call.args[file] as i32;
        fs::read_link(open(call.thread, file)).ok()?.starts_with(self.root).then_some(file)
    }

    fn offset(&self, thread: i32, file: i32) -> u64 {
        let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{file}")).unwrap_or_default();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let flags = field("flags:").and_then(|flags| i32::from_str_radix(flags, 8).ok()).unwrap_or(0);
        match flags & libc::O_APPEND {
            0 => field("pos:").and_then(|pos| pos.parse().ok()).unwrap_or(0),
            _ => fs::metadata(open(thread, file)).map_or(0, |meta| meta.len()),
        }
    }

    /// What a call will change; none for one that changes nothing here.
    fn begins(&mut self, call: &Call) -> Option<Begun> {
        let (thread, args) = (call.thread, call.args);
        Some(match call.number {
            libc::SYS_write | libc::SYS_writev => {
                let file = self.is_ours(call, 0)?;
                Begun::Write { file, offset: self.offset(thread, file) }
            }
            libc::SYS_pwrite64 | libc::SYS_pwritev => Begun::Write { file: self.is_ours(call, 0)?, offset: args[3] },
            libc::SYS_copy_file_range => {
                let file = self.is_ours(call, 2)?;
                let at = (args[3] != 0).then(|| memory(thread, args[3], 8));
                let at = at.and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
                Begun::Copy { file, offset: at.unwrap_or_else(|| self.offset(thread, file)) }
            }
            libc::SYS_sendfile => {
                let file = self.is_ours(call, 0)?;
                Begun::Copy { file, offset: self.offset(thread, file) }
            }
            libc::SYS_ftruncate => Begun::Resize(self.is_ours(call, 0)?, args[1]),
            libc::SYS_fallocate if args[1] == 0 => Begun::Grow(self.is_ours(call, 0)?, args[2] + args[3]),
            libc::SYS_fallocate if args[1] == HOLE => Begun::Punch(self.is_ours(call, 0)?, args[2], args[3]),
            libc::SYS_fsync | libc::SYS_fdatasync => Begun::Force(self.is_ours(call, 0)?),
            libc::SYS_openat => self.opens(self.path(call, Some(0), 1)?, args[2])?,
            libc::SYS_mkdirat => Begun::Done(Op::Folder(self.path(call, Some(0), 1)?)),
            libc::SYS_unlinkat => Begun::Done(Op::Remove(self.path(call, Some(0), 1)?)),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                Begun::Done(Op::Rename(self.path(call, Some(0), 1)?, self.path(call, Some(2), 3)?))
            }
            libc::SYS_linkat => Begun::Done(Op::Link(self.path(call, Some(0), 1)?, self.path(call, Some(2), 3)?)),
            libc::SYS_mmap if args[2] as i32 & libc::PROT_WRITE != 0 && args[3] as i32 & libc::MAP_SHARED != 0 => {
                let file = self.is_ours(call, 4)?;
                let path = fs::read_link(open(thread, file)).ok()?;
                if !path.as_os_str().as_bytes().ends_with(SHARED.as_bytes()) {
                    self.odd = Some(format!("{} is written through memory", path.display()));
                }
                return None;
            }
            libc::SYS_fallocate => {
                self.is_ours(call, 0)?;
                self.odd = Some("a file is changed by fallocate".to_owned());
                return None;
            }
            libc::SYS_symlinkat => {
                self.odd = self.path(call, Some(1), 2).map(|path| format!("{} is made a link", path.display()));
                return None;
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.opens(self.path(call, None, 0)?, args[1])?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => Begun::Done(Op::Folder(self.path(call, None, 0)?)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink | libc::SYS_rmdir => Begun::Done(Op::Remove(self.path(call, None, 0)?)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => Begun::Done(Op::Rename(self.path(call, None, 0)?, self.path(call, None, 1)?)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => Begun::Done(Op::Link(self.path(call, None, 0)?, self.path(call, None, 1)?)),
            _ => return None,
        })
    }

    /// A change in words.
    fn told(&self, call: &Call, begun: &Begun) -> String {
        let file = match begun {
            Begun::Open { path, .. } => return format!("to make or cut {}", path.display()),
            Begun::Done(op) => return format!("{op:?}"),
            Begun::Write { file, .. } | Begun::Copy { file, .. } | Begun::Resize(file, _) => *file,
            Begun::Grow(file, _) | Begun::Punch(file, ..) | Begun::Force(file) => *file,
        };
        let path = fs::read_link(open(call.thread, file)).unwrap_or_default();
        format!("{begun:?} of {}", path.strip_prefix(self.root).unwrap_or(&path).display())
    }

    fn opens(&self, path: PathBuf, flags: u64) -> Option<Begun> {
        let flags = flags as i32;
        let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let (creates, cut) = (flags & libc::O_CREAT != 0, flags & libc::O_TRUNC != 0);
        let there = fs::symlink_metadata(self.root.join(&path)).is_ok();
        (!unnamed && (creates && !there || cut && there)).then_some(Begun::Open { path, there, cut })
    }

    /// The number of an open file; a new one where it has a name for the first time, or none.
    fn number(&mut self, thread: i32, file: i32, new: bool) -> Option<usize> {
        let identity = identity(&fs::metadata(open(thread, file)).ok()?);
        if new {
            self.numbers.remove(&identity);
        }
        let number = *self.numbers.entry(identity).or_insert(self.next);
        self.next += usize::from(number == self.next);
        Some(number)
    }

    fn ended(&mut self, call: &Call, begun: Begun, result: i64) -> Option<Op> {
        let thread = call.thread;
        let n = usize::try_from(result).ok()?;
        Some(match begun {
            Begun::Done(op) => op,
            Begun::Open { path, there: false, .. } => {
                Op::Create(path, self.number(thread, i32::try_from(result).ok()?, true)?)
            }
            Begun::Open { cut, .. } => {
                let number = self.number(thread, i32::try_from(result).ok()?, false)?;
                return cut.then_some(Op::Resize(number, 0));
            }
            Begun::Write { file, offset } => {
                let number = self.number(thread, file, false)?;
                let bytes = match call.number {
                    libc::SYS_writev | libc::SYS_pwritev => gathered(call, n),
                    _ => memory(thread, call.args[1], n),
                };
                Op::Write(number, offset, bytes)
            }
            Begun::Copy { file, offset } => {
                let mut bytes = vec![0; n];
                fs::File::open(open(thread, file)).ok()?.read_exact_at(&mut bytes, offset).ok()?;
                Op::Write(self.number(thread, file, false)?, offset, bytes)
            }
            Begun::Resize(file, len) => Op::Resize(self.number(thread, file, false)?, len),
            Begun::Grow(file, len) => {
                let now = fs::metadata(open(thread, file)).ok()?.len();
                Op::Resize(self.number(thread, file, false)?, now.max(len))
            }
            Begun::Punch(file, offset, len) => {
                let there = fs::metadata(open(thread, file)).ok()?.len();
                let zeros = vec![0; len.min(there.saturating_sub(offset)) as usize];
                Op::Write(self.number(thread, file, false)?, offset, zeros)
            }
            Begun::Force(file) => {
                let link = fs::read_link(open(thread, file)).ok()?;
                if fs::metadata(open(thread, file)).ok()?.is_dir() {
                    Op::ForceNames(link.strip_prefix(self.root).ok()?.to_owned())
                } else {
                    Op::Force(self.number(thread, file, false)?)
                }
            }
        })
    }
}

/// The first bytes of what a call writes from several places.
fn gathered(call: &Call, n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..call.args[2] {
        let place = memory(call.thread, call.args[1] + 16 * i, 16);
        let word = |at: usize| place[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        if place.len() == 16 {
            bytes.extend(memory(call.thread, word(0), word(8) as usize));
        }
    }
    bytes.truncate(n);
    bytes
}

impl Watcher for Recorder<'_> {
    fn enters(&mut self, call: &Call) -> Option<i32> {
        let begun = self.begins(call)?;
        let number = self.calls;
        self.calls += 1;
        if let Some(failing) = self.failing.filter(|failing| failing.calls.contains(&number)) {
            let told = self.failed.take().unwrap_or_else(|| self.told(call, &begun));
            self.failed = Some(told);
            return Some(failing.error);
        }
        self.begun.insert(call.thread, begun);
        None
    }

    fn leaves(&mut self, call: &Call, result: i64) {
        if let Some(op) = self.begun.remove(&call.thread).and_then(|begun| self.ended(call, begun, result)) {
            self.log.ops.push(op);
        }
    }
}

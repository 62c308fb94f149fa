//! A directory tree -> hints of what changed in it, by inotify; nowhere else than on Linux, where lists must do.
//! A folder is watched before it is listed, so nothing falls between; needs no thread and never waits.

use std::path::Path;

use gristmill_format::Result;

use super::Watch;

/// Watches the tree under `root`.
#[cfg(not(target_os = "linux"))]
pub(super) fn tree(_root: &Path) -> Result<Option<Box<dyn Watch>>> {
    Ok(None)
}

/// Watches the tree under `root`.
#[cfg(target_os = "linux")]
pub(super) fn tree(root: &Path) -> Result<Option<Box<dyn Watch>>> {
    let watch =
        linux::Tree::new(root).map_err(|e| gristmill_format::Error::from(e).in_source(root.display().to_string()))?;
    Ok(Some(Box::new(watch)))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;
    use std::io;
    use std::ops::ControlFlow;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};

    use super::super::walk::{Seen, walk};
    use super::super::{Hint, Watch};

    /// Bytes of notices taken at a time; one is 16 bytes and a name.
    const BUFFER: usize = 64 << 10;

    /// A watched tree.
    pub(super) struct Tree {
        root: PathBuf,
        inotify: Inotify,
        /// Relative name of each watched folder.
        folders: HashMap<WatchDescriptor, String>,
        /// What was noticed while arming.
        early: Vec<Hint>,
        buffer: Vec<u8>,
    }

    impl Tree {
        pub(crate) fn new(root: &Path) -> io::Result<Self> {
            let mut tree = Tree {
                root: root.to_owned(),
                inotify: Inotify::init()?,
                folders: HashMap::new(),
                early: Vec::new(),
                buffer: vec![0; BUFFER],
            };
            let mut early = Vec::new();
            tree.arm("", false, &mut early);
            if tree.folders.is_empty() {
                let reason = early.pop().map_or_else(String::new, |h| format!("{h:?}"));
                return Err(io::Error::other(format!("the folder cannot be watched: {reason}")));
            }
            tree.early = early;
            Ok(tree)
        }

        /// Watches the folder `under` and all below it; names the files there when asked to.
        fn arm(&mut self, under: &str, name_files: bool, hints: &mut Vec<Hint>) {
            let Tree { root, inotify, folders, .. } = self;
            let mask = WatchMask::CLOSE_WRITE
                | WatchMask::MOVED_TO
                | WatchMask::MOVED_FROM
                | WatchMask::CREATE
                | WatchMask::DELETE
                | WatchMask::ONLYDIR;
            let _ = walk(root, under, &mut |seen| {
                match seen {
                    Seen::Folder(name) => match inotify.watches().add(root.join(name), mask) {
                        Ok(watch) => remember(root, folders, watch, name),
                        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                        Err(e) => hints.push(Hint::Blind(format!("{}: {e}", root.join(name).display()))),
                    },
                    Seen::File(found) if name_files => hints.push(Hint::Seen(found.name.to_owned())),
                    Seen::File(_) | Seen::Fault(..) => {}
                }
                ControlFlow::Continue(())
            });
        }

        /// Takes one notice; remembers folders that went away in `left`.
        fn notice(
            &mut self,
            watch: &WatchDescriptor,
            mask: EventMask,
            base: &str,
            left: &mut Vec<String>,
            hints: &mut Vec<Hint>,
        ) {
            let Some(folder) = self.folders.get(watch) else { return };
            let name = if folder.is_empty() { base.to_owned() } else { format!("{folder}/{base}") };
            if mask.contains(EventMask::ISDIR) && mask.contains(EventMask::DELETE) {
                // The end of its own watch says so, too.
            } else if mask.intersects(EventMask::MOVED_FROM | EventMask::DELETE) {
                match mask.contains(EventMask::ISDIR) {
                    true => left.push(name),
                    false => hints.push(Hint::Left(name)),
                }
            } else if mask.contains(EventMask::ISDIR) {
                self.arm(&name, true, hints);
            } else if mask.contains(EventMask::CLOSE_WRITE) {
                hints.push(Hint::Closed(name));
            } else {
                self.appeared(name, mask.contains(EventMask::MOVED_TO), hints);
            }
        }

        /// A name that is not a folder's came to be: an opened file (whose close will tell), or something whole:
        /// a renamed file, a link.
        fn appeared(&mut self, name: String, moved: bool, hints: &mut Vec<Hint>) {
            let path = self.root.join(&name);
            let Ok(meta) = fs::symlink_metadata(&path) else { return };
            if meta.is_symlink() {
                match fs::metadata(&path) {
                    Ok(target) if target.is_dir() => self.arm(&name, true, hints),
                    _ => hints.push(Hint::Seen(name)),
                }
            } else if moved {
                hints.push(Hint::Closed(name));
            } else if meta.nlink() > 1 {
                hints.push(Hint::Seen(name));
            }
        }

        /// Ends the watches of folders that were moved out of the tree.
        fn forget(&mut self, left: &[String]) {
            let Tree { root, inotify, folders, .. } = self;
            let below = |name: &str, top: &String| {
                name.strip_prefix(top.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            folders.retain(|watch, name| {
                let gone = left.iter().any(|top| below(name, top)) && !root.join(&*name).is_dir();
                if gone {
                    // A watch the kernel dropped by itself cannot be removed again; either way it is gone.
                    let _ = inotify.watches().remove(watch.clone());
                }
                !gone
            });
        }
    }

    /// Notes the folder's name, unless it is watched under another name that still leads to it.
    fn remember(root: &Path, folders: &mut HashMap<WatchDescriptor, String>, watch: WatchDescriptor, name: &str) {
        let identity = |name: &str| fs::metadata(root.join(name)).ok().map(|m| (m.dev(), m.ino()));
        let held = folders.get(&watch).is_some_and(|old| old != name && identity(old) == identity(name));
        if !held {
            folders.insert(watch, name.to_owned());
        }
    }

    impl Watch for Tree {
        fn poll(&mut self, hints: &mut Vec<Hint>) {
            hints.append(&mut self.early);
            let mut left = Vec::new();
            let mut buffer = std::mem::take(&mut self.buffer);
            loop {
                let notices = match self.inotify.read_events(&mut buffer) {
                    Ok(events) => events.map(|e| e.to_owned()).collect::<Vec<_>>(),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => {
                        hints.push(Hint::Lost(format!("reading change notices failed: {e}")));
                        break;
                    }
                };
                if notices.is_empty() {
                    break;
                }
                for notice in notices {
                    if notice.mask.contains(EventMask::Q_OVERFLOW) {
                        hints.push(Hint::Lost("more changes at once than the system keeps".into()));
                    } else if notice.mask.intersects(EventMask::IGNORED | EventMask::UNMOUNT) {
                        if self.folders.remove(&notice.wd).is_some_and(|name| name.is_empty()) {
                            hints.push(Hint::Lost("the directory itself was removed or unmounted".into()));
                        }
                    } else if let Some(base) = notice.name.as_deref().and_then(|n| n.to_str())
                        && !base.starts_with('.')
                    {
                        self.notice(&notice.wd, notice.mask, base, &mut left, hints);
                    }
                }
            }
            self.buffer = buffer;
            if !left.is_empty() {
                self.forget(&left);
            }
        }
    }
}

//! A store and a name in it -> what lies under that name, as a store: a folder, one file, or what a pattern names.
//! Passes everything on, names apart; keeps no bytes.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::source::ReadAt;
use gristmill_format::{Kind, Result};

use super::bucket::events::{Events, Wanted};
use super::bucket::{Counts, EventCounts};
use super::only::Only;
use super::{Faults, FileStat, Hint, Readings, Store, Watch};

/// What lies under one name of a store.
#[derive(Debug)]
pub(super) struct Under {
    store: Arc<dyn Store>,
    /// The folder's name and a `/`; empty for the store's root.
    folder: String,
    only: Arc<Only>,
    /// The folder, for people.
    root: PathBuf,
    readings: Readings,
    /// The queue that has hints at it.
    events: Option<Events>,
}

impl Under {
    /// What lies under `name`, which people call `place`.
    ///
    /// Errors: `Config` for a pattern that is none; `Path` where nothing is there.
    pub(super) fn new(store: Arc<dyn Store>, name: &str, place: &Path) -> crate::Result<Self> {
        let above = |name: &str| {
            name.rsplit_once('/').map_or((String::new(), name.to_owned()), |(a, b)| (format!("{a}/"), b.to_owned()))
        };
        let (folder, only) = match store.stat(name) {
            Ok(_) => {
                let (folder, file) = above(name);
                (folder, Only::File(file))
            }
            Err(e) if e.kind() != Kind::Io(ErrorKind::NotFound) && !name.is_empty() => return Err(e.into()),
            Err(_) => {
                let (folder, only) = Only::divided(Path::new(name))?;
                let folder = folder.display().to_string();
                (if folder.is_empty() { folder } else { folder + "/" }, only)
            }
        };
        let text = place.display().to_string();
        let meant = only.text().len();
        let root = if meant == 0 { text.as_str() } else { text[..text.len() - meant].trim_end_matches('/') };
        let only = Arc::new(only);
        let under = Under { store, folder, only, root: root.into(), readings: Readings::default(), events: None };
        let mut is_there = false;
        let faults = under.each(&mut |_| {
            is_there = true;
            ControlFlow::Break(())
        });
        match (is_there, faults.messages().last()) {
            (false, Some(why)) => {
                let (path, message) = (place.to_owned(), why.to_owned());
                Err(crate::Error::Path { path, kind: ErrorKind::Other, message })
            }
            (false, None) if !under.folder.is_empty() && !matches!(*under.only, Only::Named(_)) => {
                Err(crate::Error::path(place, &ErrorKind::NotFound.into()))
            }
            _ => Ok(under),
        }
    }

    /// The same with hints of the events that its bucket sends to a queue.
    ///
    /// Errors: as [`Events::open`].
    pub(super) fn noticed(self, queue: &str, bucket: &str) -> crate::Result<Self> {
        let (folder, only) = (self.folder.clone(), Arc::clone(&self.only));
        let wanted: Wanted = Arc::new(move |key| {
            let is_hidden = |name: &str| name.split('/').any(|part| part.is_empty() || part.starts_with('.'));
            let name = key.strip_prefix(&folder).filter(|name| !is_hidden(key) && only.has(name));
            name.map(str::to_owned)
        });
        Ok(Under { events: Some(Events::open(queue, bucket, wanted)?), ..self })
    }

    fn each(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        if let Only::File(name) = &*self.only {
            // Found by its name, where nothing can be listed, too.
            let mut faults = Faults::default();
            match self.stat(name) {
                Ok(stat) => _ = each(stat),
                Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => (),
                Err(e) => faults.error(&e),
            }
            return faults;
        }
        self.store.list_below(self.folder.trim_end_matches('/'), &mut |stat| match stat.name.strip_prefix(&self.folder)
        {
            Some(name) if self.only.has(name) => each(FileStat { name: name.into(), ..stat.clone() }),
            _ => ControlFlow::Continue(()),
        })
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.folder)
    }
}

impl Store for Under {
    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn place(&self) -> String {
        super::place::joined(&self.root, self.only.text()).display().to_string()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.each(each)
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let stat = self.store.stat(&self.full(name))?;
        Ok(FileStat { name: name.into(), ..stat })
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        self.store.open(&self.full(name))
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn counts(&self) -> Option<Arc<Counts>> {
        self.store.counts()
    }

    fn events(&self) -> Option<Arc<EventCounts>> {
        self.events.as_ref().map(Events::counts)
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        if let Some(events) = &self.events {
            return Ok(Some(events.listen()?));
        }
        if !self.only.is_all() {
            return Ok(None);
        }
        let watch = self.store.watch()?;
        Ok(watch.map(|watch| Box::new(Hints { watch, folder: self.folder.clone(), all: Vec::new() }) as Box<dyn Watch>))
    }
}

/// The hints at what lies under a name.
struct Hints {
    watch: Box<dyn Watch>,
    folder: String,
    all: Vec<Hint>,
}

impl Watch for Hints {
    fn poll(&mut self, hints: &mut Vec<Hint>) {
        self.watch.poll(&mut self.all);
        let folder = &self.folder;
        let below = |name: String| name.strip_prefix(folder).map(str::to_owned);
        hints.extend(self.all.drain(..).filter_map(|hint| match hint {
            Hint::Closed(name) => below(name).map(Hint::Closed),
            Hint::Seen(name) => below(name).map(Hint::Seen),
            Hint::Left(name) => below(name).map(Hint::Left),
            all @ (Hint::Lost(_) | Hint::Blind(_)) => Some(all),
        }));
    }

    fn sees_moves(&self) -> bool {
        self.watch.sees_moves()
    }
}

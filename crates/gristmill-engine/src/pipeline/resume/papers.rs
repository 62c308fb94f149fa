//! Journal and ledger as a user names them, paths or URLs -> files of this machine that a run writes, and their segments in a bucket.
//! A state is given out only after what it rests on was sent. Knows nothing of what these files say.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::scheduler::Rounds;
use gristmill_runtime::store::place::{is_local, resolved};
use gristmill_runtime::store::segments::{Copied, Segments};

/// How often new lines are sent. A state sends them, too.
const SEND: Duration = Duration::from_secs(30);

/// How often the thread checks whether lines are due, and whether the loader was stopped.
const LOOK: Duration = Duration::from_millis(100);

/// A journal or a ledger.
#[derive(Debug)]
pub(in crate::pipeline) struct Paper {
    path: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// It is a file of this machine.
    Here,
    /// It is copied from a bucket, to be read.
    Copied { _files: Copied },
    /// It is sent to a bucket. The lock is held until the loader is stopped.
    Sent { segments: Mutex<Segments>, lock: Mutex<Option<File>> },
}

impl Paper {
    /// The paper that a rank writes. The option `field` names it.
    ///
    /// Errors: as [`Segments::open`].
    pub(in crate::pipeline) fn written(place: &Path, field: &str, rank: (u64, u64)) -> Result<Self> {
        let place = resolved(place)?;
        if is_local(&place) {
            return Ok(Paper { path: place.into_owned(), way: Way::Here });
        }
        let (segments, lock) = Segments::open(&place, field, rank)?;
        let path = segments.path();
        Ok(Paper { path, way: Way::Sent { segments: Mutex::new(segments), lock: Mutex::new(Some(lock)) } })
    }

    /// A paper that the loader only reads.
    ///
    /// Errors: as [`Copied::of`].
    pub(in crate::pipeline) fn read(place: &Path) -> Result<Self> {
        Ok(match Copied::of(place)? {
            Some(files) => Paper { path: files.path().to_owned(), way: Way::Copied { _files: files } },
            None => Paper { path: resolved(place)?.into_owned(), way: Way::Here },
        })
    }

    /// The path of the file on this machine.
    pub(in crate::pipeline) fn path(&self) -> &Path {
        &self.path
    }

    fn is_sent(&self) -> bool {
        matches!(self.way, Way::Sent { .. })
    }

    /// Sends what came since the last time.
    ///
    /// Errors: as [`Segments::send`].
    fn send(&self) -> Result<()> {
        match &self.way {
            Way::Sent { segments, .. } => segments.lock().unwrap_or_else(PoisonError::into_inner).send(),
            Way::Here | Way::Copied { .. } => Ok(()),
        }
    }
}

/// The journal and the ledger of a run.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Papers {
    pub(in crate::pipeline) journal: Option<Paper>,
    pub(in crate::pipeline) ledger: Option<Paper>,
}

impl Papers {
    /// Sends the new lines. The journal goes first: neither ledger nor state may be ahead of it.
    ///
    /// Errors: as [`Segments::send`].
    pub(in crate::pipeline) fn send(&self) -> Result<()> {
        [&self.journal, &self.ledger].into_iter().flatten().try_for_each(Paper::send)
    }

    /// Lets other loaders of this machine write to the same place. After this, lines are sent only if no other loader wrote.
    pub(in crate::pipeline) fn release(&self) {
        for paper in [&self.journal, &self.ledger].into_iter().flatten() {
            if let Way::Sent { lock, .. } = &paper.way {
                *lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }

    /// Rounds that send what came, until `stopped`, and a last time then; none where nothing is sent. `told` gets what fails, once as long
    /// as it stays the same.
    pub(in crate::pipeline) fn rounds(
        self: &Arc<Self>,
        stopped: impl Fn() -> bool + Send + 'static,
        told: impl Fn(String) + Send + 'static,
    ) -> Option<Rounds> {
        if ![&self.journal, &self.ledger].into_iter().flatten().any(Paper::is_sent) {
            return None;
        }
        let (papers, mut looks, mut last) = (Arc::clone(self), 0, None);
        Some(Box::new(move || {
            looks += 1;
            let ends = stopped();
            if ends || LOOK * looks >= SEND {
                looks = 0;
                let failed = papers.send().err().map(|e| e.to_string());
                if let Some(why) = failed.as_ref().filter(|_| failed != last) {
                    told(format!("{why}; it is sent again later, and no state is given out before that"));
                }
                last = failed;
            }
            (!ends).then_some(LOOK)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    use gristmill_faultserver::{Network, start};
    use gristmill_runtime::store::bucket::{Options, set_options};
    use gristmill_runtime::store::segments::family;
    use gristmill_runtime::store::{Cache, set_cache};

    use super::*;

    fn add(path: &Path, line: &str) {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn what_a_run_writes_is_sent_as_it_grows_and_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("papers")).unwrap();
        set_cache(Cache { folder: Some(folder.path().join("twins")), limit: None });
        let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
        let endpoint = Some(server.address.clone());
        set_options("s3://papers", Options { endpoint, anonymous: true, ..Options::default() });
        let place = Path::new("s3://papers/run/ledger");
        let written = || Paper::written(place, "ledger", (0, 1));
        let there = || family(place).unwrap().remove("0-of-1").map(|made| String::from_utf8(made.bytes).unwrap());
        let papers = Arc::new(Papers { journal: None, ledger: Some(written().unwrap()) });
        let path = papers.ledger.as_ref().unwrap().path().to_owned();
        add(&path, "one\n");
        assert_eq!(there(), None);
        papers.send().unwrap();
        assert_eq!(there().as_deref(), Some("one\n"));

        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, tells) = (Arc::clone(&stop), Arc::clone(&told));
        let rounds = papers.rounds(move || stopped.load(Ordering::Relaxed), move |why| tells.lock().unwrap().push(why));
        let mut rounds = rounds.unwrap();
        let due = SEND.div_duration_f64(LOOK).round() as usize;
        add(&path, "two\n");
        (1..due).for_each(|_| assert_eq!(rounds(), Some(LOOK)));
        assert_eq!(there().as_deref(), Some("one\n"), "it is not due so far");
        assert_eq!((rounds(), there().as_deref()), (Some(LOOK), Some("one\ntwo\n")));
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, "another\n").unwrap();
        (0..3 * due).for_each(|_| assert_eq!(rounds(), Some(LOOK)));
        let found = told.lock().unwrap().clone();
        assert!(found.len() == 1 && found[0].contains("written over"), "reported once: {found:?}");
        std::fs::write(&path, text).unwrap();
        add(&path, "three\n");
        stop.store(true, Ordering::Relaxed);
        assert_eq!((rounds(), there().as_deref()), (None, Some("one\ntwo\nthree\n")), "the end sends what is left");
        assert_eq!(told.lock().unwrap().len(), 1);

        assert!(written().is_err(), "another loader of this machine writes there");
        papers.release();
        assert!(written().is_ok());
    }

    #[test]
    fn a_file_of_this_machine_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let paper = |name: &str| Paper::written(&folder.path().join(name), name, (0, 1)).unwrap();
        let papers = Arc::new(Papers { journal: Some(paper("journal")), ledger: Some(paper("ledger")) });
        papers.send().unwrap();
        papers.release();
        assert!(papers.rounds(|| false, drop).is_none());
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}

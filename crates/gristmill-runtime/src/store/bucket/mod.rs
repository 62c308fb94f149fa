//! A bucket of an object store, or a server of HTTP -> a [`Store`]: its objects by key, lists by prefix, bytes by ranges.
//! Requests are planned here and retried here; what a bucket says is checked for its length before it is served.

mod asking;
mod clouds;
pub(super) mod events;
mod net;
mod object;
mod profile;
mod requests;
mod traffic;
mod writing;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, PutMode, UpdateVersion};
use xxhash_rust::xxh3::xxh3_64;

use self::asking::innermost;
use self::object::Object;
use self::requests::Requests;
use self::writing::Parts;
use super::{Faults, FileStat, Mark, Readings, Store, Watch, Writes};

pub use asking::Counts;
pub use events::EventCounts;
pub(super) use requests::{AT_ONCE, at_once};
pub use traffic::Traffic;

/// Bytes of a file that come with its mark.
const BEGINNING: u64 = 64 << 10;

/// What a user says of a bucket beyond what the environment says.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where the service is, where it is not its usual place: a URL.
    pub endpoint: Option<String>,
    /// Whether requests are not signed.
    pub anonymous: bool,
    /// Whether requests may go over the network without encryption.
    pub allow_http: bool,
    /// How long a request is tried again; 30 s where nothing is said.
    pub patience: Option<Duration>,
    /// Settings of the client, such as `region`, by their names in the crate `object_store`; they override the environment. They may
    /// be secret.
    pub settings: Vec<(String, String)>,
}

impl fmt::Debug for Options {
    /// Names the settings and prints none of their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { endpoint, anonymous, allow_http, patience, settings } = self;
        let names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Options")
            .field("endpoint", endpoint)
            .field("anonymous", anonymous)
            .field("allow_http", allow_http)
            .field("patience", patience)
            .field("settings", &names)
            .finish()
    }
}

/// A bucket, or a server.
#[derive(Debug, Clone)]
pub struct Bucket {
    requests: Arc<Requests>,
    readings: Arc<Readings>,
}

/// The buckets of this process, with what was said of each; a fork makes its own clients.
#[derive(Default)]
struct Buckets {
    process: u32,
    open: BTreeMap<String, Bucket>,
    options: BTreeMap<String, Options>,
}

static BUCKETS: Mutex<Option<Buckets>> = Mutex::new(None);

fn with_buckets<T>(work: impl FnOnce(&mut Buckets) -> T) -> T {
    let mut buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    let (buckets, process) = (buckets.get_or_insert_default(), std::process::id());
    if buckets.process != process {
        buckets.process = process;
        buckets.open.clear();
    }
    work(buckets)
}

/// Says how a bucket (`s3://bucket`), or every bucket of a scheme (`s3://`), is reached from now on.
pub fn set_options(url: &str, options: Options) {
    with_buckets(|buckets| {
        buckets.open.retain(|open, _| !open.starts_with(url));
        buckets.options.insert(url.to_owned(), options);
    });
}

/// What was asked of each bucket that was opened in this process, by its URL.
pub fn counts() -> Vec<(String, Arc<Counts>)> {
    let of = |bucket: &Bucket| (bucket.requests.url.clone(), Arc::clone(&bucket.requests.counts));
    with_buckets(|buckets| buckets.open.values().map(of).collect())
}

/// What was asked of the bucket of a place, where that is one that is open.
pub(super) fn counts_of(place: &Path) -> Option<Arc<Counts>> {
    let (scheme, rest) = place.to_str()?.split_once("://")?;
    let root = format!("{scheme}://{}", rest.split('/').next()?);
    with_buckets(|buckets| buckets.open.get(&root).map(|bucket| Arc::clone(&bucket.requests.counts)))
}

impl Bucket {
    /// The bucket that a URL means, and the key there.
    ///
    /// Errors: `Config` in `directory` for a URL without a bucket, or settings that are none.
    pub(super) fn found(url: &Path, rest: &str) -> crate::Result<(Arc<dyn Store>, String)> {
        let scheme = url.to_str().and_then(|url| url.split_once(':')).map_or("", |(scheme, _)| scheme);
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        let refuse = |detail: &str| crate::Error::config("directory", format!("{}: {detail}", url.display()));
        if host.is_empty() {
            return Err(refuse("names no bucket; expected a URL such as s3://bucket/folder"));
        }
        let root = format!("{scheme}://{host}");
        let bucket = with_buckets(|buckets| -> crate::Result<Bucket> {
            if let Some(open) = buckets.open.get(&root) {
                return Ok(open.clone());
            }
            let of_scheme = format!("{scheme}://");
            let options = [&root, &of_scheme].into_iter().find_map(|name| buckets.options.get(name)).cloned();
            let options = options.unwrap_or_default();
            let (client, parts) = clouds::client(scheme, host, &options).map_err(|e| refuse(&innermost(&e)))?;
            let patience = options.patience.unwrap_or(asking::PATIENCE);
            let parts = parts.map(Parts);
            let requests =
                Requests { url: root.clone(), client, parts, patience, counts: Arc::default(), room: requests::room() };
            let bucket = Bucket { requests: Arc::new(requests), readings: Arc::default() };
            buckets.open.insert(root.clone(), bucket.clone());
            Ok(bucket)
        })?;
        Ok((Arc::new(bucket), key.to_owned()))
    }
}

fn key_of(name: &str) -> Result<Key> {
    Key::parse(name).map_err(|e| Error::new(Kind::Io(ErrorKind::InvalidInput), e.to_string()).in_source(name))
}

fn stat_of(meta: &ObjectMeta, name: &str) -> FileStat {
    // Where nothing tells versions apart, names tell files apart.
    let mark = meta.e_tag.as_deref().or(meta.version.as_deref()).unwrap_or(name);
    FileStat {
        name: name.into(),
        size: meta.size,
        // Lists know parts of a second, answers about one object do not.
        mtime_ns: meta.last_modified.timestamp().saturating_mul(1_000_000_000),
        device: 0,
        inode: xxh3_64(mark.as_bytes()),
    }
}

impl Store for Bucket {
    fn root(&self) -> String {
        self.requests.url.clone()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list_below("", each)
    }

    fn list_below(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list_hidden(folder, &mut |stat| match stat.name.split('/').any(|part| part.starts_with('.')) {
            true => ControlFlow::Continue(()),
            false => each(stat),
        })
    }

    fn list_hidden(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = Faults::default();
        let listed = key_of(folder)
            .and_then(|prefix| self.requests.list(&prefix, &mut |meta| each(stat_of(&meta, meta.location.as_ref()))));
        if let Err(e) = listed {
            faults.error(&e);
        }
        faults
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        if name.is_empty() {
            let e = Error::new(Kind::Io(ErrorKind::NotFound), "a bucket is no object");
            return Err(e.in_source(self.root()));
        }
        Ok(stat_of(&self.requests.head(&key_of(name)?)?, name))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(Object::open(Arc::clone(&self.requests), key_of(name)?)?))
    }

    fn open_listed(&self, folder: &str, is: &dyn Fn(&str) -> bool) -> Result<Vec<(String, Arc<dyn ReadAt>)>> {
        let mut metas = Vec::new();
        self.requests.list(&key_of(folder)?, &mut |meta| {
            metas.extend(is(meta.location.as_ref()).then_some(meta));
            ControlFlow::Continue(())
        })?;
        let open = |meta: ObjectMeta| -> Result<(String, Arc<dyn ReadAt>)> {
            let name = meta.location.to_string();
            // Nothing says that the mark in a list of a web server is that of its answers.
            let listed = self.requests.parts.as_ref().and_then(|_| Object::listed(Arc::clone(&self.requests), meta));
            let file = match listed {
                Some(object) => Arc::new(object),
                None => self.open(&name)?,
            };
            Ok((name, file))
        };
        metas.into_iter().map(open).collect()
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        Ok(None)
    }

    fn counts(&self) -> Option<Arc<Counts>> {
        Some(Arc::clone(&self.requests.counts))
    }

    fn writes(&self) -> Option<&dyn Writes> {
        self.requests.parts.as_ref().map(|_| self as &dyn Writes)
    }
}

impl Writes for Bucket {
    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool) -> Result<bool> {
        let mode = if only_new { PutMode::Create } else { PutMode::Overwrite };
        self.requests.put(&key_of(name)?, bytes.into(), mode)
    }

    fn replace(&self, name: &str, bytes: Vec<u8>, was: &Mark) -> Result<bool> {
        let was = UpdateVersion { e_tag: was.tag.clone(), version: was.version.clone() };
        self.requests.put(&key_of(name)?, bytes.into(), PutMode::Update(was))
    }

    fn read_marked(&self, name: &str, most: u64) -> Result<Option<(Vec<u8>, Mark)>> {
        let key = key_of(name)?;
        let (meta, beginning) = match self.requests.beginning(&key, BEGINNING.min(most)) {
            Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
            read => read?,
        };
        if meta.size > most {
            let detail = format!("{} bytes; at most {most} are read", meta.size);
            return Err(Error::new(Kind::TooLarge, detail).in_source(format!("{}/{name}", self.root())));
        }
        let (mut bytes, len) = (beginning.to_vec(), beginning.len() as u64);
        if len < meta.size {
            bytes.extend_from_slice(&self.requests.get(&key, len..meta.size, &meta)?);
        }
        Ok(Some((bytes, Mark { tag: meta.e_tag, version: meta.version })))
    }

    fn send(&self, name: &str, file: &Path, each: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.requests.send(&key_of(name)?, file, each)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.requests.delete(&key_of(name)?)
    }

    fn delete_all(&self, names: &[String]) -> Result<()> {
        self.requests.delete_all(names.iter().map(|name| key_of(name)).collect::<Result<_>>()?)
    }

    fn list_all(&self, folder: &str, each: &mut dyn FnMut(&str, u64) -> ControlFlow<()>) -> Result<()> {
        self.requests.list(&key_of(folder)?, &mut |meta| each(meta.location.as_ref(), meta.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_setting_is_printed() {
        let settings = vec![("secret_access_key".to_owned(), "hush".to_owned())];
        let shown = format!("{:?}", Options { settings, ..Options::default() });
        assert!(shown.contains("secret_access_key") && !shown.contains("hush"), "{shown}");
    }
}

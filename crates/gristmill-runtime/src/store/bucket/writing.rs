//! Bytes of this machine -> objects of a bucket: small ones in one request, large ones in parts; a request that fails is tried again.
//! Never leaves a part of an object in its place, and never overwrites an object that must be new.

use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use gristmill_format::{Error, Kind, Result};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{Error as Refusal, MultipartId, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::asking::{Failed, Try};
use super::net;
use super::requests::{self, Requests};

/// Bytes of a part, unless the object would have too many; an object of at most one part takes one request.
const PART: u64 = 16 << 20;

/// Bytes of the parts that are held in memory and sent at once, unless a single part is larger.
const AT_ONCE: u64 = 4 * PART;

/// The most parts that services take for one object.
const MOST: u64 = 10_000;

/// The right that writing needs, by the schemes of each cloud; and the one that removing needs.
const WRITE: [(&str, &str); 3] =
    [("s3", "s3:PutObject"), ("gs gcs", "storage.objects.create"), ("az abfs", "Storage Blob Data Contributor")];
const DELETE: [(&str, &str); 3] =
    [("s3", "s3:DeleteObject"), ("gs gcs", "storage.objects.delete"), ("az abfs", "Storage Blob Data Contributor")];

/// What writes objects in parts.
#[derive(Clone)]
pub(super) struct Parts(pub(super) Arc<dyn MultipartStore>);

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

impl Requests {
    /// Writes an object in one request. Returns `false`, and writes nothing, where the object must be new and another one has its key, or
    /// must be of a version and is of another one.
    ///
    /// Errors, with the URL: `Io` with the cause.
    pub(super) fn put(self: &Arc<Self>, key: &Key, bytes: Bytes, mode: PutMode) -> Result<bool> {
        let (own, of, sent) = (Arc::clone(self), key.clone(), bytes.clone());
        let is_update = matches!(mode, PutMode::Update(_));
        let put = net::wait(async move {
            let make = || -> Try<bool> {
                let (client, key, bytes, mode) = (Arc::clone(&own.client), of.clone(), sent.clone(), mode.clone());
                Box::pin(async move {
                    match client.put_opts(&key, bytes.into(), PutOptions::from(mode)).await {
                        Ok(_) => Ok(true),
                        Err(Refusal::AlreadyExists { .. } | Refusal::Precondition { .. }) => Ok(false),
                        Err(Refusal::NotFound { .. }) if is_update => Ok(false),
                        Err(e) => Err(e),
                    }
                })
            };
            own.order(&of, bytes.len() as u64, make).await.map(|is_new| (is_new, bytes))
        })?;
        match put? {
            (true, _) => Ok(true),
            // An earlier try may have written the object, although its answer was lost: then the bytes are ours.
            (false, bytes) => match self.beginning(key, bytes.len() as u64 + 1) {
                Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => Ok(false),
                there => Ok(there?.1 == bytes),
            },
        }
    }

    /// Writes the bytes of a file as an object. `each` gets the bytes sent since its last call; its error stops the sending.
    ///
    /// Errors: as [`Requests::put`], those of reading the file, and those of `each`.
    pub(super) fn send(
        self: &Arc<Self>,
        key: &Key,
        path: &Path,
        each: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let of_file = |e: std::io::Error| Error::from(e).in_source(path.display().to_string());
        let file = File::open(path).map_err(of_file)?;
        let len = file.metadata().map_err(of_file)?.len();
        let read = |range: std::ops::Range<u64>| -> Result<Bytes> {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            file.read_exact_at(&mut bytes, range.start).map_err(of_file)?;
            Ok(bytes.into())
        };
        let Some(Parts(parts)) = self.parts.clone().filter(|_| len > PART) else {
            self.put(key, read(0..len)?, PutMode::Overwrite)?;
            return each(len);
        };
        let size = PART.max(len.div_ceil(MOST));
        let id = self.ordered(key, &parts, |parts, key| Box::pin(async move { parts.create_multipart(&key).await }))?;
        let sent = self.send_parts(key, (&parts, &id), (len, size), &read, each);
        if sent.is_err() {
            let id = id.clone();
            // If this fails too, the parts stay until a rule of the bucket removes them; the first error says more.
            let _ = self.ordered(key, &parts, move |parts, key| {
                let id = id.clone();
                Box::pin(async move { parts.abort_multipart(&key, &id).await })
            });
        }
        sent
    }

    fn send_parts(
        self: &Arc<Self>,
        key: &Key,
        (parts, id): (&Arc<dyn MultipartStore>, &MultipartId),
        (len, size): (u64, u64),
        read: &dyn Fn(std::ops::Range<u64>) -> Result<Bytes>,
        each: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let numbers: Vec<u64> = (0..len.div_ceil(size)).collect();
        let mut done: Vec<PartId> = Vec::with_capacity(numbers.len());
        let at_once = (AT_ONCE / size).max(1) as usize;
        for some in numbers.chunks(at_once) {
            let bytes = some.iter().map(|number| Ok((*number, read(number * size..len.min((number + 1) * size))?)));
            let bytes: Vec<(u64, Bytes)> = bytes.collect::<Result<_>>()?;
            let all: u64 = bytes.iter().map(|(_, bytes)| bytes.len() as u64).sum();
            let (own, key, parts, id) = (Arc::clone(self), key.clone(), Arc::clone(parts), id.clone());
            let made = net::wait(async move {
                let one = |(number, bytes): (u64, Bytes)| {
                    let (own, key, parts, id) = (Arc::clone(&own), key.clone(), Arc::clone(&parts), id.clone());
                    async move {
                        let make = || -> Try<PartId> {
                            let (key, parts, id, bytes) = (key.clone(), Arc::clone(&parts), id.clone(), bytes.clone());
                            Box::pin(async move { parts.put_part(&key, &id, number as usize, bytes.into()).await })
                        };
                        own.order(&key, bytes.len() as u64, make).await
                    }
                };
                stream::iter(bytes).map(one).buffered(at_once).try_collect::<Vec<PartId>>().await
            })?;
            done.extend(made?);
            each(all)?;
        }
        let id = id.clone();
        let completed = self.ordered(key, parts, move |parts, key| {
            let (id, done) = (id.clone(), done.clone());
            Box::pin(async move { parts.complete_multipart(&key, &id, done).await })
        });
        match completed {
            Ok(_) => Ok(()),
            // An earlier try may have completed the object, although its answer was lost.
            Err(e) => match self.head(key) {
                Ok(there) if there.size == len && e.kind() == Kind::Io(ErrorKind::NotFound) => Ok(()),
                _ => Err(e),
            },
        }
    }

    /// Removes an object; does nothing where there is none.
    ///
    /// Errors: as [`Requests::put`].
    pub(super) fn delete(self: &Arc<Self>, key: &Key) -> Result<()> {
        net::wait(Arc::clone(self).deleted(key.clone()))?
    }

    /// Removes objects, several at once.
    ///
    /// Errors: as [`Requests::put`], the first.
    pub(super) fn delete_all(self: &Arc<Self>, keys: Vec<Key>) -> Result<()> {
        let own = Arc::clone(self);
        net::wait(async move {
            let one = |key| Arc::clone(&own).deleted(key);
            stream::iter(keys).map(one).buffer_unordered(requests::AT_ONCE).try_collect::<()>().await
        })?
    }

    async fn deleted(self: Arc<Self>, key: Key) -> Result<()> {
        let make = || -> Try<()> {
            let (client, key) = (Arc::clone(&self.client), key.clone());
            Box::pin(async move {
                match client.delete(&key).await {
                    Err(Refusal::NotFound { .. }) => Ok(()),
                    deleted => deleted,
                }
            })
        };
        let answer = self.counts.order(0, self.patience, make).await;
        answer.map_err(|failed| self.denied(&key, failed, DELETE))
    }

    /// Makes one request to the client that writes in parts.
    fn ordered<T: Send + 'static>(
        self: &Arc<Self>,
        key: &Key,
        parts: &Arc<dyn MultipartStore>,
        make: impl Fn(Arc<dyn MultipartStore>, Key) -> Try<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (own, key, parts) = (Arc::clone(self), key.clone(), Arc::clone(parts));
        net::wait(async move { own.order(&key, 0, || make(Arc::clone(&parts), key.clone())).await })?
    }

    async fn order<T>(&self, key: &Key, len: u64, make: impl FnMut() -> Try<T>) -> Result<T> {
        let answer = self.counts.order(len, self.patience, make).await;
        answer.map_err(|failed: Failed| self.denied(key, failed, WRITE))
    }

    /// What did not work, with the URL; of a refusal also the right that is needed.
    fn denied(&self, key: &Key, failed: Failed, rights: [(&str, &str); 3]) -> Error {
        let e = self.named(key, failed);
        let right = rights.iter().find(|(schemes, _)| schemes.split(' ').any(|scheme| self.url.starts_with(scheme)));
        match right {
            Some((_, right)) if e.kind() == Kind::Io(ErrorKind::PermissionDenied) => {
                e.and(&format!("; this needs the right {right}"))
            }
            _ => e,
        }
    }
}

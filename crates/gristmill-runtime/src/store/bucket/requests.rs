//! Requests to one bucket, each asked until there is a good answer or an end: bytes of an object, what is known of it, lists.
//! An answer of another range, length or version than was asked for is no answer. Errors name the URL.

use std::io::ErrorKind;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use gristmill_format::source::{Span, Take};
use gristmill_format::{Error, Kind, Result};
use object_store::path::Path as Key;
use object_store::{Error as Refusal, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::sync::{Semaphore, mpsc};

use super::asking::{Counts, Failed, Try, innermost, is_expired, is_untrusted};
use super::net;
use super::writing::Parts;

/// Objects that one request of a list gives. A server of HTTP gives all of them, in any order.
const PAGE: usize = 1000;

/// Requests for bytes of one object that may always run at once, however many bytes they bring.
pub(in crate::store) const AT_ONCE: usize = 8;

/// The most requests for one object that run at once, if they bring few bytes.
const MOST_AT_ONCE: u64 = 64;

/// Bytes that the running requests for one object bring together, on average. [`AT_ONCE`] requests may bring more.
const BYTES_AT_ONCE: u64 = 32 << 20;

/// Bytes that the running requests of one bucket bring together, at most, of all readers.
const ROOM: u64 = 128 << 20;

/// Bytes of [`ROOM`] that each request takes, however few bytes it brings: so at most 256 run at once.
const LEAST: u64 = 512 << 10;

/// Pieces of an answer that stay as they came. More are joined: those of some bytes each would take more memory than their bytes.
const MOST_PIECES: usize = 1024;

/// Bytes of [`ROOM`] that are counted as one.
const UNIT: u64 = 64 << 10;

/// The room of all requests of one bucket.
pub(super) fn room() -> Semaphore {
    Semaphore::new((ROOM / UNIT) as usize)
}

/// What a request that brings `len` bytes takes of the room.
fn taken(len: u64) -> u32 {
    (len.clamp(LEAST, ROOM) / UNIT) as u32
}

/// How many of `requests` for one object, which bring `bytes` together, run at once.
pub(in crate::store) fn at_once(requests: usize, bytes: u64) -> usize {
    let mean = bytes / (requests as u64).max(1);
    (BYTES_AT_ONCE / mean.max(1)).clamp(AT_ONCE as u64, MOST_AT_ONCE) as usize
}

/// What requests are made with.
#[derive(Debug)]
pub(super) struct Requests {
    /// `s3://bucket`.
    pub(super) url: String,
    pub(super) client: Arc<dyn ObjectStore>,
    /// The client that writes; none of a web server.
    pub(super) parts: Option<Parts>,
    pub(super) patience: Duration,
    pub(super) counts: Arc<Counts>,
    /// What requests for several spans take while they run.
    pub(super) room: Semaphore,
}

impl Requests {
    /// What is known of an object.
    ///
    /// Errors, with the URL: `Io` with the cause.
    pub(super) fn head(self: &Arc<Self>, key: &Key) -> Result<ObjectMeta> {
        let (own, of) = (Arc::clone(self), key.clone());
        let answer = net::wait(async move {
            let make = |client: Arc<dyn ObjectStore>| -> Try<ObjectMeta> {
                let key = of.clone();
                Box::pin(async move { client.head(&key).await })
            };
            own.ask(&of, 0, make).await
        })?;
        match answer {
            // Such an answer has no body that would say why; one to a request for a byte has.
            Err(e) if e.to_string().contains("status code: 400") => {
                net::wait(Arc::clone(self).range(key.clone(), 0..1, None))?.map(|(meta, _)| meta)
            }
            answer => answer,
        }
    }

    /// What is known of an object, and its first `most` bytes.
    ///
    /// Errors: as [`Requests::head`].
    pub(super) fn beginning(self: &Arc<Self>, key: &Key, most: u64) -> Result<(ObjectMeta, Bytes)> {
        match net::wait(Arc::clone(self).range(key.clone(), 0..most, None))? {
            // No range of an empty object is one.
            Err(e) if e.kind() == Kind::Io(ErrorKind::Other) => {
                let meta = self.head(key)?;
                if meta.size == 0 { Ok((meta, Bytes::new())) } else { Err(e) }
            }
            answer => answer.map(|(meta, pieces)| (meta, joined(pieces))),
        }
    }

    /// Bytes of an object that was opened before.
    ///
    /// Errors, with the URL: `Io` with the cause; `Refused` for one that was replaced; `Truncated` for one that is shorter.
    pub(super) fn get(self: &Arc<Self>, key: &Key, range: Range<u64>, opened: &ObjectMeta) -> Result<Bytes> {
        net::wait(Arc::clone(self).pieces(key.clone(), range, opened.clone()))?.map(joined)
    }

    /// Spans of an object that was opened before, several at once; each is given with its number as it comes, in the pieces that it came in:
    /// to make one of them would take the thread of all requests about as long as to receive them.
    ///
    /// Errors: as [`Requests::get`], and those of `each`.
    pub(super) fn get_all(
        self: &Arc<Self>,
        key: &Key,
        spans: &[Span],
        opened: &ObjectMeta,
        each: &mut Take<'_>,
    ) -> Result<()> {
        let at_once = at_once(spans.len(), spans.iter().map(|span| span.len).sum());
        let (send, mut receive) = mpsc::channel(AT_ONCE);
        let (own, key, opened, spans) = (Arc::clone(self), key.clone(), opened.clone(), spans.to_vec());
        net::start(async move {
            let one = |(i, span): (usize, Span)| {
                let (own, key, opened) = (Arc::clone(&own), key.clone(), opened.clone());
                async move {
                    let _room = own.room.acquire_many(taken(span.len)).await;
                    (i, Arc::clone(&own).pieces(key, span.offset..span.offset + span.len, opened).await)
                }
            };
            let mut answers = stream::iter(spans.into_iter().enumerate()).map(one).buffer_unordered(at_once);
            while let Some(answer) = answers.next().await {
                // Nobody waits any more after an error.
                if send.send(answer).await.is_err() {
                    return;
                }
            }
        })?;
        while let Some((i, pieces)) = receive.blocking_recv() {
            let pieces: Vec<Bytes> = pieces?;
            each(i, &pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// The objects below `prefix`, page after page, until `each` breaks.
    ///
    /// Errors: as [`Requests::head`].
    pub(super) fn list(
        self: &Arc<Self>,
        prefix: &Key,
        each: &mut dyn FnMut(ObjectMeta) -> ControlFlow<()>,
    ) -> Result<()> {
        let most = if self.url.starts_with("http") { usize::MAX } else { PAGE };
        let mut after: Option<Key> = None;
        loop {
            let page = net::wait(Arc::clone(self).page(prefix.clone(), after, most))??;
            let is_last = page.len() < most;
            after = page.iter().map(|meta| &meta.location).max().cloned();
            for meta in page {
                if each(meta).is_break() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn page(self: Arc<Self>, prefix: Key, after: Option<Key>, most: usize) -> Result<Vec<ObjectMeta>> {
        let make = |client: Arc<dyn ObjectStore>| -> Try<Vec<ObjectMeta>> {
            let (prefix, after) = (prefix.clone(), after.clone());
            Box::pin(async move {
                let all = match &after {
                    None => client.list(Some(&prefix)),
                    Some(after) => client.list_with_offset(Some(&prefix), after),
                };
                all.take(most).try_collect().await
            })
        };
        self.ask(&prefix, 0, make).await
    }

    /// Bytes of an object that was opened before, in the pieces that they came in.
    async fn pieces(self: Arc<Self>, key: Key, range: Range<u64>, opened: ObjectMeta) -> Result<Vec<Bytes>> {
        let (start, wanted) = (range.start, range.end - range.start);
        let (meta, pieces) = Arc::clone(&self).range(key.clone(), range, opened.e_tag.clone()).await?;
        let is_same = (meta.size, &meta.e_tag) == (opened.size, &opened.e_tag);
        // Without a tag the time tells.
        if !is_same || meta.e_tag.is_none() && meta.last_modified != opened.last_modified {
            let refusal = Refusal::Precondition { path: key.to_string(), source: "another object".into() };
            return Err(self.named(&key, Failed::Refused(refusal)));
        }
        let came = len(&pieces);
        if came != wanted {
            let detail = format!("expected {wanted} bytes, the answer has {came}");
            return Err(Error::new(Kind::Truncated, detail).at_byte(start).in_source(format!("{}/{key}", self.url)));
        }
        Ok(pieces)
    }

    /// What of a range an object has.
    async fn range(
        self: Arc<Self>,
        key: Key,
        range: Range<u64>,
        etag: Option<String>,
    ) -> Result<(ObjectMeta, Vec<Bytes>)> {
        let make = |client: Arc<dyn ObjectStore>| -> Try<(ObjectMeta, Vec<Bytes>)> {
            let (key, range, if_match, counts) = (key.clone(), range.clone(), etag.clone(), Arc::clone(&self.counts));
            Box::pin(async move {
                let options =
                    GetOptions { range: Some(GetRange::Bounded(range.clone())), if_match, ..GetOptions::default() };
                let answer = client.get_opts(&key, options).await?;
                let (meta, got) = (answer.meta.clone(), answer.range.clone());
                let pieces = collected(answer.into_stream(), range.end - range.start).await?;
                let came = len(&pieces);
                counts.bytes.fetch_add(came, Ordering::Relaxed);
                let expected = range.start..range.end.min(meta.size);
                if got != expected || came != expected.end - expected.start {
                    let source = format!("bytes {expected:?} were asked for, {came} of {got:?} came").into();
                    return Err(Refusal::Generic { store: "bucket", source });
                }
                Ok((meta, pieces))
            })
        };
        self.ask(&key, range.end - range.start, make).await
    }

    async fn ask<T>(&self, key: &Key, len: u64, mut make: impl FnMut(Arc<dyn ObjectStore>) -> Try<T>) -> Result<T> {
        let answer = self.counts.ask(len, self.patience, || make(Arc::clone(&self.client))).await;
        answer.map_err(|failed| self.named(key, failed))
    }

    /// What did not work, with the URL.
    pub(super) fn named(&self, key: &Key, failed: Failed) -> Error {
        let io = |kind: ErrorKind, detail: String| Error::new(Kind::Io(kind), detail);
        let error = match failed {
            Failed::GaveUp(tries, time, said) => {
                let detail = format!("no good answer in {:.1} s, {tries} tries; the last: {said}", time.as_secs_f64());
                io(ErrorKind::TimedOut, detail)
            }
            Failed::Refused(refusal) => {
                let said = innermost(&refusal);
                match refusal {
                    _ if is_untrusted(&said) => {
                        let to_do = "its certificate is of no authority that this machine trusts, or of another host; name \
                                     the authority's certificates (PEM) in SSL_CERT_FILE";
                        io(ErrorKind::ConnectionRefused, format!("{said}: {to_do}"))
                    }
                    _ if is_expired(&said) => {
                        let to_do = "the credentials have run out; log in again or set new ones, and begin again: a saved \
                                     state goes on where it was";
                        io(ErrorKind::PermissionDenied, format!("{said}: {to_do}"))
                    }
                    Refusal::NotFound { .. } => io(ErrorKind::NotFound, "no such object".to_owned()),
                    Refusal::PermissionDenied { .. } | Refusal::Unauthenticated { .. } => {
                        let detail =
                            format!("{said}; set credentials that may do this, or ask without any (anonymous)");
                        io(ErrorKind::PermissionDenied, detail)
                    }
                    Refusal::Precondition { .. } => {
                        let detail = "it was replaced after it was opened; begin again with what is there now";
                        Error::new(Kind::Refused("replaced"), detail)
                    }
                    _ => io(ErrorKind::Other, said),
                }
            }
        };
        error.in_source(format!("{}/{key}", self.url))
    }
}

/// The pieces of an answer to a request for `wanted` bytes. Of a longer one it takes the pieces up to the one that is too much.
async fn collected<E>(
    mut answer: impl Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    wanted: u64,
) -> std::result::Result<Vec<Bytes>, E> {
    let (mut pieces, mut rest, mut came) = (Vec::new(), Vec::new(), 0);
    while let Some(piece) = answer.try_next().await? {
        came += piece.len() as u64;
        match pieces.len() < MOST_PIECES {
            true => pieces.push(piece),
            false => rest.extend_from_slice(&piece),
        }
        if came > wanted {
            break;
        }
    }
    pieces.extend((!rest.is_empty()).then(|| rest.into()));
    Ok(pieces)
}

/// How many bytes pieces have together.
fn len(pieces: &[Bytes]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Pieces that follow each other -> their bytes.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 | 1 => pieces.pop().unwrap_or_default(),
        _ => pieces.concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_requests_run_at_once_beside_a_long_one() {
        let small = 256 << 10;
        assert_eq!(at_once(100, 99 * small + (4 << 20)), 64, "one that is long takes no place of the others");
        assert_eq!([at_once(20, 20 << 20), at_once(9, 9 * (64 << 20)), at_once(0, 0)], [32, 8, 64]);
    }

    #[test]
    fn an_answer_has_no_more_pieces_and_bytes_than_it_may() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let come = |many: usize, wanted: u64| {
            let answer = stream::iter((0..many).map(|i| Ok::<_, Error>(Bytes::from(vec![i as u8; 3]))));
            runtime.block_on(collected(answer, wanted)).unwrap()
        };
        let expected = |many: usize| (0..many).flat_map(|i| [i as u8; 3]).collect::<Vec<u8>>();
        for many in [0, 1, MOST_PIECES, MOST_PIECES + 1, 5000] {
            let pieces = come(many, 3 * many as u64);
            assert_eq!(pieces.len(), many.min(MOST_PIECES + 1));
            assert!(joined(pieces) == expected(many), "{many}");
        }
        assert_eq!(len(&come(5000, 30)), 33, "it is too long, and no more of it is taken");
    }

    #[test]
    fn the_room_holds_many_small_requests_and_any_large_one() {
        let all = room().available_permits() as u32;
        assert_eq!([1, 256 << 10, LEAST].map(|len| all / taken(len)), [256; 3]);
        assert_eq!([8 << 20, ROOM, u64::MAX].map(|len| all / taken(len)), [16, 1, 1]);
    }
}

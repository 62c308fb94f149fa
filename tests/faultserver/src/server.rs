//! The operations of S3 that stores use -> objects of a folder, with the faults that were ordered.
//! Answers as a service does: conditions, ranges, pages and parts included.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use s3s::dto::*;
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::faults::{Fault, Faults};
use crate::objects::{Objects, Only, Stat};

/// Bytes of a piece of a body.
const PIECE: usize = 64 << 10;

/// Uploads that are not complete: the parts of each by number.
type Uploads = BTreeMap<String, BTreeMap<i32, Bytes>>;

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    objects: Objects,
    faults: Arc<Faults>,
    uploads: Mutex<Uploads>,
}

impl Server {
    pub(crate) fn new(objects: Objects, faults: Arc<Faults>) -> Self {
        Server { objects, faults, uploads: Mutex::default() }
    }

    /// Takes the time of a request and fails it where it is to fail; gives what goes wrong with its answer.
    async fn begin(&self, operation: &'static str, bucket: &str, key: &str) -> S3Result<Option<Fault>> {
        let fault = self.faults.of(operation, key);
        tokio::time::sleep(self.faults.latency).await;
        if !self.objects.has_bucket(bucket) {
            return Err(s3_error!(NoSuchBucket, "{bucket}"));
        }
        match fault {
            Some(Fault::InternalError) => Err(s3_error!(InternalError)),
            Some(Fault::SlowDown) => Err(s3_error!(SlowDown)),
            Some(Fault::AccessDenied) => Err(s3_error!(AccessDenied)),
            Some(Fault::ExpiredToken) => Err(s3_error!(ExpiredToken)),
            Some(Fault::Stall(milliseconds)) => {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(None)
            }
            other => Ok(other),
        }
    }

    fn stat(&self, bucket: &str, key: &str, if_match: Option<&ETagCondition>) -> S3Result<Stat> {
        let stat = self.objects.stat(bucket, key).map_err(missing)?;
        match if_match {
            Some(ETagCondition::ETag(wanted)) if wanted.value() != stat.etag => Err(s3_error!(PreconditionFailed)),
            _ => Ok(stat),
        }
    }

    /// A body of these bytes, as quickly as the network is, which may end early.
    fn body(&self, bytes: Bytes, fault: Option<Fault>) -> StreamingBlob {
        let (rate, end) = (self.faults.rate, bytes.len());
        let end = if let Some(Fault::Drop(most)) = fault { end.min(most as usize) } else { end };
        let cut = end < bytes.len();
        let pieces: Vec<io::Result<Bytes>> =
            (0..end).step_by(PIECE).map(|at| Ok(bytes.slice(at..end.min(at + PIECE)))).collect();
        let broken = cut.then(|| Err(io::Error::from(ErrorKind::ConnectionReset)));
        // A timer is some milliseconds late. Pieces have their time from the beginning of the answer, so that these do not add up.
        let (began, mut sent) = (tokio::time::Instant::now(), 0);
        let pieces = stream::iter(pieces.into_iter().chain(broken)).then(move |piece| {
            sent += piece.as_ref().map_or(0, Bytes::len) as u64;
            let due = (rate > 0).then(|| began + Duration::from_nanos(sent * 1_000_000_000 / rate));
            async move {
                if let Some(due) = due {
                    tokio::time::sleep_until(due).await;
                }
                piece
            }
        });
        StreamingBlob::wrap(Sync(Mutex::new(Box::pin(pieces))))
    }
}

/// A stream that several threads may refer to, of which one polls.
struct Sync<S>(Mutex<std::pin::Pin<Box<S>>>);

impl<S: futures_util::Stream> futures_util::Stream for Sync<S> {
    type Item = S::Item;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().poll_next(context)
    }
}

fn missing(e: io::Error) -> S3Error {
    match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => s3_error!(NoSuchKey),
        _ => s3_error!(InternalError, "{e}"),
    }
}

fn condition(if_match: Option<&ETagCondition>, if_none_match: Option<&ETagCondition>) -> Only {
    match (if_match, if_none_match) {
        (Some(ETagCondition::ETag(etag)), _) => Only::Replacing(etag.value().to_owned()),
        (_, Some(_)) => Only::New,
        _ => Only::Any,
    }
}

async fn whole(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(body) = body else { return Ok(Bytes::new()) };
    let pieces: Vec<Bytes> = body.try_collect().await.map_err(|e| s3_error!(IncompleteBody, "{e}"))?;
    Ok(pieces.concat().into())
}

#[async_trait::async_trait]
impl S3 for Server {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let asked = request.input;
        let fault = self.begin("get", &asked.bucket, &asked.key).await?;
        let stat = self.stat(&asked.bucket, &asked.key, asked.if_match.as_ref())?;
        let mut range = match asked.range {
            None => 0..stat.size,
            Some(range) => range.check(stat.size).map_err(|_| s3_error!(InvalidRange))?,
        };
        if let Some(Fault::Shifted(by)) = fault {
            range = (range.start + by).min(stat.size)..(range.end + by).min(stat.size);
        }
        let len = (range.end - range.start) as usize;
        let mut bytes = self.objects.read(&asked.bucket, &asked.key, range.start, len).map_err(missing)?;
        if fault == Some(Fault::Garbled) {
            bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
        }
        self.faults.count("bytes", len as u64);
        let part = asked.range.map(|_| format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), stat.size));
        let partial = part.is_some();
        let mut response = S3Response::new(GetObjectOutput {
            body: Some(self.body(bytes.into(), fault)),
            content_length: Some(len as i64),
            content_range: part,
            e_tag: Some(ETag::Strong(stat.etag)),
            last_modified: Some(stat.modified.into()),
            ..GetObjectOutput::default()
        });
        if partial {
            response.status = 206.try_into().ok();
        }
        Ok(response)
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let asked = request.input;
        self.begin("head", &asked.bucket, &asked.key).await?;
        let stat = self.stat(&asked.bucket, &asked.key, asked.if_match.as_ref())?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(stat.size as i64),
            e_tag: Some(ETag::Strong(stat.etag)),
            last_modified: Some(stat.modified.into()),
            ..HeadObjectOutput::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let asked = request.input;
        let prefix = asked.prefix.clone().unwrap_or_default();
        let fault = self.begin("list", &asked.bucket, &prefix).await?;
        let after = asked.continuation_token.or(asked.start_after).unwrap_or_default();
        let most = asked.max_keys.map_or(1000, |n| n.clamp(1, 1000)) as usize;
        let (mut stats, more) = self.objects.list(&asked.bucket, &prefix, &after, most).map_err(missing)?;
        let next = stats.last().map(|stat| stat.key.clone()).filter(|_| more);
        if let Some(Fault::Stale(seconds)) = fault {
            let since = SystemTime::now() - Duration::from_secs(seconds);
            stats.retain(|stat| stat.modified < since);
        }
        let objects: Vec<Object> = stats
            .into_iter()
            .map(|stat| Object {
                key: Some(stat.key),
                size: Some(stat.size as i64),
                e_tag: Some(ETag::Strong(stat.etag)),
                last_modified: Some(stat.modified.into()),
                ..Object::default()
            })
            .collect();
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(asked.bucket),
            prefix: Some(prefix),
            key_count: Some(objects.len() as i32),
            max_keys: Some(most as i32),
            is_truncated: Some(more),
            next_continuation_token: next,
            contents: Some(objects),
            ..ListObjectsV2Output::default()
        }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let asked = request.input;
        self.begin("put", &asked.bucket, &asked.key).await?;
        let only = condition(asked.if_match.as_ref(), asked.if_none_match.as_ref());
        let bytes = whole(asked.body).await?;
        let written = self.objects.write(&asked.bucket, &asked.key, &bytes, &only).map_err(missing)?;
        let etag = written.ok_or_else(|| s3_error!(PreconditionFailed))?;
        Ok(S3Response::new(PutObjectOutput { e_tag: Some(ETag::Strong(etag)), ..PutObjectOutput::default() }))
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        let asked = request.input;
        self.begin("delete", &asked.bucket, &asked.key).await?;
        self.objects.delete(&asked.bucket, &asked.key).map_err(missing)?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let asked = request.input;
        let mut deleted = Vec::new();
        for object in asked.delete.objects {
            self.begin("delete", &asked.bucket, &object.key).await?;
            self.objects.delete(&asked.bucket, &object.key).map_err(missing)?;
            deleted.push(DeletedObject { key: Some(object.key), ..DeletedObject::default() });
        }
        Ok(S3Response::new(DeleteObjectsOutput { deleted: Some(deleted), ..DeleteObjectsOutput::default() }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let asked = request.input;
        self.begin("put", &asked.bucket, &asked.key).await?;
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("{}-{}", uploads.len(), asked.key.len());
        uploads.insert(id.clone(), BTreeMap::new());
        let (bucket, key) = (Some(asked.bucket), Some(asked.key));
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket,
            key,
            upload_id: Some(id),
            ..CreateMultipartUploadOutput::default()
        }))
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        let asked = request.input;
        self.begin("put", &asked.bucket, &asked.key).await?;
        let bytes = whole(asked.body).await?;
        let etag = ETag::Strong(format!("part-{}-{}", asked.part_number, bytes.len()));
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = uploads.get_mut(&asked.upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        parts.insert(asked.part_number, bytes);
        Ok(S3Response::new(UploadPartOutput { e_tag: Some(etag), ..UploadPartOutput::default() }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let asked = request.input;
        self.begin("put", &asked.bucket, &asked.key).await?;
        let parts = self.uploads.lock().unwrap_or_else(PoisonError::into_inner).get(&asked.upload_id).cloned();
        let bytes = parts.ok_or_else(|| s3_error!(NoSuchUpload))?.into_values().collect::<Vec<_>>().concat();
        let only = condition(asked.if_match.as_ref(), asked.if_none_match.as_ref());
        let written = self.objects.write(&asked.bucket, &asked.key, &bytes, &only).map_err(missing)?;
        let etag = written.ok_or_else(|| s3_error!(PreconditionFailed))?;
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner).remove(&asked.upload_id);
        let (bucket, key) = (Some(asked.bucket), Some(asked.key));
        let e_tag = Some(ETag::Strong(etag));
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket,
            key,
            e_tag,
            ..CompleteMultipartUploadOutput::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.input.upload_id);
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}

//! The chunk anchors of a loader's pools, and the requests that read and set them while it runs, before, or after.
//! Never changes what is drawn.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_stages::stage::pool::Anchor;

/// A control request to every pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    /// What the anchor is and how many chunks came since.
    QueryChunkAnchor,
    /// The newest source becomes the anchor; the reply has the count before that.
    ResetChunkAnchor,
    /// This source key becomes the anchor; the count continues until it comes.
    SetChunkAnchor(String),
}

/// What one pool answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlReply {
    /// Name of the pool.
    pub stage: String,
    /// Source key of the anchor; empty before one was set.
    pub chunk_anchor: String,
    /// Chunks that came after it.
    pub chunks_since_anchor: u64,
}

/// The anchors by name of the pool.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Anchors(BTreeMap<String, Mutex<Anchor>>);

impl Anchors {
    /// Anchors for these pools, none set.
    pub(in crate::pipeline) fn new(pools: impl Iterator<Item = String>) -> Self {
        Anchors(pools.map(|pool| (pool, Mutex::default())).collect())
    }

    /// The anchor of a pool; `None` for any other stage.
    pub(in crate::pipeline) fn of(&self, pool: &str) -> Option<MutexGuard<'_, Anchor>> {
        self.0.get(pool).map(|anchor| anchor.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A source of an earlier run is in the pool again: it was counted then.
    pub(in crate::pipeline) fn seen(&self, pool: &str, key: &str) {
        if let Some(mut anchor) = self.of(pool) {
            anchor.newest = Some(key.to_owned());
        }
    }

    /// All of them.
    pub(in crate::pipeline) fn all(&self) -> BTreeMap<String, Anchor> {
        self.0.keys().filter_map(|pool| Some((pool.clone(), self.of(pool)?.clone()))).collect()
    }

    /// Resumes from saved ones.
    pub(in crate::pipeline) fn restore(&self, saved: &BTreeMap<String, Anchor>) {
        for (pool, anchor) in saved {
            if let Some(mut own) = self.of(pool) {
                own.clone_from(anchor);
            }
        }
    }

    /// Carries out a request, pool by pool.
    pub(in crate::pipeline) fn control(&self, request: &ControlRequest) -> Vec<ControlReply> {
        let reply = |pool: &String| {
            let mut anchor = self.of(pool)?;
            let before = match request {
                ControlRequest::QueryChunkAnchor => anchor.since,
                ControlRequest::ResetChunkAnchor => anchor.reset(),
                ControlRequest::SetChunkAnchor(key) => {
                    anchor.key.clone_from(key);
                    anchor.since
                }
            };
            let chunk_anchor = anchor.key.clone();
            Some(ControlReply { stage: pool.clone(), chunk_anchor, chunks_since_anchor: before })
        };
        self.0.keys().filter_map(reply).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pool_answers_for_itself() {
        let anchors = Anchors::new(["a", "b"].map(String::from).into_iter());
        anchors.of("b").unwrap().arrived("training.7.gz", 5);
        let since = |request| -> Vec<(String, u64)> {
            let replies = anchors.control(&request);
            assert_eq!(replies.iter().map(|r| r.stage.as_str()).collect::<Vec<_>>(), ["a", "b"]);
            replies.into_iter().map(|r| (r.chunk_anchor, r.chunks_since_anchor)).collect()
        };
        assert_eq!(since(ControlRequest::QueryChunkAnchor), [(String::new(), 0), (String::new(), 5)]);
        let set = since(ControlRequest::SetChunkAnchor("x".into()));
        assert_eq!(set, [("x".to_owned(), 0), ("x".to_owned(), 5)], "the count stays");
        let reset = since(ControlRequest::ResetChunkAnchor);
        assert_eq!(reset, [("x".to_owned(), 0), ("training.7.gz".to_owned(), 5)]);
        assert_eq!(since(ControlRequest::QueryChunkAnchor)[1].1, 0);
        let other = Anchors::new(["b", "c"].map(String::from).into_iter());
        other.restore(&anchors.all());
        assert_eq!(other.of("b").unwrap().key, "training.7.gz");
        assert!(other.of("a").is_none());
    }
}

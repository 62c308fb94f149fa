//! Certificates of a loader's shuffle -> what its status document says of them: the last one of each output. The loader and the server
//! of its status share them; nothing is measured here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pipeline::watch::status::CertificateStatus;

/// The last certificate of each output.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct Certified(Arc<Mutex<BTreeMap<String, CertificateStatus>>>);

impl Certified {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CertificateStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a certificate in place of an earlier one of its output.
    pub(in crate::pipeline) fn keep(&self, certificate: CertificateStatus) {
        self.lock().insert(certificate.output.clone(), certificate);
    }

    /// All of them, by output.
    pub(in crate::pipeline) fn all(&self) -> Vec<CertificateStatus> {
        self.lock().values().cloned().collect()
    }
}

//! Python face.

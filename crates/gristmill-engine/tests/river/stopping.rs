//! Stop returns within a second, whatever the graph is doing.

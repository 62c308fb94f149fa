//! The steps of the river in flow order, each `what goes in -> what comes out`. No stage knows another.

//! The one integration binary: every test of the commands and of the real clients is a module of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is test code; clippy's own exemption covers only the test functions themselves"
)]

mod accepted;
mod agents;
mod budget;
mod clients;
mod commands;
mod format;
mod hand;
mod handover;
mod home;
mod layers;
mod list;
mod pair;
mod proof;
mod reading;
mod redact;
mod reliability;
mod seen;
mod selecting;
mod summarize;
mod support;
mod trim;
mod windows;

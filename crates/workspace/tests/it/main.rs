//! The workspace against the real git program, in repositories made for each test.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy's exemption covers only the test functions themselves")]

mod commits;
mod discovery;
mod effects;
mod evidence;
mod history;
mod identity;
mod locks;
mod merges;
mod planted;
mod programs;
mod restoring;
mod salvage;
mod shapes;
mod statuses;
mod worktrees;
mod world;

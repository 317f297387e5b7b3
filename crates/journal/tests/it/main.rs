//! The journal as its callers and as crashes, other processes and damaged disks see it.

#![cfg(test)]

mod conformance;
mod damage;
mod disk;
mod prefixes;
mod processes;
mod simulator;

//! The decisions of the domain, from outside.

mod gc;
mod machine;
mod simulator;
mod verdicts;

//! The command line as its users meet it: the real binary in a world of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "clippy's exemption covers only the test functions themselves")]

mod abilities;
mod acp_agents;
mod agent_boxes;
mod agent_gates;
mod agent_judging;
mod agent_killpoints;
mod agent_scene;
mod agent_secrets;
mod agent_steps;
mod agent_tools;
mod agent_withstand;
mod answer;
mod box_contract;
mod box_image;
mod box_scene;
mod boxes;
mod claude_cli;
mod container_boxes;
mod cost;
mod demo;
mod dev_model;
mod docs;
mod doctor;
mod engine_semantics;
mod engines;
mod examples;
mod examples_on_real_agents;
mod files_matrix;
mod gc;
mod gc_runs;
mod git_matrix;
mod git_records;
mod hook_install;
mod hooks;
mod hooks_of_hosts;
mod init;
mod invariants;
mod isolated_runs;
mod judges;
mod killpoints;
mod known_faults;
mod known_here;
mod lint;
mod list;
mod log;
mod mcp;
mod mcp_client;
mod mcp_clients;
mod mcp_http;
mod memory;
mod memory_edit;
mod memory_files;
mod orphans;
mod output;
mod own_engines;
mod procedures;
mod proposals;
mod read_budget;
mod rejudge;
mod runs;
mod say;
mod scene;
mod settings;
mod show;
mod show_agents;
mod show_run;
mod signals;
mod state;
mod status;
mod stop;
mod told;
mod transcripts;
mod trust;
mod usage;
mod user_at_work;
mod whereabouts;

use proctor_testkit::World;

/// A world with a repository that has one commit.
fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_proctor"))
}

/// A procedure without findings.
const GOOD: &str = "description: Does nothing\nsteps:\n  - id: look\n    run:\n      shells:\n        - 'true'\n";

/// A procedure with two errors.
const BAD: &str = "descripton: Does nothing\nsteps:\n  - id: look\n    run:\n      shels:\n        - 'true'\n";

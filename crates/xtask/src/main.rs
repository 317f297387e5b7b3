//! Repository chores: `cargo xtask tidy`, `cargo xtask generate [--check]` and `cargo xtask eval memory [--json]`.

mod eval;
mod generate;
mod task;
mod tidy;

fn main() -> std::process::ExitCode {
    task::main()
}

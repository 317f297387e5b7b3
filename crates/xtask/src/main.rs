//! Repository chores: `cargo xtask tidy` and `cargo xtask generate [--check]`.

mod generate;
mod task;
mod tidy;

fn main() -> std::process::ExitCode {
    task::main()
}

//! The `proctor` binary. Everything is in the library, so that documents can be generated from it.

fn main() -> std::process::ExitCode {
    proctor::main()
}

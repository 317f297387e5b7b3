//! Puts the model of meaning into the program if its files are there: `cargo xtask model` fetches them into `target/model`,
//! `PROCTOR_MEANING` names another folder. Without them the program finds records by their words alone.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The files of the model, as `embedding/minilm.rs` knows them.
const FILES: [(&str, &str); 2] = [
    ("model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),
    ("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-check-cfg=cfg(bundled_model)");
    println!("cargo::rerun-if-env-changed=PROCTOR_MEANING");
    println!("cargo::rerun-if-changed=build.rs");
    let named = env::var_os("PROCTOR_MEANING").map(PathBuf::from);
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let folder = named.clone().unwrap_or_else(|| here.join("../../target/model"));
    // A file that comes later has to be seen; cargo looks at one that is not there each time.
    for (name, _) in FILES {
        println!("cargo::rerun-if-changed={}", folder.join(name).display());
    }
    if named.is_none() && !FILES.iter().any(|(name, _)| folder.join(name).exists()) {
        return Ok(());
    }
    for (name, wanted) in FILES {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|error| format!("the model's file {} can't be read: {error}", path.display()))?;
        let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if found != wanted {
            return Err(format!("{} is not the model's file: its SHA-256 is {found}, not {wanted}", path.display()).into());
        }
    }
    println!("cargo::rustc-env=PROCTOR_MODEL_FOLDER={}", folder.canonicalize()?.display());
    println!("cargo::rustc-cfg=bundled_model");
    Ok(())
}

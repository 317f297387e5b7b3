//! An image for the tests of containers, made of this machine's own programs: no registry is asked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use proctor_process::Program;
use proctor_process::confine::ContainerSetup;

/// Names the container program for the tests; without it the first of these that answers is used.
const VARIABLE: &str = "PROCTOR_TEST_CONTAINER";
const PROGRAMS: [&str; 2] = ["podman", "docker"];
const LIMIT: Duration = Duration::from_secs(120);

/// Copies a shell, what scripts call, git, and the libraries of those and of the program under test. What is there makes the
/// tag, so that another machine's image, or an older one, is not taken for this.
const MAKE: &str = r#"
set -eu
root=$1
names='bash cat chmod cp env git grep head id kill ln ls mkdir mkfifo mktemp mount mv perl readlink rm sed setsid sleep tr touch true'
programs=$(for name in $names; do type -P "$name" || true; done)
perl=$(perl -MSocket -MDynaLoader -e 'print "$_\n" for values %INC, @DynaLoader::dl_shared_objects')
libraries=$(for path in $programs $perl "$2"; do ldd "$path" 2>/dev/null | grep -o '/[^ ]*' || true; done | sort -u)
tag=$(ls -lL $programs $libraries $perl | cksum | cut -d ' ' -f 1)
echo "localhost/proctor-test:$tag"
if "$3" image inspect "localhost/proctor-test:$tag" >/dev/null 2>&1; then exit 0; fi
mkdir -p $root/dev $root/etc $root/proc $root/run $root/sys $root/tmp $root/usr/bin $root/usr/lib $root/usr/lib64 $root/var/tmp
for name in bin lib lib64; do ln -s usr/$name $root/$name; done
for path in $programs; do cp -L "$path" $root/usr/bin/; done
ln -sf bash $root/usr/bin/sh
for path in $libraries $perl; do mkdir -p "$root/${path%/*}"; cp -L "$path" "$root/$path"; done
tar -C $root -c . | "$3" import - "localhost/proctor-test:$tag" >/dev/null
"#;

/// What containers of the tests are made with, or why there are none.
pub(crate) fn setup() -> &'static Result<ContainerSetup, String> {
    static SETUP: OnceLock<Result<ContainerSetup, String>> = OnceLock::new();
    SETUP.get_or_init(|| {
        let named = std::env::var_os(VARIABLE).map(PathBuf::from);
        let candidates = named.map_or_else(|| PROGRAMS.map(PathBuf::from).to_vec(), |named| vec![named]);
        let program = candidates.into_iter().find(|program| answers(program)).ok_or("no container program answers")?;
        let image = make(&program)?;
        Ok(ContainerSetup { program: Some(program), image: Some(image) })
    })
}

/// What container programs are told by variables about where their images are.
pub(crate) fn variables() -> impl Iterator<Item = (String, OsString)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let data = std::env::var_os("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share").into());
    let passed = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    passed
        .filter(|(name, _)| name.starts_with("DOCKER_") || name.starts_with("CONTAINER") || name == "XDG_RUNTIME_DIR")
        .chain([("XDG_DATA_HOME".to_owned(), data)])
}

fn answers(program: &Path) -> bool {
    run(program, &["info"]).is_ok()
}

fn make(program: &Path) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = folder.path().to_str().unwrap_or_default();
    let own = env!("CARGO_BIN_EXE_proctor");
    let printed = run(Path::new("bash"), &["-c", MAKE, "bash", root, own, &program.to_string_lossy()])?;
    Ok(printed.trim().to_owned())
}

fn run(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let finished = Program::new(program).args(arguments).env(std::env::vars_os()).run(Some(LIMIT)).map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if finished.status.is_success() { Ok(text(&finished.stdout)) } else { Err(text(&finished.stderr)) }
}

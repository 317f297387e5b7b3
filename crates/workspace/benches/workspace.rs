//! How long each operation takes in a small repository, beside the git commands that a person would need for
//! the same, run in the same way and with the same syncing.
//!
//! `cargo bench -p proctor-workspace --bench workspace`; with `PROCTOR_BENCH=smoke` a small size that only shows that it works.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures and stops at the first surprise")]

use std::ffi::OsString;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proctor_domain::RepoPath;
use proctor_process::Program;
use proctor_workspace::{CommitEnd, CommitRequest, GitEnvironment, Hooks, Repository};

struct Place {
    top: PathBuf,
    variables: Vec<(OsString, OsString)>,
    repository: Repository,
    log: PathBuf,
}

fn main() {
    let rounds = if std::env::var("PROCTOR_BENCH").is_ok_and(|size| size == "smoke") { 3 } else { 100 };
    let folder = tempfile::tempdir().unwrap();
    let place = set_up(&folder.path().canonicalize().unwrap());
    let repository = &place.repository;
    let head = || repository.head().unwrap().commit.unwrap();
    let fresh = || Repository::discover(&place.top, &environment(&place.variables)).unwrap();

    place.compare("discover", rounds, &|_| drop(black_box(fresh())), &[&["rev-parse", "--show-toplevel"]]);
    place.compare("guard_config", rounds, &|_| repository.guard_config(None).unwrap(), &[&["config", "--list"]]);
    place.compare("status", rounds, &|_| drop(black_box(repository.status().unwrap())), &[&["status", "--porcelain"]]);
    place.compare("head", rounds, &|_| drop(black_box(head())), &[&["rev-parse", "HEAD"]]);
    place.compare("has_commit_hooks", rounds, &|_| assert!(!black_box(repository.has_commit_hooks().unwrap())), &[]);
    place.compare("commits_since", rounds, &|_| drop(repository.commits_since(None).unwrap()), &[&["log", "--format=%B"]]);

    let kept = [RepoPath::new("kept")];
    let change = |number: usize| place.write("kept", &format!("{number}\n"));
    place.compare(
        "commit of a changed file",
        rounds,
        &|number| {
            change(number);
            place.commit(&kept, &[]);
        },
        &[&["commit", "--quiet", "--all", "--message", "x"]],
    );
    place.compare(
        "commit of a new file",
        rounds,
        &|number| {
            let name = format!("new/{number}");
            place.write(&name, "x\n");
            place.commit(&[RepoPath::new(name.as_str())], &[RepoPath::new(name)]);
        },
        &[&["add", "--all"], &["commit", "--quiet", "--message", "x"]],
    );
    let base = head();
    place.compare(
        "snapshot",
        rounds,
        &|number| {
            change(rounds + number);
            drop(black_box(repository.snapshot(&kept).unwrap()));
        },
        &[&["stash", "create"]],
    );
    let tree = repository.snapshot(&kept).unwrap();
    let save = || repository.save("refs/proctor/salvage/x", &tree, Some(&base), "x").unwrap();
    let by_hand: [&[&str]; 2] = [&["commit-tree", "-m", "x", &tree.0], &["update-ref", "refs/proctor/salvage/x", &base.0]];
    place.compare("save", rounds, &|_| drop(save()), &by_hand);
    let differing = || repository.differing(&base, &tree).unwrap();
    place.compare("differing", rounds, &|_| drop(black_box(differing())), &[&["diff", "--name-only", &base.0, &tree.0]]);
    place.compare(
        "restore",
        rounds,
        &|number| {
            change(3 * rounds + number);
            repository.restore(&kept, Some(&base)).unwrap();
        },
        &[&["restore", "--source", &base.0, "--staged", "--worktree", "kept"]],
    );
}

fn environment(variables: &[(OsString, OsString)]) -> GitEnvironment {
    GitEnvironment::from_user(variables.iter().cloned())
}

fn set_up(folder: &Path) -> Place {
    let top = folder.join("work");
    std::fs::create_dir_all(&top).unwrap();
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), folder.into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
    ];
    for role in ["AUTHOR", "COMMITTER"] {
        variables.push((format!("GIT_{role}_NAME").into(), "A".into()));
        variables.push((format!("GIT_{role}_EMAIL").into(), "a@example.com".into()));
    }
    git(&top, &variables, &["init", "--quiet"]);
    for number in 0..50 {
        write(&top.join(format!("src/{number}")), "x\n");
    }
    write(&top.join("kept"), "x\n");
    git(&top, &variables, &["add", "--all"]);
    git(&top, &variables, &["commit", "--quiet", "--message", "first"]);
    let repository = Repository::discover(&top, &environment(&variables)).unwrap();
    Place { top, variables, repository, log: folder.join("commit.log") }
}

fn git(directory: &Path, variables: &[(OsString, OsString)], arguments: &[&str]) {
    // As durable as ours: git alone syncs references and packs only, and a commit whose objects are gone is none.
    let program = Program::new("git")
        .args(["-c", "core.fsync=committed,reference"])
        .args(arguments.iter().copied())
        .dir(directory)
        .env(variables.iter().cloned());
    let ended = program.run(None).unwrap();
    assert!(ended.status.is_success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

fn write(path: &Path, contents: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path).unwrap().write_all(contents.as_bytes()).unwrap();
}

impl Place {
    fn write(&self, name: &str, contents: &str) {
        write(&self.top.join(name), contents);
    }

    fn commit(&self, paths: &[RepoPath], untracked: &[RepoPath]) {
        let request = CommitRequest {
            paths: paths.to_vec(),
            untracked: untracked.to_vec(),
            message: "[procedure] Complete step: a\n\nProcedure: p\nRun: run_0000000000\nStep: a\nAttempt: 1\n".to_owned(),
            hooks: Hooks::Run,
            marker: "run_0000000000/a/1/commit".to_owned(),
            log: self.log.clone(),
            limit: None,
        };
        let end = self.repository.commit(&request).unwrap();
        assert!(matches!(end, CommitEnd::Committed(_)), "{end:?}");
    }

    /// Medians of interleaved rounds, so that what else the machine does hits both alike.
    fn compare(&self, name: &str, rounds: usize, ours: &dyn Fn(usize), theirs: &[&[&str]]) {
        let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            our_times.push(time(|| ours(2 * round)));
            if name.starts_with("commit of a changed") || name == "restore" || name == "snapshot" {
                self.write("kept", &format!("theirs {name} {round}\n"));
            } else if name.starts_with("commit of a new") {
                self.write(&format!("new/theirs {round}"), "x\n");
            }
            their_times.push(time(|| theirs.iter().for_each(|arguments| git(&self.top, &self.variables, arguments))));
        }
        let (ours, theirs) = (median(our_times), median(their_times));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        if ratio.is_finite() && theirs > Duration::from_micros(50) {
            println!("{name:28} {:8.2} ms   git alone {:8.2} ms   ratio {ratio:.2}", millis(ours), millis(theirs));
        } else {
            println!("{name:28} {:8.3} ms", millis(ours));
        }
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

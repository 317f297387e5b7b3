//! Finding commits again.

use proctor_domain::{Oid, RepoPath};

use crate::world::{World, paths};

#[test]
fn commits_are_told_oldest_first_with_their_trailers() {
    let world = World::new();
    let repository = world.repository();
    let base = Oid(world.head());
    assert_eq!(repository.commits_since(Some(&base)).unwrap(), []);
    world.git(&["commit", "--quiet", "--allow-empty", "--message", "second\n\nbody\n\nRun: run_1\nStep: a"]);
    let second = Oid(world.head());
    world.git(&["commit", "--quiet", "--allow-empty", "--message", "third"]);

    let commits = repository.commits_since(Some(&base)).unwrap();

    assert_eq!(commits.iter().map(|commit| commit.subject.as_str()).collect::<Vec<_>>(), ["second", "third"]);
    assert_eq!((&commits[0].oid, commits[0].parents.as_slice()), (&second, &[base.clone()][..]));
    assert_eq!((commits[0].trailer("run"), commits[0].trailer("Step"), commits[0].trailer("x")), (Some("run_1"), Some("a"), None));
    assert_eq!(commits[1].trailers, []);
    assert_eq!(repository.commits_since(None).unwrap().len(), 3);
    assert!(repository.is_ancestor(&base, &second).unwrap());
    assert!(!repository.is_ancestor(&second, &base).unwrap());
}

#[test]
fn before_the_first_commit_there_are_none() {
    assert_eq!(World::unborn().repository().commits_since(None).unwrap(), []);
    assert_eq!(World::unborn().repository().commits_that_changed(&RepoPath::parse("a"), 5).unwrap(), []);
}

#[test]
fn commits_that_changed_a_path_are_told_newest_first_from_every_branch_and_a_path_is_no_pattern() {
    let world = World::new();
    for (name, text, message) in [("a*", "1", "first"), ("ab", "1", "another"), ("a*", "2", "second")] {
        world.write(name, text);
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "--message", message]);
    }
    world.git(&["checkout", "--quiet", "-b", "side"]);
    world.write("a*", "3");
    world.git(&["commit", "--quiet", "--all", "--message", "aside\n\nRun: run_1"]);
    world.git(&["checkout", "--quiet", "-"]);
    let repository = world.repository();

    let commits = repository.commits_that_changed(&RepoPath::parse("a*"), 5).unwrap();

    let mut subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(repository.commits_that_changed(&RepoPath::parse("a*"), 1).unwrap().len(), 1);
    // Commits of one second are in any order.
    subjects.sort_unstable();
    assert_eq!(subjects, ["aside", "first", "second"]);
    assert_eq!(commits.iter().find_map(|commit| commit.trailer("Run")), Some("run_1"));
}

#[test]
fn a_base_that_does_not_exist_is_an_error() {
    let world = World::new();

    assert!(world.repository().commits_since(Some(&Oid("1".repeat(40)))).is_err());
}

#[test]
fn a_commit_whose_trailers_a_hook_took_is_known_by_its_tree_and_parent() {
    let world = World::new();
    world.write(".gitattributes", "*.txt text eol=crlf\n");
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message", "attributes"]);
    let repository = world.repository();
    let parent = Oid(world.head());
    world.hook("commit-msg", "echo rewritten > \"$1\"");
    world.write("x.txt", "a\r\n");
    world.remove("kept");
    let named = paths(&["x.txt", "kept"]);
    world.commit(&repository, &named);

    let expected = repository.tree_with(Some(&parent), &named).unwrap();

    let commits = repository.commits_since(Some(&parent)).unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!((commits[0].subject.as_str(), &commits[0].tree, commits[0].parents.as_slice()), ("rewritten", &expected, &[parent][..]));
}

//! The files of memory: what hand edits, merges, kills and other programs leave in them.

use std::fs;

use proctor_testkit::World;

use crate::memory::{FAILS, WORKS, ids};
use crate::world;

#[test]
fn a_file_that_git_could_not_merge_is_refused_and_never_written() {
    let world = world();
    let _ = world.proctor(&FAILS).expect_code(0);
    world.commit_all("Remember");
    world.git(&["checkout", "--quiet", "-b", "other"]);
    let _ = world.proctor(&["memory", "add", "fails", "--route", "theirs", "--observation", "x"]).expect_code(0);
    world.commit_all("Theirs");
    world.git(&["checkout", "--quiet", "main"]);
    let _ = world.proctor(&["memory", "add", "fails", "--route", "ours", "--observation", "y"]).expect_code(0);
    world.commit_all("Ours");
    let merged = world.try_git(&["merge", "other"]);
    assert_eq!(merged.code, Some(1), "{merged}");
    let text = world.read("proctor/memory/fails.md");

    let add = world.proctor(&["memory", "add", "fails", "--route", "more", "--observation", "z"]).expect_code(4);
    let doctor = world.proctor(&["memory", "doctor"]).expect_code(1);

    assert!(add.stderr.contains("it has the marks of a merge that git left to you"), "{add}");
    assert_eq!(world.read("proctor/memory/fails.md"), text);
    assert!(doctor.stdout.contains("fails.md: damage: it has the marks of a merge"), "{doctor}");
    let resolved: String = text.split_inclusive('\n').filter(|line| !line.starts_with(['<', '=', '>']) || line.starts_with("<!")).collect();
    world.write("proctor/memory/fails.md", resolved);
    assert_eq!(ids(&world).len(), 3, "the lines of both sides");
    let _ = world.proctor(&["memory", "doctor"]).expect_code(0);
}

#[test]
fn doctor_names_each_problem_with_its_line() {
    let world = world().with_file("proctor/memory/works.md", "- route: no trap\n- route: a | trap: b | scope: Everywhere\n");

    let output = world.proctor(&["memory", "doctor"]).expect_code(1);
    let object = world.proctor(&["memory", "doctor", "--json", "--project"]).expect_code(1).json();
    let listed = world.proctor(&["memory", "list"]).expect_code(0);

    assert!(
        output.stdout.contains("works.md:1: wrong: mem_") && output.stdout.contains("a route without a trap is documentation"),
        "{output}"
    );
    assert!(output.stdout.contains("`Everywhere` is no scope: one of local, version-bound, general"), "{output}");
    assert_eq!((&object["verdict"], object["folders"][0]["problems"].as_array().map(Vec::len)), (&"wrong".into(), Some(4)));
    assert!(listed.stderr.contains("1 line is no record"), "{listed}");
}

/// The arguments of a command, in a world.
type Command<'a> = &'a dyn Fn(&World) -> Vec<String>;

/// What a killed command left is looked at by the next one.
#[test]
fn a_kill_at_each_point_of_a_change_loses_nothing() {
    let log = |world: &World| world.root().join("points");
    let counted = |arguments: Command<'_>| {
        let mut world = proposed();
        let arguments = arguments(&world);
        world.set_variable("PROCTOR_KILLPOINT_LOG", log(&world));
        let _ = world.proctor(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).expect_code(0);
        fs::read_to_string(log(&world)).unwrap().lines().count()
    };
    let commands: [Command<'_>; 4] = [
        &|_| FAILS.map(str::to_owned).to_vec(),
        &|world| vec!["memory".into(), "approve".into(), ids(world)[0].clone()],
        &|world| vec!["memory".into(), "reject".into(), ids(world)[1].clone()],
        &|world| vec!["memory".into(), "forget".into(), ids(world)[1].clone()],
    ];
    for (command, expected_points) in commands.iter().zip([2, 4, 4, 2]) {
        let points = counted(command);
        assert_eq!(points, expected_points);
        for point in 1..=points {
            let mut world = proposed();
            let arguments = command(&world);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let before = ids(&world);
            world.set_variable("PROCTOR_KILLPOINT", format!("driver:{point}"));
            let killed = world.proctor(&arguments);
            assert_eq!(killed.code, None, "{arguments:?} at {point}: {killed}");
            world.remove_variable("PROCTOR_KILLPOINT");

            let after = ids(&world);
            let diagnosis = world.proctor(&["memory", "doctor"]).stdout;

            for id in after.iter().filter(|id| texts(&world).matches(&format!("id={id}")).count() > 1) {
                assert!(diagnosis.contains(id.as_str()), "{arguments:?} at {point}: {id} is in two files: {diagnosis}");
            }
            let may_be_gone = arguments[1] == "forget";
            assert!(may_be_gone || before.iter().all(|id| after.contains(id)), "{arguments:?} at {point}: {before:?} {after:?}");
            let again = world.proctor(&arguments);
            assert!(again.code == Some(0) || may_be_gone && again.code == Some(2), "{arguments:?} at {point}: {again}");
            let texts = texts(&world);
            for id in ids(&world) {
                assert_eq!(texts.matches(&format!("id={id}")).count(), 1, "{arguments:?} at {point}: {texts}");
            }
            let leftovers = fs::read_dir(world.repository().join("proctor/memory")).unwrap().flatten();
            assert!(leftovers.filter(|entry| entry.path().extension().is_some_and(|end| end == "tmp")).count() <= 1);
        }
    }
}

/// What all files say.
fn texts(world: &World) -> String {
    let path = |name: &str| world.repository().join("proctor/memory").join(name);
    ["works.md", "fails.md", "pending.md"].iter().filter_map(|name| fs::read_to_string(path(name)).ok()).collect()
}

/// A world with one proposed record and one that counts.
fn proposed() -> World {
    let mut world = world();
    world.set_variable("PROCTOR_SESSION", "ses_0000000001");
    let _ = world.proctor(&WORKS).expect_code(0);
    world.remove_variable("PROCTOR_SESSION");
    let _ = world.proctor(&["memory", "add", "fails", "--route", "guess", "--observation", "wrong"]).expect_code(0);
    world
}

#[test]
fn many_commands_at_once_lose_nothing() {
    let world = world();
    let running: Vec<_> = (0..12)
        .map(|number| world.start(&["memory", "add", "fails", "--route", &format!("route {number}"), "--observation", "x"]))
        .collect();

    for command in running {
        let _ = command.wait(std::time::Duration::from_secs(60)).expect_code(0);
    }

    assert_eq!(ids(&world).len(), 12);
}

const CHECKPOINT: &str = "---\nproject: acorn\nagent: claude\ncheckpointed: 2026-08-29T10:11:12Z\n---\n\n## Didn't work\n\n\
- route: pin the base | layer: environment\n- retries made it worse\n- nothing so far\n";

#[test]
fn a_vault_comes_in_once_and_goes_out_again() {
    let world = world();
    let vault = world.root().join("vault");
    world.write(
        vault.join("memories/procedure.md"),
        "- route: a | trap: b <!-- logos id=7 conf=0.85 sal=0.7 src=mcp created=2026-01-02 uses=0 -->\n- no trap\n",
    );
    world.write(vault.join("memories/fact.md"), "- the sky is blue <!-- logos id=1 -->\n");
    world.write(vault.join("sessions/acorn/20260829-101112-claude.md"), CHECKPOINT);
    let path = vault.to_str().unwrap().to_owned();

    let dry = world.proctor(&["memory", "import", &path, "--user", "--dry-run"]).expect_code(0);
    let first = world.proctor(&["memory", "import", &path, "--user"]).expect_code(0);
    let second = world.proctor(&["memory", "import", &path, "--user", "--json"]).expect_code(0).json();

    assert!(dry.stderr.contains("3 records would be taken into the user memory"), "{dry}");
    assert!(first.stderr.contains("3 records are taken into the user memory"), "{first}");
    assert!(first.stderr.contains("memories/procedure.md:2 is not taken in: a route without a trap"), "{first}");
    assert!(first.stderr.contains("1 record of other kinds left alone"), "{first}");
    assert_eq!((&second["known"], second["added"].as_array().map(Vec::len), &second["placeholders"]), (&3.into(), Some(0), &1.into()));
    let out = world.root().join("out");
    let exported = world.proctor(&["memory", "export", out.to_str().unwrap()]).expect_code(0);
    assert_eq!(exported.stdout.lines().count(), 2, "{exported}");
    let text = fs::read_to_string(out.join("sessions/acorn/20260829-101112-claude.md")).unwrap();
    assert!(text.ends_with("- route: pin the base | layer: environment\n- retries made it worse\n"), "{text}");
    let refused = world.proctor(&["memory", "export", out.to_str().unwrap()]).expect_code(4);
    assert!(refused.stderr.contains("is there already"), "{refused}");
}

#[test]
fn a_list_comes_in_and_goes_out() {
    let world = world().with_file("tried.md", "# Tried\n- retries made it worse\n- route: a | trap: b\n");

    let _ = world.proctor(&["memory", "import", "tried.md"]).expect_code(0);
    let list = world.proctor(&["memory", "export", "--list"]).expect_code(0).stdout;

    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("- retries made it worse <!-- proctor id=mem_"), "{list}");
    world.write("list.md", &list);
    let again = world.proctor(&["memory", "import", "list.md"]).expect_code(0);
    assert!(again.stderr.contains("2 were there already"), "{again}");
    let unknown = world.proctor(&["memory", "import", "."]).expect_code(2);
    assert!(unknown.stderr.contains("is neither a vault of Logos"), "{unknown}");
}

#[test]
fn an_index_is_kept_for_the_next_search_and_follows_every_change() {
    let world = world();
    let _ = world.proctor(&FAILS).expect_code(0);
    let ask = || world.proctor(&["memory", "try", "cache the image by tag"]).expect_code(0).stdout;
    let cache = world.home().join(".cache/proctor/memory");

    let first = ask();

    // A program that was built with the model of meaning keeps vectors beside it.
    let kept = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
    let indexes: Vec<_> = kept.filter(|path| path.extension().is_some_and(|ending| ending == "index")).collect();
    assert_eq!(indexes.len(), 1, "{indexes:?}");
    assert_eq!(ask(), first);
    let path = "proctor/memory/fails.md";
    world.write(path, world.read(path).replace("the old image was used", "the new image was used"));
    assert!(ask().contains("seen: the new image was used"));
    fs::remove_dir_all(&cache).unwrap();
    world.write(&cache, "in the way");
    assert!(ask().contains("seen: the new image was used"));
}

/// Two people changed the same line and others, and git was told to keep the lines of both.
#[test]
fn a_union_merge_of_two_edits_of_one_record_loses_neither_and_is_named() {
    let path = "proctor/memory/fails.md";
    let mut world = world().with_file(".gitattributes", "*.md merge=union\n");
    let _ = world.proctor(&FAILS).expect_code(0);
    world.commit_all("base");
    let id = ids(&world)[0].clone();
    let edit = |world: &World, seen: &str, route: &str| {
        world.write(path, world.read(path).replace("the old image was used", seen));
        let _ = world.proctor(&["memory", "add", "fails", "--route", route, "--observation", "x"]).expect_code(0);
        world.commit_all(seen);
    };
    let _ = world.git(&["checkout", "-q", "-b", "other"]);
    edit(&world, "it was a week old", "theirs");
    let _ = world.git(&["checkout", "-q", "-"]);
    edit(&world, "it was a month old", "ours");
    let _ = world.git(&["merge", "-q", "--no-edit", "other"]);
    assert_eq!(world.read(path).matches(&format!("id={id}")).count(), 2);

    let doctor = world.proctor(&["memory", "doctor"]).expect_code(1);
    let listed = world.proctor(&["memory", "list"]).expect_code(0).stdout;
    let tried = world.proctor(&["memory", "try", "cache the image by tag"]).expect_code(0).stdout;

    assert!(doctor.stdout.contains("its id is that of fails.md"), "{doctor}");
    for seen in ["it was a week old", "it was a month old"] {
        assert!(listed.contains(seen) && tried.contains(seen), "{seen}: {listed}{tried}");
    }
    let shown: Vec<String> = ids(&world);
    world.set_variable("PROCTOR_SESSION", "ses_0000000001");
    let _ = world.proctor(&WORKS).expect_code(0);
    world.remove_variable("PROCTOR_SESSION");
    assert!(shown.iter().all(|id| ids(&world).contains(id)), "an id that was shown stays that of its record");
    let after = world.read(path);
    let _ = world.proctor(&["memory", "add", "fails", "--route", "one more", "--observation", "x"]).expect_code(0);
    assert!(["it was a week old", "it was a month old", "theirs", "ours"].iter().all(|said| world.read(path).contains(said)), "{after}");
    let _ = world.proctor(&["memory", "doctor"]).expect_code(0);
}

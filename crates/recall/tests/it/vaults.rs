//! Vaults of Logos and lists come in and go out without loss.

use std::fs;
use std::path::Path;

use proctor_domain::Timestamp;
use proctor_recall::logos::{import, read_list, write_list, write_vault};
use proctor_recall::{Approval, Dependency, Effect, Entry, FileKind, Line, Polarity, Record, Said};

use crate::{Scene, fails, works};

const PROCEDURE: &str = "---\ntype: memory-store\nkind: procedure\ncount: 2\n---\n\n\
- route: run it | grep ok | trap: the `&amp;` | layer: Design | mood: good <!-- logos id=12 conf=0.85 sal=0.70 src=mcp created=2026-01-02T03:04:05Z uses=3 used=2026-01-03 project=acorn agent=Claude Code pin=1 -->\n\
- no trap here <!-- logos id=13 conf=0.9 sal=0.5 src=manual created=2026-01-02 uses=0 -->\n";

const CHECKPOINT: &str = "---\ntype: checkpoint\ntitle: \"Release\"\nproject: acorn\nagent: \"claude\"\nsession: abc\ncommit: 1234567\n\
worktree: side\ncheckpointed: 2026-08-29T10:11:12Z\n---\n\n## Task\n\n- ship it\n\n## Didn't work\n\n- route: pin the base image | layer: environment | degree: partial\n\
- caching the layer made things worse | twice\n- None so far.\n\n## Next\n\n- sleep\n";

fn vault(root: &Path) {
    fs::create_dir_all(root.join("memories")).unwrap();
    fs::create_dir_all(root.join("sessions/acorn/side")).unwrap();
    fs::write(root.join("memories/procedure.md"), PROCEDURE).unwrap();
    fs::write(root.join("memories/fact.md"), "- the sky is blue <!-- logos id=1 -->\n- so is the sea\n").unwrap();
    fs::write(root.join("sessions/acorn/side/20260829-101112-claude.md"), CHECKPOINT).unwrap();
    fs::write(root.join("sessions/acorn/side/index.md"), "## Didn't work\n\n- not a checkpoint\n").unwrap();
}

fn into(scene: &Scene, lines: &[Line]) {
    scene
        .folder
        .change(Effect::Write, |contents| lines.iter().map(|line| contents.add(line.clone())).collect::<Result<Vec<_>, _>>())
        .unwrap();
}

fn write_to(root: &Path, scene: &Scene) {
    let contents = scene.folder.read().unwrap();
    let entries: Vec<&Entry> = contents.entries().collect();
    for file in write_vault(&entries) {
        let path = root.join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file.text).unwrap();
    }
}

#[test]
fn a_vault_gives_its_procedures_and_dead_ends_and_says_what_it_left() {
    let root = tempfile::tempdir().unwrap();
    vault(root.path());

    let import = import(root.path(), None).unwrap();

    assert_eq!((import.foreign, import.placeholders, import.skipped.len(), import.found.len()), (2, 1, 1, 3));
    assert_eq!((import.skipped[0].place.as_str(), import.skipped[0].text.as_str()), ("memories/procedure.md:8", "no trap here"));
    let procedure = &import.found[0].record;
    assert_eq!((procedure.route.as_str(), procedure.trap.as_deref()), ("run it | grep ok", Some("the `&amp;`")));
    assert_eq!((procedure.layer.as_ref().map(Said::word), procedure.agent.as_deref()), (Some("Design"), Some("Claude Code")));
    assert_eq!(import.found[0].remarks.len(), 2);
    let typed = &import.found[1].record;
    assert_eq!(
        (typed.route.as_str(), typed.project.as_deref(), typed.worktree.as_deref()),
        ("pin the base image", Some("acorn"), Some("side"))
    );
    assert_eq!((typed.agent.as_deref(), typed.commit.as_deref()), (Some("claude"), Some("1234567")));
    assert_eq!(typed.created, Some(Timestamp(1_787_998_272_000)));
    let prose = &import.found[2].record;
    assert!(prose.is_prose());
    assert_eq!(prose.route, "caching the layer made things worse | twice");
}

#[test]
fn a_vault_that_came_in_goes_out_line_by_line_as_it_was() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    vault(first.path());
    let scene = Scene::new();
    into(&scene, &import(first.path(), None).unwrap().found);

    write_to(second.path(), &scene);

    let bullets = |root: &Path, file: &str| {
        let text = fs::read_to_string(root.join(file)).unwrap();
        text.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let procedures = bullets(second.path(), "memories/procedure.md");
    let pairs = |line: &str| {
        let (body, comment) = line.split_once(" <!-- logos ").unwrap();
        let mut pairs: Vec<String> = comment.trim_end_matches(" -->").split(' ').map(str::to_owned).collect();
        pairs.sort();
        (body.to_owned(), pairs)
    };
    assert_eq!(procedures.len(), 1);
    assert_eq!(pairs(&procedures[0]), pairs(&bullets(first.path(), "memories/procedure.md")[0]));
    let checkpoint = bullets(second.path(), "sessions/acorn/side/20260829-101112-claude.md");
    assert_eq!(checkpoint, bullets(first.path(), "sessions/acorn/side/20260829-101112-claude.md")[1..3]);
}

#[test]
fn our_records_come_back_from_a_vault_as_they_were() {
    let scene = Scene::new();
    let old = scene.add(works("first"));
    scene.add(Record {
        verify: Some("a | b --> c\nsecond line".to_owned()),
        files: vec!["src/a b.rs".to_owned()],
        dependencies: vec![Dependency::parse("serde@1.0")],
        session: Some("ses_1".to_owned()),
        supersedes: Some(old),
        ..works("plain &amp; <!-- odd")
    });
    scene.add(Record { alternative: Some("x | trap: y".to_owned()), files: vec!["b".to_owned()], ..fails("a \"quoted\" \\ route") });
    scene.add(Record { agent: Some("a/../b c".to_owned()), project: Some("../../up".to_owned()), ..fails("from elsewhere") });
    let root = tempfile::tempdir().unwrap();

    write_to(root.path(), &scene);

    let copy = Scene::new();
    into(&copy, &import(root.path(), None).unwrap().found);
    let sorted = |scene: &Scene| {
        let mut records: Vec<Record> = scene.folder.read().unwrap().entries().map(|entry| entry.record.clone()).collect();
        records.sort_by(|left, right| left.id.cmp(&right.id));
        records
    };
    let unnamed = |records: Vec<Record>| records.into_iter().map(|record| Record { other: Vec::new(), ..record }).collect::<Vec<_>>();
    assert_eq!(unnamed(sorted(&copy)), sorted(&scene));
    assert!(!root.path().parent().unwrap().join("up").exists());
}

#[test]
fn a_list_gives_a_record_a_line() {
    let text = "# What we tried\n\n- the cache | made it worse\n* route: pin it | trap: it drifts\n3. numbered\nbare line\n---\n<!-- hidden\n- not this\n-->\nn/a\n";

    let import = read_list("list.md", text, None);

    let found: Vec<(&str, Polarity)> = import.found.iter().map(|line| (line.record.route.as_str(), line.record.polarity)).collect();
    assert_eq!(
        found,
        [
            ("the cache | made it worse", Polarity::Fails),
            ("pin it", Polarity::Works),
            ("numbered", Polarity::Fails),
            ("bare line", Polarity::Fails)
        ]
    );
    assert_eq!(import.placeholders, 1);
    let works = read_list("list.md", "- no trap\n", Some(Polarity::Works));
    assert!(works.skipped[0].why.starts_with("a route without a trap is documentation"));
}

#[test]
fn a_list_that_we_wrote_comes_back_with_its_metadata() {
    let scene = Scene::new();
    scene.add(Record { verify: Some("a | b".to_owned()), agent: Some("claude".to_owned()), ..works("first") });
    scene.add(fails("second\nline"));
    let list = write_list(scene.folder.read().unwrap().entries());
    let copy = Scene::new();

    into(&copy, &read_list("list.md", &list, None).found);

    let records = |scene: &Scene| scene.folder.read().unwrap().entries().map(|entry| entry.record.clone()).collect::<Vec<_>>();
    assert_eq!(records(&copy), records(&scene));
}

#[test]
fn the_same_vault_twice_adds_nothing() {
    let root = tempfile::tempdir().unwrap();
    vault(root.path());
    let scene = Scene::new();
    let found = import(root.path(), None).unwrap().found;
    into(&scene, &found);
    let before = scene.routes();

    into(&scene, &found);

    assert_eq!(scene.routes(), before);
}

#[test]
fn what_comes_into_a_repository_twice_is_there_once() {
    let scene = Scene::new();
    let lines = read_list("tried.md", "- retries made it worse\n- route: a | trap: b\n- route: a | trap: b\n", None).found;

    into(&scene, &lines);
    into(&scene, &lines);

    assert_eq!(scene.routes().len(), 2, "{:?}", scene.routes());
}

#[test]
fn our_own_files_are_read_as_such_and_damaged_ones_are_refused() {
    let scene = Scene::new();
    scene.add(fails("a"));
    scene.add(works("b"));
    scene.add(Record { approval: Approval::Proposed, ..works("c") });
    let routes = |path: &Path| {
        let import = import(path, None).unwrap();
        assert_eq!(import.skipped, []);
        import.found.iter().map(|line| line.record.route.clone()).collect::<Vec<_>>()
    };

    assert_eq!(routes(scene.folder.path()), ["c", "b", "a"]);
    assert_eq!(routes(&scene.folder.file(FileKind::Works)), ["b"]);
    let copy = scene.root().join("copy.md");
    fs::copy(scene.folder.file(FileKind::Works), &copy).unwrap();
    assert_eq!(import(&copy, None).unwrap().found[0].record.polarity, Polarity::Works);
    assert_eq!(routes(&copy), ["b"]);
    let whole = scene.text(FileKind::Fails);
    let merged = format!("<<<<<<< ours\n{whole}=======\n>>>>>>> theirs\n");
    for damaged in [merged, whole.replace("<!-- end of memory -->\n", "")] {
        scene.write(FileKind::Fails, damaged);
        for path in [scene.folder.path().to_owned(), scene.folder.file(FileKind::Fails)] {
            assert!(import(&path, None).unwrap_err().to_string().contains("fails.md can't be used"), "{}", path.display());
        }
    }
}

#[test]
fn what_was_proposed_or_rejected_comes_back_as_that() {
    let scene = Scene::new();
    let from = Some("logos:memories/procedure.md".to_owned());
    for approval in [Approval::Active, Approval::Proposed, Approval::Rejected] {
        scene.add(Record { approval, ..fails(approval.word()) });
        scene.add(Record { approval, from: from.clone(), ..works(approval.word()) });
    }
    let contents = scene.folder.read().unwrap();
    let vault = tempfile::tempdir().unwrap();
    write_to(vault.path(), &scene);

    for import in [read_list("list.md", &write_list(contents.entries()), None), import(vault.path(), None).unwrap()] {
        assert_eq!(import.found.len(), 6);
        assert!(import.found.iter().all(|line| line.record.approval.word() == line.record.route), "{:?}", import.found);
    }
}

#[test]
fn only_ordinary_files_of_a_bounded_size_come_in() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("list.md");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let long = folder.path().join("long.md");
    fs::File::create(&long).unwrap().set_len(1 << 40).unwrap();

    assert!(import(&socket, None).unwrap_err().to_string().ends_with("is no ordinary file"));
    assert!(import(Path::new("/dev/zero"), None).unwrap_err().to_string().ends_with("is no ordinary file"));
    assert!(import(&long, None).unwrap_err().to_string().contains("is longer than"));
}

/// Everything that a record can carry besides its line, each with a way out of the frame that it is exported in.
#[test]
fn no_text_of_a_record_leaves_its_frame_in_a_vault() {
    let outs = [
        "x\n---\n\n## Didn't work\n\n- route: planted | observation: y",
        "x -->\n- route: planted | trap: y <!-- logos id=1",
        "x --> <!-- logos project=planted",
        "x project=planted proctor.approval=rejected",
        "x proctor.id=mem_0000000009",
        "a \"quoted\" \\ back\\nslash\ttab\\U0000000A \u{202e}end\u{2028}",
        " two  spaces ",
    ];
    for out in outs {
        let scene = Scene::new();
        let carry = |record: Record| Record {
            project: Some(out.to_owned()),
            worktree: Some(out.to_owned()),
            agent: Some(out.to_owned()),
            session: Some(out.to_owned()),
            commit: Some(out.to_owned()),
            other: vec![("logos.src".to_owned(), out.to_owned()), ("logos.uses".to_owned(), "3".to_owned())],
            ..record
        };
        scene.add(carry(works("first")));
        scene.add(carry(fails("second")));
        scene.add(carry(Record { from: Some(format!("logos:{}", "memories/procedure.md")), ..works("third") }));
        scene.add(carry(Record { from: Some(format!("logos:sessions/a/{out}.md")), ..fails("fourth") }));
        scene.add(carry(Record { from: Some(format!("logos:sessions/a/20260829-{out}.md")), ..fails("fifth") }));
        let root = tempfile::tempdir().unwrap();
        write_to(root.path(), &scene);

        let import = import(root.path(), None).unwrap();

        let by_route = |mut records: Vec<Record>| {
            records.sort_by(|one, other| one.route.cmp(&other.route));
            records
        };
        // What a vault adds of its own is no part of what went out.
        let known = |record: &Record| Record { other: Vec::new(), ..record.clone() };
        let came_back = by_route(import.found.iter().map(|line| known(&line.record)).collect());
        let went = by_route(scene.folder.read().unwrap().entries().map(|entry| known(&entry.record)).collect());
        assert_eq!(came_back, went, "{out:?}");
        let src = |record: &Record| record.other.iter().find(|(name, _)| name == "logos.src").map(|(_, value)| value.clone());
        let works = import.found.iter().filter(|line| line.record.polarity == Polarity::Works);
        assert!(works.clone().count() == 2 && works.clone().all(|line| src(&line.record).as_deref() == Some(out)), "{out:?}");
    }
}

#[test]
fn what_can_not_be_seen_is_seen_in_what_goes_out_and_means_the_same() {
    let scene = Scene::new().with(FileKind::Fails, "- route: a\u{200b}b | observation: c\u{202e}d <!-- proctor id=mem_0000000001 -->\n");
    let contents = scene.folder.read().unwrap();
    let root = tempfile::tempdir().unwrap();
    write_to(root.path(), &scene);

    let list = write_list(contents.entries());

    assert!(list.starts_with("- route: a&#8203;b | observation: c&#8238;d <!-- proctor "), "{list}");
    let files = write_vault(&contents.entries().collect::<Vec<_>>());
    assert!(files.iter().all(|file| !file.text.contains(['\u{200b}', '\u{202e}'])), "{files:?}");
    for import in [read_list("list.md", &list, None), import(root.path(), None).unwrap()] {
        assert_eq!((import.found[0].record.route.as_str(), import.found.len()), ("a\u{200b}b", 1));
    }
}

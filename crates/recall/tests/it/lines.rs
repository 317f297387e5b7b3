//! Whatever a record says, its line says.

use proctor_domain::{RecordId, Timestamp};
use proctor_recall::{Action, Approval, Degree, Dependency, Evidence, FileKind, Layer, Line, Polarity, Record, Said, Scope, Word};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use crate::{Scene, works};

const CASES: u32 = 400;

/// Text that is rich in what means something to somebody.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        " | ",
        "|",
        "| ",
        " |",
        "\n",
        "\r\n",
        "-->",
        "--",
        ">",
        "<!--",
        "<!-- proctor id=x -->",
        "&",
        "&amp;",
        "&#124;",
        "&#10;",
        "route: ",
        "trap: ",
        ": ",
        "=",
        "%",
        "%2C",
        ",",
        "\\",
        "`",
        "- ",
        "#",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "é",
        "漢字",
        "𝒳",
        "a",
        "word",
        " ",
        "\u{1b}[0m",
    ]);
    vec(prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)], 1..12)
        .prop_map(|pieces| pieces.concat().trim().to_owned())
        .prop_filter("not blank", |text| !text.is_empty())
}

fn said<T: Word + std::fmt::Debug>() -> impl Strategy<Value = Option<Said<T>>> {
    let known = prop::sample::select(T::WORDS.to_vec()).prop_map(|(_, value)| Said::Known(value));
    of(known)
}

fn record() -> impl Strategy<Value = Record> {
    let texts = (text(), text(), of(text()), of(text()), of(text()));
    let words = (said::<Layer>(), said::<Scope>(), said::<Evidence>(), said::<Degree>(), said::<Action>());
    let origin = (of(text()), of(text()), of(text()), of(text()), of(text()));
    let rest = (vec(text(), 0..3), vec((text(), of(text())), 0..3), of(0..4_000_000_000_000_i64), any::<bool>(), of(any::<u64>()));
    (texts, words, origin, rest).prop_map(|(texts, words, origin, rest)| {
        let polarity = if rest.3 { Polarity::Works } else { Polarity::Fails };
        Record {
            trap: Some(texts.1.clone()).filter(|_| rest.3),
            observation: Some(texts.1).filter(|_| !rest.3),
            alternative: texts.2,
            verify: texts.3,
            layer: words.0.filter(|layer| *layer != Said::Known(Layer::Unclassified)),
            scope: words.1,
            evidence: words.2,
            degree: words.3,
            action: words.4,
            files: rest.0,
            dependencies: rest
                .1
                .into_iter()
                .map(|(name, version)| Dependency { name: name.replace('@', "a"), version: version.map(|it| it.replace('@', "a")) })
                .collect(),
            project: Some(origin.0.unwrap_or_else(|| "acorn".to_owned())),
            worktree: origin.1,
            agent: origin.2,
            session: origin.3,
            commit: origin.4,
            created: rest.2.map(Timestamp),
            supersedes: rest.4.map(RecordId::from_bits),
            ..Record::new(RecordId::from_bits(7), polarity, texts.0)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_record_is_one_line_and_the_line_is_the_record(record in record()) {
        let scene = Scene::new();

        let id = scene.add(record.clone());

        let contents = scene.folder.read().unwrap();
        let entries: Vec<_> = contents.entries().collect();
        prop_assert_eq!(entries.len(), 1);
        prop_assert_eq!(&entries[0].record, &Record { id, ..record.clone() });
        prop_assert_eq!(&entries[0].remarks, &[]);
        let file = if record.polarity == Polarity::Works { FileKind::Works } else { FileKind::Fails };
        prop_assert_eq!(scene.text(file).lines().filter(|line| line.starts_with("- ")).count(), 1);
    }

    #[test]
    fn any_text_as_prose_comes_back(text in text()) {
        let scene = Scene::new();
        let record = Record { layer: Some(Said::Known(Layer::Unclassified)), ..crate::draft(Polarity::Fails, &text) };

        let id = scene.add(record.clone());

        let contents = scene.folder.read().unwrap();
        prop_assert_eq!(contents.entries().map(|entry| entry.record.clone()).collect::<Vec<_>>(), [Record { id, ..record }]);
    }

    #[test]
    fn any_line_that_somebody_wrote_is_written_back_as_it_was(lines in vec(text(), 1..5)) {
        let text: String = lines.iter().map(|line| format!("- {}\n", line.replace(['\n', '\r'], " "))).collect();
        let scene = Scene::new().with(FileKind::Fails, &text);
        prop_assume!(scene.folder.read().is_ok());
        let before = scene.routes();

        scene.add(works("something else"));

        prop_assert_eq!(scene.routes().into_iter().filter(|route| route != "something else").collect::<Vec<_>>(), before);
    }
}

#[test]
fn an_unknown_word_is_kept_when_the_record_goes_to_another_file() {
    let line = "- route: r | trap: t | layer: Design | colour: blue | grep <!-- proctor id=mem_0000000001 mood=fine created=soon -->\n";
    let scene = Scene::new().with(FileKind::Pending, line);
    let id = RecordId::from_bits(1);

    scene.folder.change(proctor_recall::Effect::Write, |contents| contents.set_approval(&id, Approval::Active)).unwrap();

    let text = scene.text(FileKind::Works);
    assert!(
        text.contains(
            "- route: r | trap: t | layer: Design | colour: blue | grep <!-- proctor id=mem_0000000001 mood=fine created=soon -->"
        ),
        "{text}"
    );
    let contents = scene.folder.read().unwrap();
    let entry = contents.entries().next().unwrap();
    assert_eq!(entry.record.layer, Some(Said::Unknown("Design".to_owned())));
    assert_eq!(entry.remarks.len(), 3, "{:?}", entry.remarks);
}

#[test]
fn the_form_of_a_line_is_what_the_documentation_says() {
    let record = Record {
        trap: Some("the tag is lost".to_owned()),
        verify: Some("git tag | grep v1".to_owned()),
        layer: Some(Said::Known(Layer::Environment)),
        scope: Some(Said::Known(Scope::VersionBound)),
        evidence: Some(Said::Known(Evidence::Verified)),
        files: vec!["a b.rs".to_owned(), "c,d.rs".to_owned()],
        dependencies: vec![Dependency::parse("git@2.40")],
        project: Some("acorn".to_owned()),
        agent: Some("claude".to_owned()),
        created: Some(Timestamp(1_764_000_000_000)),
        ..Record::new(RecordId::from_bits(1), Polarity::Works, "rebase before the release")
    };

    assert_eq!(
        Line::of(record).text(),
        "- route: rebase before the release | trap: the tag is lost | verify: git tag &#124; grep v1 | layer: environment \
         | scope: version-bound | evidence: verified <!-- proctor id=mem_0000000001 created=2025-11-24T16:00:00Z project=acorn agent=claude \
         files=a%20b.rs,c%2Cd.rs deps=git@2.40 -->"
    );
}

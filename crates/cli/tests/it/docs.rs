use proctor::args::CommandLine;
use proctor::docs;

#[test]
fn the_reference_has_every_command_and_every_flag() {
    use clap::CommandFactory;
    fn check(command: &clap::Command, path: &str, reference: &str) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            assert!(reference.contains(&format!("## `{path}`\n")), "{path}");
            for flag in inner.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(reference.contains(&format!("--{flag}")), "{path} --{flag}");
            }
            check(inner, &path, reference);
        }
    }

    check(&CommandLine::command(), "proctor", &docs::cli_reference());
}

#[test]
fn usage_lines_name_the_whole_command() {
    let reference = docs::cli_reference();

    assert!(reference.contains("```text\nproctor procedure show [OPTIONS] <NAME|PATH>\n```"), "{reference}");
}

#[test]
fn tables_are_not_broken_by_what_is_in_them() {
    for document in [docs::cli_reference(), docs::card_reference(), docs::exit_codes(), docs::environment(), docs::settings()] {
        let mut columns = None;
        for line in document.lines() {
            let bars = line.replace("\\|", "").matches('|').count();
            columns = line.starts_with('|').then(|| *columns.get_or_insert(bars));
            assert!(columns.is_none_or(|columns| columns == bars), "{line}");
        }
    }
}

#[test]
fn the_page_about_engines_says_what_the_program_does() {
    let page = include_str!("../../../../docs/engines.md");

    for table in [docs::capabilities(), docs::tiers()] {
        assert!(page.contains(&table), "{table}");
    }
}

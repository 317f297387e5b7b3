use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use insta::assert_snapshot;
use proctor_testkit::wait_for;
use rustix::process::Signal;

use crate::world;

const LIMIT: Duration = Duration::from_secs(20);

fn ask(port: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", port.trim())).unwrap();
    let length = body.len();
    write!(stream, "POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_script_with_a_mistake_is_named_with_the_place() {
    let world = world().with_file("model.toml", "[[scenario]]\nmatch = 'a'\ntext = 'b'\n");

    assert_snapshot!(world.proctor(&["dev", "model", "--script", "model.toml"]).snapshot(), @"
    exit 2
    --- stderr
    error: the script [root]/repository/model.toml can't be used
      because line 3, column 1: unknown field `text`, expected one of `name`, `match`, `side`, `turn`
    ");
}

#[test]
fn a_script_that_is_not_there_is_named() {
    assert_snapshot!(world().proctor(&["dev", "model", "--script", "model.toml"]).snapshot(), @"
    exit 2
    --- stderr
    error: failed to read the script [root]/repository/model.toml
      because No such file or directory (os error 2)
    ");
}

#[test]
fn it_listens_says_so_answers_and_ends_at_a_signal() {
    let world = world().with_file("model.toml", "[[default.turn]]\ntext = 'hello from a script'\n");
    let model = world.start(&["dev", "model", "--script", "model.toml", "--port-file", "port"]);
    wait_for("the port", LIMIT, || world.has("port") && model.stdout_so_far().contains("DISABLE_AUTOUPDATER"));
    let port = world.read("port");

    let answer = ask(&port, r#"{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Bash"}]}"#);
    model.signal(Signal::TERM);
    let ended = model.wait(LIMIT).expect_code(0);

    assert!(answer.contains("hello from a script"), "{answer}");
    assert!(ended.stdout.starts_with(&format!("listening on http://127.0.0.1:{}\n", port.trim())), "{}", ended.stdout);
    assert!(ended.stdout.contains("export ANTHROPIC_API_KEY=dummy\n"));
}

#[test]
fn the_example_is_a_script_and_the_one_that_is_used_without() {
    let world = world();
    let example = world.proctor(&["dev", "model", "--example"]).expect_code(0).stdout;
    let model = world.start(&["dev", "model", "--port-file", "port"]);
    wait_for("the port", LIMIT, || world.has("port"));

    let answer = ask(&world.read("port"), r#"{"messages":[{"role":"user","content":"hello.txt"}],"tools":[{"name":"Bash"}]}"#);
    model.signal(Signal::INT);
    let _ = model.wait(LIMIT).expect_code(0);

    assert!(example.contains("I will write the file.") && answer.contains("I will write the file."), "{example}\n{answer}");
}

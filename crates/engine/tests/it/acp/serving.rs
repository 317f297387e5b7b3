//! What an agent asks of files and terminals, answered in its session by the process beside it. The agent is a bash text that
//! says one line after the other and writes down what both sides said; all of that is held against the protocol.

use std::path::Path;

use proctor_domain::session::{SessionEnd, SessionReport};
use proctor_engine::agent::{Access, AgentTask, EngineKind, EngineSetup, Permission, engine};
use proctor_engine::tools::ToolServer;
use proctor_engine::{AgentPlace, AgentRun, Found, SessionWork, TRANSCRIPT, agent_files};
use proctor_process::durable::{self, Durability};
use proctor_process::{ProcessIdentity, Signal};
use serde_json::{Value, json};

use super::schema::{Protocol, Side};
use crate::world::{DEAF, LIMIT, World, ended, host_program, is_gone, wait, world};

/// `hear` waits for what the client says next, `meet` until somebody opens the named pipe `meeting`.
const AGENT: &str = r#"
hear() { IFS= read -r heard || exit 0; printf 'client %s\n' "$heard" >> "$0.both"; }
say() { printf 'agent %s\n' "$1" >> "$0.both"; printf '%s\n' "$1"; }
hear; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"NAME","version":"1"}}}'
hear; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}'
hear
while IFS= read -r line <&3; do
  case $line in hear) hear ;; meet) : < meeting ;; *) say "$line" ;; esac
done 3< "$0.lines"
say '{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}'
hear
"#;

/// A session with an agent that makes these requests.
struct Asking {
    world: World,
    access: Access,
    permission: Permission,
    name: &'static str,
    lines: Vec<String>,
    asked: usize,
}

/// What came of it: what was answered, in the order of the requests.
struct Answered {
    world: World,
    report: SessionReport,
    /// What the client said it can do.
    capabilities: Value,
    answers: Vec<Value>,
}

impl Asking {
    fn new() -> Self {
        Self { world: world(&[]), access: Access::Full, permission: Permission::Bypass, name: "asker", lines: Vec::new(), asked: 0 }
    }

    fn with(access: Access, permission: Permission) -> Self {
        Self { access, permission, ..Self::new() }
    }

    /// Makes a request and waits for its answer.
    fn ask(self, method: &str, params: Value) -> Self {
        self.begin(method, params).then("hear")
    }

    /// Makes a request whose answer is waited for later.
    fn begin(mut self, method: &str, mut params: Value) -> Self {
        params["sessionId"] = json!("s-1");
        let request = json!({ "jsonrpc": "2.0", "id": format!("r{}", self.asked), "method": method, "params": params });
        self.asked += 1;
        self.then(&request.to_string())
    }

    fn then(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    fn tells(self, update: Value) -> Self {
        self.then(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s-1", "update": update } }).to_string())
    }

    /// Runs `text` in bash.
    fn runs(self, text: &str) -> Self {
        self.ask("terminal/create", json!({ "command": "bash", "args": ["-c", text] }))
    }

    fn of(self, method: &str, terminal: u32) -> Self {
        self.ask(method, named(terminal))
    }

    fn work(&self, name: &str) -> String {
        self.world.work(name).display().to_string()
    }

    fn has(self, name: &str, bytes: &[u8]) -> Self {
        write(&self.world.work(name), bytes);
        self
    }

    fn prepare(&mut self) {
        let script = self.world.path().join("agent");
        write(&script, AGENT.replace("NAME", self.name).as_bytes());
        write(&script.with_extension("lines"), format!("{}\n", self.lines.join("\n")).as_bytes());
        let setup = EngineSetup {
            program: "bash".into(),
            arguments: vec![script.display().to_string()],
            permission: self.permission,
            ..EngineSetup::usual(EngineKind::Acp)
        };
        let mut files = agent_files(&self.world.spec.folder, self.world.path());
        files.tools = ToolServer::of(&host_program(), &self.world.spec.folder);
        let place = AgentPlace { directory: &self.world.spec.directory, silence_limit: LIMIT };
        engine(EngineKind::Acp).prepare(&files, &|_| None).unwrap();
        self.world.spec.work = SessionWork::Agent(Box::new(AgentRun::new(&setup, &task(self.access), &files, &|_| None, place)));
    }

    fn run(mut self) -> Answered {
        self.prepare();

        let report = ended(wait(&mut self.world.start()));

        let said = std::fs::read_to_string(self.world.path().join("agent.both")).unwrap();
        let mut protocol = Protocol::new();
        let mut from_client = Vec::new();
        for line in said.lines() {
            let (side, message) = line.split_once(' ').unwrap();
            let side = if side == "client" { Side::Client } else { Side::Agent };
            let message = serde_json::from_str(message).unwrap();
            protocol.check(side, &message);
            from_client.extend((side == Side::Client).then_some(message));
        }
        let capabilities = from_client[0]["params"]["clientCapabilities"].clone();
        let answer = |message: &Value| ["result", "error"].into_iter().find_map(|key| message.get(key).cloned());
        let mut answers = vec![Value::Null; self.asked];
        for message in from_client.iter().filter(|message| message.get("method").is_none()) {
            let number: usize = message["id"].as_str().unwrap()[1..].parse().unwrap();
            answers[number] = answer(message).unwrap();
        }
        Answered { world: self.world, report, capabilities, answers }
    }
}

impl Answered {
    /// The code and the sentence of an answer that is an error.
    fn error(&self, number: usize) -> (i64, String) {
        let error = &self.answers[number];
        (error["code"].as_i64().unwrap_or_else(|| panic!("{error}")), error["message"].as_str().unwrap().to_owned())
    }
}

fn write(path: &Path, bytes: &[u8]) {
    durable::write(path, bytes, Durability::Renamed).unwrap();
}

fn named(terminal: u32) -> Value {
    json!({ "terminalId": format!("terminal-{terminal}") })
}

fn task(access: Access) -> AgentTask {
    let prompt = "Do it.".to_owned();
    AgentTask { system: String::new(), prompt, resume: None, model: None, schema: None, max_turns: None, max_cost: None, access }
}

const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

#[test]
fn a_file_is_read_whole_or_by_lines_as_they_are() {
    let asking = Asking::new().has("text", "one\ntwo\r\nthree ä".as_bytes());
    let path = asking.work("text");
    let read = |line: Value, limit: Value| json!({ "path": path, "line": line, "limit": limit });

    let answered = asking
        .ask(READ, json!({ "path": path }))
        .ask(READ, read(json!(2), json!(1)))
        .ask(READ, read(json!(2), Value::Null))
        .ask(READ, read(Value::Null, json!(2)))
        .ask(READ, read(json!(4), json!(1)))
        .ask(READ, read(json!(0), json!(0)))
        .run();

    let texts: Vec<&str> = answered.answers.iter().map(|answer| answer["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one\ntwo\r\nthree ä", "two\r\n", "two\r\nthree ä", "one\ntwo\r\n", "", ""]);
    assert_eq!(answered.report.end, SessionEnd::Completed, "{:?}", answered.report);
    assert_eq!(answered.report.agent.unwrap().unknown_lines, 0);
}

#[test]
fn what_is_no_text_file_is_an_error_that_says_why() {
    let asking = Asking::new().has("latin", b"caf\xe9\n");
    let [missing, latin, folder, large] = ["missing", "latin", "", "large"].map(|name| asking.work(name));
    std::fs::File::create(&large).unwrap().set_len(8 * 1024 * 1024 + 1).unwrap();

    let answered = asking
        .ask(READ, json!({ "path": missing }))
        .ask(READ, json!({ "path": latin }))
        .ask(READ, json!({ "path": folder }))
        .ask(READ, json!({ "path": "/dev/zero" }))
        .ask(READ, json!({ "path": large }))
        .ask(READ, json!({ "path": "text" }))
        .run();

    let expected = [
        (-32002, format!("failed to read {missing}: No such file or directory (os error 2)")),
        (-32603, format!("failed to read {latin}: it is no UTF-8 text")),
        (-32603, format!("failed to read {folder}: it is no regular file")),
        (-32603, "failed to read /dev/zero: it is no regular file".to_owned()),
        (-32603, format!("failed to read {large}: it is over 8388608 bytes; ask for a part of it by `line` and `limit`")),
        (-32602, "failed to read text: its path is not absolute".to_owned()),
    ];
    for (number, expected) in expected.into_iter().enumerate() {
        assert_eq!(answered.error(number), expected);
    }
    assert_eq!(answered.report.end, SessionEnd::Completed);
}

#[test]
fn to_an_agent_that_takes_no_error_a_missing_file_is_an_empty_one() {
    let asking = Asking { name: "gemini-cli", ..Asking::new() }.has("latin", b"caf\xe9\n");
    let (missing, latin) = (asking.work("missing"), asking.work("latin"));

    let answered = asking.ask(READ, json!({ "path": missing })).ask(READ, json!({ "path": latin })).run();

    assert_eq!((&answered.answers[0], answered.error(1).0), (&json!({ "content": "" }), -32603));
}

#[test]
fn a_file_is_written_in_its_place_and_with_its_folders() {
    let asking = Asking::new().has("old", b"much longer than it will be\n");
    let (old, new) = (asking.work("old"), asking.work("deep/er/new"));
    let before = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&old).unwrap());

    let answered = asking
        .ask(WRITE, json!({ "path": old, "content": "short\n" }))
        .ask(WRITE, json!({ "path": new, "content": "ä" }))
        .ask(WRITE, json!({ "path": "new", "content": "" }))
        .ask(WRITE, json!({ "path": "/proc/nothing/new", "content": "" }))
        .run();

    assert_eq!((&answered.answers[0], &answered.answers[1]), (&json!({}), &json!({})));
    assert_eq!((std::fs::read_to_string(&old).unwrap().as_str(), std::fs::read_to_string(&new).unwrap().as_str()), ("short\n", "ä"));
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&old).unwrap()), before);
    assert_eq!(answered.error(2), (-32602, "failed to write new: its path is not absolute".to_owned()));
    assert!(answered.error(3).1.starts_with("failed to write /proc/nothing/new: "), "{:?}", answered.error(3));
}

#[test]
fn one_that_only_looks_reads_and_is_told_that_it_does_no_more() {
    let can = |access, permission| {
        let asking = Asking::with(access, permission).has("text", b"here");
        let path = asking.work("text");
        let answered = asking
            .ask(READ, json!({ "path": path }))
            .ask(WRITE, json!({ "path": path, "content": "gone" }))
            .ask("terminal/create", json!({ "command": "true" }))
            .run();
        assert_eq!(answered.answers[0], json!({ "content": "here" }));
        let text = std::fs::read_to_string(path).unwrap();
        (answered, text)
    };
    let reads = |may_change: bool| json!({ "fs": { "readTextFile": true, "writeTextFile": may_change }, "terminal": may_change, "session": { "notices": {} } });

    for (access, permission) in
        [(Access::ReadOnly, Permission::Bypass), (Access::ReadOnly, Permission::Ask), (Access::Full, Permission::Ask)]
    {
        let (answered, text) = can(access, permission);
        assert_eq!((text.as_str(), &answered.capabilities), ("here", &reads(false)));
        assert_eq!(answered.error(1), (-32601, "this session may only look: it writes no files".to_owned()));
        assert_eq!(answered.error(2), (-32601, "this session may only look: it runs no commands".to_owned()));
    }
    let (answered, text) = can(Access::Full, Permission::Bypass);
    assert_eq!((text.as_str(), &answered.capabilities, &answered.answers[2]), ("gone", &reads(true), &named(1)));
}

#[test]
fn a_command_runs_where_it_is_told_to_and_what_it_printed_and_its_end_are_told() {
    let asking = Asking::new();
    std::fs::create_dir(asking.world.work("sub")).unwrap();
    let sub = asking.work("sub");
    let command = json!({
        "command": "bash", "args": ["-c", "echo $PWD $MINE >&2; echo out; exit 3"], "cwd": sub, "env": [{ "name": "MINE", "value": "a b" }],
    });

    let answered = asking
        .ask("terminal/create", command)
        .of("terminal/wait_for_exit", 1)
        .of("terminal/output", 1)
        .of("terminal/wait_for_exit", 1)
        .of("terminal/release", 1)
        .of("terminal/output", 1)
        .ask("terminal/create", json!({ "command": "no-such-program" }))
        .ask("terminal/create", json!({ "command": "true", "cwd": "sub" }))
        .ask("terminal/create", json!({ "command": "true", "cwd": "/no/such/folder" }))
        .run();

    let status = json!({ "exitCode": 3, "signal": null });
    let output = json!({ "output": format!("{sub} a b\nout\n"), "truncated": false, "exitStatus": status });
    assert_eq!(answered.answers[..5], [named(1), status.clone(), output, status, json!({})]);
    assert_eq!(answered.error(5), (-32602, "there is no terminal `terminal-1`, or it was released".to_owned()));
    assert!(answered.error(6).1.starts_with("failed to start no-such-program: there is no such program in "), "{:?}", answered.error(6));
    assert_eq!(answered.error(7), (-32602, "failed to run `true`: `cwd` is not absolute".to_owned()));
    assert_eq!(answered.error(8).1, "failed to start true in /no/such/folder: the directory can't be entered");
}

#[test]
fn a_command_that_is_no_programs_name_is_a_line_for_a_shell() {
    let answered = Asking::new()
        .ask("terminal/create", json!({ "command": "printf '%s-' one two | tr a-z A-Z" }))
        .of("terminal/wait_for_exit", 1)
        .of("terminal/output", 1)
        .run();

    assert_eq!(answered.answers[2]["output"], "ONE-TWO-");
}

#[test]
fn a_command_has_the_sessions_marker_and_no_key_whatever_an_agent_says() {
    let mut asking = Asking::new();
    let key = ("ANTHROPIC_API_KEY".into(), "hush".into());
    asking.world.spec.environment.push(key);
    let session = asking.world.spec.session.to_string();
    let command = json!({
        "command": "bash", "args": ["-c", "echo $PROCTOR_SESSION-$GREETING-$ANTHROPIC_API_KEY-"],
        "env": [{ "name": "PROCTOR_SESSION", "value": "mine" }],
    });

    let answered = asking.ask("terminal/create", command).of("terminal/wait_for_exit", 1).of("terminal/output", 1).run();

    assert_eq!(answered.answers[2]["output"], format!("{session}-hello--\n"));
}

#[test]
fn the_end_of_a_long_output_is_kept() {
    let command = |limit: u64| json!({ "command": "seq", "args": ["1", "100000"], "outputByteLimit": limit });

    let answered = Asking::new()
        .ask("terminal/create", command(13))
        .of("terminal/wait_for_exit", 1)
        .of("terminal/output", 1)
        .runs("head -c 3000000 /dev/zero | tr '\\0' x")
        .of("terminal/wait_for_exit", 2)
        .of("terminal/output", 2)
        .run();

    assert_eq!((&answered.answers[2]["output"], &answered.answers[2]["truncated"]), (&json!("99999\n100000\n"), &json!(true)));
    assert_eq!(answered.answers[5]["output"].as_str().unwrap().len(), 1024 * 1024);
}

#[test]
fn a_command_that_goes_on_is_read_and_killed_and_who_waits_for_its_end_hears_of_it() {
    let asking = Asking::new();
    let meeting = asking.world.work("meeting");
    make_pipe(&meeting);

    let answered = asking
        .runs("printf ready; : > meeting; exec sleep 1000")
        .then("meet")
        .of("terminal/output", 1)
        .begin("terminal/wait_for_exit", named(1))
        .begin("terminal/kill", named(1))
        .then("hear")
        .then("hear")
        .of("terminal/output", 1)
        .run();

    let status = json!({ "exitCode": null, "signal": "SIGTERM" });
    assert_eq!(answered.answers[1], json!({ "output": "ready", "truncated": false }));
    assert_eq!((&answered.answers[2], &answered.answers[3]), (&status, &json!({})));
    assert_eq!(answered.answers[4], json!({ "output": "ready", "truncated": false, "exitStatus": status }));
}

#[test]
fn a_command_that_does_not_end_when_it_is_asked_is_made_to() {
    let asking = Asking::new();
    make_pipe(&asking.world.work("meeting"));

    let answered = asking
        .runs(&format!("trap '' TERM; : > meeting; {DEAF}"))
        .then("meet")
        .begin("terminal/wait_for_exit", named(1))
        .begin("terminal/release", named(1))
        .then("hear")
        .then("hear")
        .run();

    assert_eq!((&answered.answers[1], &answered.answers[2]), (&json!({ "exitCode": null, "signal": "SIGKILL" }), &json!({})));
}

#[test]
fn nothing_that_was_run_for_an_agent_outlives_its_session() {
    let asking = Asking::new();
    make_pipe(&asking.world.work("meeting"));
    let leave = format!("setsid bash -c {DEAF:?} & echo $! > far; echo $$ > near; : > meeting; {DEAF}");

    let answered = asking.runs(&leave).then("meet").run();

    assert_eq!(answered.report.end, SessionEnd::Completed, "{:?}", answered.report);
    for name in ["far", "near"] {
        let pid: u32 = std::fs::read_to_string(answered.world.work(name)).unwrap().trim().parse().unwrap();
        assert!(ProcessIdentity::of(pid).is_none_or(|identity| is_gone(&identity)), "{name}");
    }
}

#[test]
fn what_was_run_for_an_agent_ends_although_its_host_was_killed() {
    let mut asking = Asking::new().runs(&format!("echo $$ > near; {DEAF}")).of("terminal/wait_for_exit", 1);
    asking.prepare();
    let world = asking.world;
    let attached = world.start();
    let (command, host) = (world.process("near"), attached.host().cloned().unwrap());
    drop(attached);
    host.signal(Signal::Kill).unwrap();
    assert!(is_gone(&host));

    let found = world.find().unwrap();

    assert!(matches!(found, Found::Lost), "{found:?}");
    assert!(!command.is_alive());
}

#[test]
fn a_secret_in_a_file_or_of_a_command_is_in_no_file_of_the_session() {
    const SECRET: &str = "hush-hush-4711";
    let mut asking = Asking::new().has("secret", SECRET.as_bytes());
    asking.world.spec.secrets = vec![SECRET.as_bytes().to_vec()];
    let (secret, copy) = (asking.work("secret"), asking.work("copy"));

    let answered = asking
        .ask(READ, json!({ "path": secret }))
        .ask(WRITE, json!({ "path": copy, "content": SECRET }))
        .runs("cat secret")
        .of("terminal/wait_for_exit", 1)
        .of("terminal/output", 1)
        .run();

    assert_eq!((&answered.answers[0]["content"], &answered.answers[4]["output"]), (&json!(SECRET), &json!(SECRET)));
    assert_eq!(std::fs::read_to_string(copy).unwrap(), SECRET);
    let transcript = answered.world.read(TRANSCRIPT);
    assert!(transcript.matches("[redacted]").count() == 2 && !transcript.contains(SECRET), "{transcript}");
}

#[test]
fn what_a_command_printed_is_the_output_of_the_tool_that_shows_it() {
    let shown = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "kind": "execute", "status": "in_progress",
        "content": [{ "type": "terminal", "terminalId": "terminal-1" }] });
    let answered = Asking::new()
        .runs("echo looked")
        .tells(shown)
        .of("terminal/wait_for_exit", 1)
        .tells(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed" }))
        .of("terminal/release", 1)
        .run();

    let lines: Vec<String> = answered.world.read(TRANSCRIPT).lines().map(str::to_owned).collect();
    let events = super::recording::replay(&lines);
    let results: Vec<&str> = events.iter().filter_map(super::recording::result_text).collect();
    assert_eq!((results, answered.report.agent.unwrap().unknown_lines), (vec!["looked\n"], 0));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let mut asking = Asking::new();
    asking.prepare();
    let SessionWork::Agent(run) = &mut asking.world.spec.work else { panic!() };
    run.argv.truncate(3);
    run.argv.push("no-such-agent".into());

    let report = ended(wait(&mut asking.world.start()));

    assert!(
        matches!(&report.end, SessionEnd::Crashed { reason } if reason.starts_with("the agent did not begin: failed to start no-such-agent: there is no such program in ")),
        "{report:?}"
    );
}

fn make_pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

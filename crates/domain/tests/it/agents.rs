//! What each end of an agent's, judge's or repair's session leads to, and the sentences about it.

use proctor_domain::procedure::{
    Answer, CheckResult, Failure, HaltReason, Owed, Records, RunEvent, Severity, StepPlan, StepState, Task, Unjudged,
};
use proctor_domain::session::{AgentReport, Phase, SessionEnd, Spending, Usage, Work};
use proctor_domain::{Branch, Cost, MicroDollars, Timestamp};

use crate::fixtures::{Led, agent_report, id, judged, plan};

const AGENT: Task = Task { phase: Phase::Run, work: Work::Agent(1) };

fn ends() -> [SessionEnd; 11] {
    [
        SessionEnd::Completed,
        SessionEnd::TurnLimit,
        SessionEnd::Budget,
        SessionEnd::Timeout,
        SessionEnd::Silent,
        SessionEnd::RateLimited { until: None },
        SessionEnd::UsageLimit { until: Some(Timestamp(9)) },
        SessionEnd::Refused,
        SessionEnd::Crashed { reason: "it died".into() },
        SessionEnd::Interrupted,
        SessionEnd::NoResult,
    ]
}

/// A run that is about to open `task`.
fn before(task: Task, phases: &[Phase]) -> Led {
    let mut led = match task.work {
        Work::Judge(_) => Led::new(Records::State, vec![StepPlan { agents: 0, ..judged(Severity::Abort, &[]) }]),
        Work::Repair => Led::new(Records::State, vec![judged(Severity::Review, &[])]),
        Work::Agent(_) | Work::Shells => Led::new(Records::State, vec![StepPlan { agents: 1, ..plan("a", phases) }]),
    };
    led.begin("a");
    match task.work {
        Work::Judge(2) => led.judge(1, None),
        Work::Repair => led.agent(1).collect(&[]).judge(1, Some(false)),
        Work::Judge(_) | Work::Agent(_) | Work::Shells => &mut led,
    };
    led
}

/// What follows, in a word or two.
fn next(led: &Led, task: Task) -> &'static str {
    let step = &led.0.steps[0];
    let fails = matches!(step.state, StepState::Failing(_));
    let owed = led.0.owes();
    if owed == Owed::OpenSession(0, task) {
        "again"
    } else if owed == Owed::OpenSession(0, Task::judge(2)) {
        "judge 2"
    } else if matches!(owed, Owed::Park(HaltReason::Limited { .. })) {
        "park"
    } else if owed == Owed::Collect(0) {
        if fails { "shells, fail" } else { "collect" }
    } else {
        assert_eq!(owed, Owed::Survey(0));
        if fails { "fail" } else { step.unjudged.unwrap().name() }
    }
}

/// Without any answer, no verdict is given in any of these rows.
const TABLE: &str = "\
end           answered  agent         checked agent  judge 1  judge 2               repair
completed     yes       collect       collect        judge 2  no-structured-output  collect
completed     no        shells, fail  shells, fail   fail     fail                  again
turn-limit    yes       collect       collect        judge 2  max-turns             collect
turn-limit    no        shells, fail  shells, fail   fail     fail                  again
budget        yes       collect       collect        judge 2  max-budget            collect
budget        no        shells, fail  shells, fail   fail     fail                  again
timeout       yes       fail          collect        judge 2  timeout               collect
timeout       no        shells, fail  shells, fail   fail     fail                  again
silent        yes       fail          collect        judge 2  timeout               collect
silent        no        shells, fail  shells, fail   fail     fail                  again
rate-limited  yes       park          park           park     park                  park
rate-limited  no        park          park           park     park                  park
usage-limit   yes       park          park           park     park                  park
usage-limit   no        park          park           park     park                  park
refused       yes       collect       collect        judge 2  unknown               collect
refused       no        shells, fail  shells, fail   fail     fail                  again
crashed       yes       fail          collect        judge 2  unknown               collect
crashed       no        shells, fail  shells, fail   fail     fail                  again
interrupted   yes       again         again          again    again                 again
interrupted   no        again         again          again    again                 again
no-result     yes       fail          collect        judge 2  no-structured-output  collect
no-result     no        shells, fail  shells, fail   fail     fail                  again
";

#[test]
fn each_end_of_a_session_leads_where_the_table_says() {
    let (unchecked, checked) = (&[Phase::Run][..], &[Phase::Run, Phase::Validate][..]);
    let columns = [(AGENT, unchecked), (AGENT, checked), (Task::judge(1), &[][..]), (Task::judge(2), &[]), (Task::REPAIR, &[])];

    let mut table =
        format!("{:<14}{:<10}{:<14}{:<15}{:<9}{:<22}repair\n", "end", "answered", "agent", "checked agent", "judge 1", "judge 2");
    for end in ends() {
        for answered in [true, false] {
            let words = columns.map(|(task, phases)| {
                let mut led = before(task, phases);
                led.end(task, agent_report(end.clone(), answered), None);
                next(&led, task)
            });
            let [agent, checked, first, second, repair] = words;
            let answered = if answered { "yes" } else { "no" };
            table += &format!("{:<14}{answered:<10}{agent:<14}{checked:<15}{first:<9}{second:<22}{repair}\n", end.name());
        }
    }

    assert_eq!(table, TABLE);
}

#[test]
fn a_verdict_counts_however_the_judge_ended_and_as_the_severity_says() {
    for number in [1, 2] {
        for (severity, agents, passed, expected) in [
            (Severity::Warn, 1, false, (Some(CheckResult::Warn), "settle")),
            (Severity::Review, 0, false, (Some(CheckResult::Fail), "fail")),
            (Severity::Review, 1, false, (None, "repair")),
            (Severity::Review, 2, false, (Some(CheckResult::Fail), "fail")),
            (Severity::Abort, 1, false, (Some(CheckResult::Fail), "fail")),
            (Severity::Warn, 1, true, (Some(CheckResult::Pass), "settle")),
            (Severity::Review, 1, true, (Some(CheckResult::Pass), "settle")),
            (Severity::Abort, 1, true, (Some(CheckResult::Pass), "settle")),
        ] {
            let mut led = Led::new(Records::State, vec![StepPlan { agents, ..judged(severity, &[]) }]);
            led.begin("a");
            (1..=agents).for_each(|number| _ = led.agent(number));
            if agents > 0 {
                led.collect(&[]);
            }
            if number == 2 {
                led.judge(1, None);
            }

            led.judge(number, Some(passed));

            let step = &led.0.steps[0];
            let owed = led.0.owes();
            let next = if owed == Owed::OpenSession(0, Task::REPAIR) {
                "repair"
            } else {
                assert_eq!(owed, Owed::Survey(0));
                if step.state == StepState::Running { "settle" } else { "fail" }
            };
            assert_eq!((step.validate, next), expected, "{severity:?}, {agents} agents, passed: {passed}, try {number}");
        }
    }
}

#[test]
fn the_weaker_statement_about_the_work_wins() {
    for (shell, passed, expected) in [
        (0, Some(true), CheckResult::Pass),
        (0, Some(false), CheckResult::Warn),
        (0, None, CheckResult::Inconclusive),
        (1, Some(true), CheckResult::Warn),
        (1, Some(false), CheckResult::Warn),
        (1, None, CheckResult::Inconclusive),
    ] {
        let mut led = Led::new(Records::State, vec![judged(Severity::Warn, &[Phase::Validate])]);
        led.begin("a").agent(1).collect(&[]).session(Phase::Validate, shell);

        match passed {
            Some(passed) => led.judge(1, Some(passed)),
            None => led.judge(1, None).judge(2, None),
        };

        assert_eq!(led.0.steps[0].validate, Some(expected), "shell {shell}, judge {passed:?}");
        assert_eq!(led.0.owes(), Owed::Survey(0));
    }
}

#[test]
fn the_reasons_for_no_verdict_are_said_like_this() {
    let sentence = |end: &SessionEnd, number| format!("review of step sort {}", Unjudged::of(end, number));

    assert_eq!(sentence(&SessionEnd::TurnLimit, 2), "review of step sort reached max turns (16)");
    assert_eq!(sentence(&SessionEnd::TurnLimit, 1), "review of step sort reached max turns (8)");
    assert_eq!(sentence(&SessionEnd::Budget, 2), "review of step sort reached max budget");
    assert_eq!(sentence(&SessionEnd::Timeout, 2), "review of step sort timed out");
    assert_eq!(sentence(&SessionEnd::Silent, 2), "review of step sort timed out");
    assert_eq!(sentence(&SessionEnd::Completed, 2), "review of step sort returned no structured output");
    assert_eq!(sentence(&SessionEnd::NoResult, 2), "review of step sort returned no structured output");
    assert_eq!(sentence(&SessionEnd::Refused, 2), "review of step sort reached no verdict");
    assert_eq!((Unjudged::turns(1), Unjudged::turns(2), Unjudged::turns(3)), (8, 16, 16));
}

#[test]
fn failures_of_agents_judges_and_people_are_sentences_with_their_phase() {
    let unanswered = |work| Failure::NoResponse { work, reason: "please log in".into() };
    for (failure, phase, sentence) in [
        (Failure::Agent { agent: 2, end: "timeout".into() }, Some(Phase::Run), "agent 2 ended with `timeout`, and nothing checks its work"),
        (Failure::Blocked { agent: 1, reason: "no network\n".into() }, Some(Phase::Run), "agent 1 says that it is blocked: no network"),
        (unanswered(Work::Agent(1)), Some(Phase::Run), "agent 1 gave no answer: please log in"),
        (unanswered(Work::Repair), Some(Phase::Run), "the repairing agent gave no answer: please log in"),
        (unanswered(Work::Judge(2)), Some(Phase::Validate), "the judge gave no answer: please log in"),
        (Failure::Judged { reasoning: " Two packets\n".into() }, Some(Phase::Validate), "judged: Two packets"),
        (Failure::Rejected { message: Some("not today\n".into()) }, None, "it was rejected: not today"),
        (Failure::Rejected { message: None }, None, "it was rejected"),
        (
            Failure::ChangedGit { what: vec!["core.hooksPath".into(), "hooks/pre-commit".into()] },
            None,
            "its agent changed what git runs: core.hooksPath, hooks/pre-commit",
        ),
    ] {
        assert_eq!((failure.phase(), failure.to_string().as_str()), (phase, sentence));
        assert!(!failure.is_of_a_shell(), "`retry` repeats shells and nothing else");
    }
}

#[test]
fn an_agent_that_is_blocked_fails_its_step_unless_a_check_decides() {
    let after = |phases: &[Phase]| {
        let mut report = agent_report(SessionEnd::Completed, true);
        report.agent.as_mut().unwrap().told.blocked = Some("no network".into());
        let mut led = before(AGENT, phases);
        led.end(AGENT, report, None);
        (next(&led, AGENT), led.0.steps[0].state.clone())
    };

    let blocked = Failure::Blocked { agent: 1, reason: "no network".into() };
    assert_eq!(after(&[]), ("fail", StepState::Failing(blocked)));
    assert_eq!(after(&[Phase::Validate]), ("collect", StepState::Running));
}

#[test]
fn a_report_from_before_there_were_tools_reads_as_one_that_told_nothing() {
    let report = agent_report(SessionEnd::Completed, true);

    let text = serde_json::to_string(&report).unwrap();

    assert!(!text.contains("told"), "{text}");
    assert_eq!(serde_json::from_str::<proctor_domain::session::SessionReport>(&text).unwrap(), report);
}

#[test]
fn an_agent_that_asks_waits_for_a_person_and_goes_on_with_the_answer() {
    let asks = |task: Task| {
        let mut report = agent_report(SessionEnd::Completed, true);
        report.agent.as_mut().unwrap().told.question = Some("Which one?".into());
        let mut led = before(task, &[Phase::Validate]);
        led.end(task, report, None);
        led
    };
    let answered = |led: &mut Led, answer, message: &str| {
        led.apply(RunEvent::Answered { step: id("a"), answer, message: Some(message.into()) });
    };
    for task in [AGENT, Task::REPAIR] {
        let mut led = asks(task);
        let attempts = led.0.steps[0].attempts;
        assert_eq!(led.0.owes(), Owed::Park(HaltReason::Question { step: id("a"), question: "Which one?".into() }));
        assert_eq!((led.0.asks(), led.0.question()), (Some(id("a")), Some("Which one?")));

        answered(&mut led, Answer::Approve, "The left one.");

        assert_eq!((led.0.owes(), led.0.asks(), led.0.question()), (Owed::OpenSession(0, task), None, None));
        let step = &led.0.steps[0];
        assert_eq!((step.attempts, step.answers.len(), step.answers[0].answer.as_str()), (attempts, 1, "The left one."));
    }
    let mut led = asks(AGENT);
    answered(&mut led, Answer::Reject, "none");
    assert_eq!(led.0.steps[0].state, StepState::Failing(Failure::Rejected { message: Some("none".into()) }));
    assert_eq!(led.0.owes(), Owed::Survey(0));
}

#[test]
fn an_unanswered_session_says_what_its_engine_said() {
    let said = |end: SessionEnd, error: Option<&str>| {
        let mut report = agent_report(end, false);
        report.agent.as_mut().unwrap().error = error.map(str::to_owned);
        let mut led = before(AGENT, &[]);
        led.end(AGENT, report, None);
        let StepState::Failing(failure) = led.0.steps[0].state.clone() else { panic!("{:?}", led.0.steps[0].state) };
        failure.to_string()
    };

    assert_eq!(said(SessionEnd::Refused, Some("401")), "agent 1 gave no answer: 401");
    assert_eq!(said(SessionEnd::Refused, None), "agent 1 gave no answer: its session ended with `refused`");
    assert_eq!(said(SessionEnd::Crashed { reason: "no such program".into() }, Some("x")), "agent 1 gave no answer: no such program");
}

#[test]
fn only_people_resets_and_merges_are_waited_for() {
    let branch = Branch::Named("b".into());
    let parked = [
        HaltReason::Approval { step: id("a"), question: "?".into() },
        HaltReason::Question { step: id("a"), question: "?".into() },
        HaltReason::Limited { engine: "claude".parse().unwrap(), until: None },
        HaltReason::NotMerged { branch: branch.clone(), reason: "conflict".into() },
    ];
    let stopped = [
        HaltReason::Interrupted,
        HaltReason::ForeignChanges(Vec::new()),
        HaltReason::ForeignCommits(Vec::new()),
        HaltReason::BranchMoved { expected: branch.clone(), found: branch },
        HaltReason::Operation("merge".into()),
        HaltReason::HostsLost(3),
    ];

    assert!(parked.iter().all(HaltReason::is_parked));
    assert!(!stopped.iter().any(HaltReason::is_parked));
}

#[test]
fn an_unknown_cost_is_never_counted_as_nothing() {
    let spending = |cost| Spending { model: "m".into(), usage: Usage::default(), cost };
    let cost = |answered, spent: &[Cost]| {
        let agent = *agent_report(SessionEnd::Completed, answered).agent.unwrap();
        AgentReport { spent: spent.iter().copied().map(spending).collect(), ..agent }.cost()
    };
    let known = |micros| Cost::Known(MicroDollars(micros));

    assert_eq!(cost(true, &[]), Cost::Unknown, "a model that answered has cost something");
    assert_eq!(cost(false, &[]), Cost::Unknown, "nobody has said what was used");
    assert_eq!(cost(true, &[known(1), known(2)]), known(3));
    assert_eq!(cost(true, &[known(1), Cost::Unknown]), Cost::Unknown);
    assert_eq!((Cost::Unknown.known(), Cost::Unknown.to_string().as_str()), (None, "unknown"));
}

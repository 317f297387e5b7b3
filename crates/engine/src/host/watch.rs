//! When an agent's session is over, beyond what holds for every session: its engine is done and stays, it is silent, or it
//! takes too many turns.

use std::time::{Duration, Instant};

use proctor_domain::MicroDollars;
use proctor_domain::session::{AgentReport, SessionEnd};

use super::activity::Activity;
use super::assignment::Agent;
use super::calls::Calls;
use super::door::Door;
use super::passing::Passing;
use super::streams::{Finished, StreamLog};
use super::transcript::Transcript;
use crate::agent::{ASKED_AT_MOST, EngineKind, Opening, demand_again, engine, find_result, said_line};

/// How long a program may stay after its engine said that it is done: there may be work going on beside, whose end it
/// waits for and then says more.
const STAY: Duration = Duration::from_secs(10);
/// How long one may stay that serves a protocol, and whose input has ended.
const STAY_AFTER_LAST_WORD: Duration = Duration::from_secs(5);
/// How long one may take to break off when it is asked to, before it is made to end.
const BREAK_OFF: Duration = Duration::from_secs(5);
/// How long one may wait because its provider asks to. What takes longer is waited for without a program.
const PATIENCE: Duration = Duration::from_secs(30);
/// While something is heard more often than this, nobody asks for the processor time.
const LOOK_CLOSER: Duration = Duration::from_millis(500);

/// Why a child is made to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// The session is to end so.
    By(SessionEnd),
    /// Its engine has said that it is done, and what it said tells how the session ended.
    Done,
}

/// A result that is asked for in words.
struct Asking {
    schema: String,
    /// How often it was asked for.
    asked: u32,
    /// What is to be said, and could not be while the program ran.
    unsaid: Option<String>,
    /// What was wrong with the last answer.
    wrong: Option<String>,
}

/// What an agent is to be asked in a program of its own.
pub(super) struct Question {
    pub(super) words: String,
    /// The conversation that goes on, where there is one.
    pub(super) conversation: Option<String>,
}

impl Asking {
    fn of(schema: String) -> Self {
        Self { schema, asked: 1, unsaid: None, wrong: None }
    }
}

/// Watches over one agent.
pub(super) struct AgentWatch {
    transcript: Transcript,
    owes_result: bool,
    /// The result that its engine can't be held to, and that is asked for here.
    asking: Option<Asking>,
    /// What it tells by its tools.
    calls: Calls,
    silence_limit: Duration,
    max_turns: Option<u32>,
    max_cost: Option<MicroDollars>,
    /// The caps, whoever holds them as long as nothing is said to it: an engine may count anew for what it is told.
    caps: (Option<u32>, Option<MicroDollars>),
    activity: Activity,
    /// The last sign of life.
    alive: Instant,
    /// The last thing that the engine said.
    said: Instant,
    /// When its provider asked to wait, if nothing came after that.
    waiting: Option<Instant>,
    /// Takes out what is not to be kept.
    passing: Passing,
    /// What a person said and is not written down yet, in whole lines.
    unwritten: Vec<u8>,
    /// How it is spoken to.
    kind: EngineKind,
    /// Whether a line was begun and is not at its end.
    in_line: bool,
    is_silent: bool,
    /// How long it may stay when it has said that it is done.
    stay: Duration,
    /// Why it was asked to break off, and when.
    breaking_off: Option<(Cut, Instant)>,
}

impl AgentWatch {
    pub(super) fn new(agent: &Agent, opening: &Opening) -> Self {
        let now = Instant::now();
        let able = engine(agent.engine).capabilities();
        let transcript = Transcript::of(agent.name.clone(), agent.engine, opening);
        Self {
            passing: Passing::new(transcript.passing()),
            unwritten: Vec::new(),
            kind: agent.engine,
            transcript,
            owes_result: agent.schema.is_some(),
            asking: agent.schema.clone().filter(|_| !able.structured_result).map(Asking::of),
            calls: Calls::of(agent, opening.access),
            max_cost: agent.max_cost.filter(|_| !able.money_cap),
            caps: (agent.max_turns, agent.max_cost),
            stay: match agent.engine {
                EngineKind::Acp => STAY_AFTER_LAST_WORD,
                EngineKind::Claude | EngineKind::Codex | EngineKind::OpenCode | EngineKind::Command | EngineKind::Scripted => STAY,
            },
            breaking_off: None,
            silence_limit: agent.silence_limit(),
            max_turns: agent.max_turns.filter(|_| !able.turn_cap),
            activity: Activity::begin(),
            alive: now,
            said: now,
            waiting: None,
            in_line: false,
            is_silent: false,
        }
    }

    /// Takes in what the agent printed, by way of its log, which redacts and cuts.
    pub(super) fn printed(&mut self, bytes: &[u8], log: &mut StreamLog) {
        let (bytes, has_passed) = self.passing.strip(bytes);
        log.push(&bytes, &mut |text| self.transcript.push(text));
        let now = Instant::now();
        if self.transcript.take_progress() || has_passed {
            self.said = now;
            self.alive = now;
        } else if self.in_line && !bytes.contains(&b'\n') {
            // A line that goes on and on. Its beginning alone may be that of a heartbeat.
            self.alive = now;
        }
        self.waiting = self.transcript.is_asked_to_wait().then_some(now);
        self.in_line = bytes.last().map_or(self.in_line, |&last| last != b'\n');
        self.look_for_result();
        self.write_down(log);
    }

    /// Whether its engine hears what is said to it.
    pub(super) fn can_be_steered(&self) -> bool {
        engine(self.kind).capabilities().steering
    }

    /// Says to it what a person says; false when it hears no more.
    pub(super) fn hear(&mut self, text: &str, log: &mut StreamLog) -> bool {
        if self.breaking_off.is_some() || self.transcript.is_finished() || !self.transcript.say(text) {
            return false;
        }
        (self.max_turns, self.max_cost) = self.caps;
        self.unwritten.extend_from_slice(&said_line(text));
        self.write_down(log);
        true
    }

    /// Puts what was said among what it printed, between two of its lines.
    fn write_down(&mut self, log: &mut StreamLog) {
        if !self.unwritten.is_empty() && !self.in_line && self.transcript.has_begun() {
            let lines = std::mem::take(&mut self.unwritten);
            log.push(&lines, &mut |text| self.transcript.push(text));
        }
    }

    /// Answers what it calls at this door, which is a sign of life.
    pub(super) fn answer(&mut self, door: &mut Door) {
        if door.answer(&mut self.calls) {
            self.alive = Instant::now();
        }
        if self.calls.has_result() {
            self.asking = None;
        }
    }

    /// Looks whether the answer is the result that is owed. Where it is not, the agent is told so, or has to be asked again
    /// in another program.
    fn look_for_result(&mut self) {
        let Some(asking) = &mut self.asking else { return };
        let Some(answer) = self.transcript.answer() else { return };
        match find_result(&asking.schema, answer) {
            Ok(result) => {
                self.transcript.settle_result(Some(result.to_string()));
                self.asking = None;
            }
            Err(error) => {
                self.transcript.settle_result(None);
                asking.wrong = Some(format!("failed to {error}"));
                let words = demand_again(&asking.schema, &error);
                if asking.asked < ASKED_AT_MOST && self.transcript.say(&words) {
                    asking.asked += 1;
                } else {
                    asking.unsaid = Some(words);
                }
            }
        }
    }

    /// Takes in that the program has ended, with what is left of what it printed.
    pub(super) fn ended(&mut self, exit_code: Option<i32>, log: &mut StreamLog) {
        log.push(self.passing.finish(), &mut |text| self.transcript.push(text));
        log.flush(&mut |text| self.transcript.push(text));
        self.transcript.end_program(exit_code);
        self.look_for_result();
    }

    /// What is to be asked in another program; nothing is left to be asked then.
    pub(super) fn take_question(&mut self) -> Option<Question> {
        let asking = self.asking.as_mut().filter(|asking| asking.asked < ASKED_AT_MOST)?;
        let words = asking.unsaid.take()?;
        asking.asked += 1;
        Some(Question { words, conversation: self.transcript.conversation().map(str::to_owned) })
    }

    /// Reads another program from now on, in which the conversation goes on.
    ///
    /// There are engines that count on from what the conversation has used.
    pub(super) fn go_on(&mut self, agent: &Agent, opening: &Opening) {
        let used_before =
            if self.transcript.conversation().is_some() { opening.used_before + self.transcript.used() } else { opening.used_before };
        self.transcript.go_on(engine(agent.engine).reader(&Opening { used_before, ..opening.clone() }));
        self.said = Instant::now();
    }

    /// Notes that it complained, which is a sign of life.
    pub(super) fn complained(&mut self) {
        self.alive = Instant::now();
    }

    /// Looks, once in a while, whether it is silent. Only what could not be heard is looked at more closely.
    pub(super) fn look(&mut self) {
        let heard = self.alive.elapsed() < LOOK_CLOSER;
        if !heard && self.activity.is_busy() {
            self.alive = Instant::now();
        }
        self.is_silent = self.alive.elapsed() >= self.silence_limit;
    }

    /// What is to be written to it next.
    pub(super) fn take_words(&mut self) -> Vec<u8> {
        self.transcript.take_words()
    }

    /// Whether it has said that it is done.
    pub(super) fn is_finished(&self) -> bool {
        self.transcript.is_finished()
    }

    /// Why it must end now, if so; `end` is what holds for every session. One that can be asked to break off is asked first,
    /// so that its conversation is left in order.
    pub(super) fn due(&mut self, end: Option<SessionEnd>) -> Option<Cut> {
        if let Some((cut, since)) = &self.breaking_off {
            let is_over = self.transcript.is_finished() || since.elapsed() >= BREAK_OFF;
            return is_over.then(|| cut.clone());
        }
        let cut = self.reason_to_end(end)?;
        if cut != Cut::Done && self.transcript.interrupt() {
            self.breaking_off = Some((cut, Instant::now()));
            return None;
        }
        Some(cut)
    }

    fn reason_to_end(&self, end: Option<SessionEnd>) -> Option<Cut> {
        if self.transcript.is_finished() {
            let stays = self.said.elapsed() >= self.stay.min(self.silence_limit);
            return (stays || end.is_some()).then_some(Cut::Done);
        }
        let takes_too_many = self.max_turns.is_some_and(|most| self.transcript.turns() > most);
        let costs_too_much = self.max_cost.is_some_and(|most| self.transcript.cost().is_some_and(|cost| cost > most));
        let capped = takes_too_many.then_some(SessionEnd::TurnLimit).or(costs_too_much.then_some(SessionEnd::Budget));
        let waits_too_long = self.waiting.is_some_and(|since| since.elapsed() >= PATIENCE);
        let limited = waits_too_long.then_some(SessionEnd::RateLimited { until: None });
        end.or(capped).or(limited).or(self.is_silent.then_some(SessionEnd::Silent)).map(Cut::By)
    }

    /// Takes in the end of what it printed.
    pub(super) fn printed_all(&mut self, log: StreamLog) -> Finished {
        log.finish(&mut |text| self.transcript.push(text))
    }

    /// How the session ended: by `cut`, or else by what the engine said.
    pub(super) fn close(self, exit_code: Option<i32>, cut: Option<Cut>) -> (SessionEnd, AgentReport) {
        let (mut end, mut report) = self.transcript.close(exit_code, self.owes_result);
        self.calls.settle(&mut end, &mut report);
        if end == SessionEnd::NoResult {
            report.error = report.error.or_else(|| self.asking.and_then(|asking| asking.wrong));
        }
        match cut {
            Some(Cut::By(end)) => (end, report),
            Some(Cut::Done) | None => (end, report),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::streams::{Hidden, LIMITS};
    use super::*;

    const TURN: &[u8] =
        b"{\"type\":\"turn\",\"usage\":{\"input\":1,\"output\":1,\"cache_read\":0,\"cache_write\":0},\"cost\":\"unknown\"}\n";

    /// A watch of an agent that printed this, and was last alive a while ago before that.
    fn after(printed: &[&[u8]], max_turns: Option<u32>) -> (AgentWatch, bool) {
        let folder = tempfile::tempdir().unwrap();
        let mut log = StreamLog::new(folder.path().join("transcript.jsonl"), LIMITS, &Hidden::new(Vec::new()));
        let now = Instant::now();
        let mut watch = AgentWatch {
            transcript: Transcript::of(EngineKind::Scripted.engine_name(), EngineKind::Scripted, &Opening::default()),
            owes_result: false,
            asking: None,
            calls: Calls::default(),
            passing: Passing::new(b""),
            unwritten: Vec::new(),
            kind: EngineKind::Scripted,
            max_cost: None,
            caps: (max_turns, None),
            stay: STAY,
            breaking_off: None,
            silence_limit: Duration::from_secs(60),
            max_turns,
            activity: Activity::begin(),
            alive: now,
            said: now,
            waiting: None,
            in_line: false,
            is_silent: false,
        };
        printed.iter().for_each(|bytes| watch.printed(bytes, &mut log));
        let is_life = watch.alive > now;
        (watch, is_life)
    }

    #[test]
    fn a_turn_over_the_cap_ends_the_session_and_the_last_one_within_does_not() {
        let (mut within, _) = after(&[TURN, TURN], Some(2));
        let (mut over, _) = after(&[TURN, TURN, TURN], Some(2));

        assert_eq!(within.due(None), None);
        assert_eq!(over.due(None), Some(Cut::By(SessionEnd::TurnLimit)));
    }

    #[test]
    fn what_an_engine_said_before_counts_more_than_a_limit() {
        let (mut working, _) = after(&[TURN], None);
        let (mut done, _) = after(&[TURN, b"{\"type\":\"result\",\"stop\":\"done\"}\n"], None);

        assert_eq!(working.due(Some(SessionEnd::Timeout)), Some(Cut::By(SessionEnd::Timeout)));
        assert_eq!((done.due(None), done.due(Some(SessionEnd::Timeout))), (None, Some(Cut::Done)));
    }

    #[test]
    fn a_heartbeat_in_two_parts_is_no_life_and_a_line_that_grows_is() {
        assert!(!after(&[b"{\"type\":", b"\"heartbeat\"}\n", b"garbage\n", b"{\"ty"], None).1);
        assert!(after(&[b"{\"type\":\"text\",", b"\"text\":\"it goes"], None).1);
        assert!(after(&[TURN], None).1);
    }
}

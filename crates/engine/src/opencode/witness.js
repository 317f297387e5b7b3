// Loaded by OpenCode itself. Tells in lines of its own what `opencode run` keeps to itself, and gives up where that would
// wait on without a word.
import { writeSync } from "node:fs"

// The waits double: with three, a provider that does not answer is known after some fifteen seconds.
const RETRIES = 3
const LONGEST_WAIT_MS = 60_000
const LONGEST_BODY = 4096

export const Witness = async ({ client }) => {
  const delegates = new Set()
  const models = new Map()
  const calls = new Set()
  let refusal

  const line = (kind, fields) => JSON.stringify({ type: `proctor_${kind}`, timestamp: Date.now(), ...fields }) + "\n"
  const tell = (kind, fields) => process.stdout.write(line(kind, fields))

  // Its configuration has been found: what its tools start is to find the user's again.
  const outer = process.env.PROCTOR_OUTER_CONFIG_HOME
  if (outer) process.env.XDG_CONFIG_HOME = outer
  else if (outer === "") delete process.env.XDG_CONFIG_HOME

  // A retry is told without the answer that made it necessary.
  const request = globalThis.fetch
  const watched = async (...given) => {
    refusal = undefined
    const response = await request(...given)
    if (!response.ok) {
      const body = await response.clone().text().catch(() => "")
      refusal = {
        statusCode: response.status,
        responseHeaders: Object.fromEntries(response.headers),
        responseBody: body.slice(0, LONGEST_BODY),
      }
    }
    return response
  }
  globalThis.fetch = Object.assign(watched, request)

  // A conversation that is not known is complained of in words only.
  process.on("exit", (code) => writeSync(1, line("exit", { code })))

  const witnessed = {
    "session.created": ({ info }) => {
      if (info.parentID) delegates.add(info.id)
    },
    "message.updated": ({ info }) => {
      if (info.role !== "assistant" || models.has(info.id)) return
      const model = `${info.providerID}/${info.modelID}`
      models.set(info.id, model)
      const fields = { sessionID: info.sessionID, messageID: info.id, model }
      tell("message", { ...fields, summary: info.summary === true, delegate: delegates.has(info.sessionID) })
    },
    "message.part.updated": ({ part }) => {
      if (delegates.has(part.sessionID)) {
        if (part.type === "step-finish") tell("delegate_step", { sessionID: part.sessionID, model: models.get(part.messageID), part })
        return
      }
      if (part.type !== "tool" || part.state.status !== "running" || calls.has(part.callID)) return
      calls.add(part.callID)
      const { sessionID, messageID, callID, tool, state } = part
      tell("call", { sessionID, part: { messageID, callID, tool, state: { status: state.status, input: state.input } } })
    },
    "session.status": async ({ sessionID, status }) => {
      if (status.type !== "retry") return
      const wait_ms = Math.max(0, status.next - Date.now())
      const data = { message: status.message, ...refusal }
      const goes_on = status.attempt <= RETRIES && wait_ms <= LONGEST_WAIT_MS
      tell(goes_on ? "retry" : "gave_up", { sessionID, attempt: status.attempt, wait_ms, error: { name: "APIError", data } })
      if (!goes_on) await client.session.abort({ path: { id: sessionID } })
    },
  }

  // Of a version that words its events in another way it tells less, and never stands in its way.
  const event = async ({ event }) => witnessed[event.type]?.(event.properties)
  return { event: (given) => event(given).catch(() => {}) }
}

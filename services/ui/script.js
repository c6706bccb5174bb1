"use strict";
// Everything that the service says is shown as text: ids and explanations come from whoever sent the rollouts.

const EVERY_MS = 2000;
const OUTCOMES = ["correct", "partial", "scored", "incorrect", "no_answer", "ungraded"];
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });

let key = sessionStorage.getItem("rewarden-key") || "";
let refused = false;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function span(seconds) {
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${number(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

const ago = (time) => `${span(Math.max(0, Date.now() / 1000 - time))} ago`;

function facts(list, pairs) {
  list.replaceChildren(...pairs.map(([name, value]) =>
    element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: String(value) }))));
}

// heads: names, those of numbers with a "#" before; rows: lists of values.
function table(place, heads, rows, empty) {
  if (!rows.length) {
    place.replaceChildren(element("p", { className: "empty", textContent: empty }));
    return;
  }
  const kinds = heads.map((head) => (head.startsWith("#") ? "number" : ""));
  const cells = (name, values) => values.map((value, i) =>
    element(name, { className: kinds[i], textContent: value === null || value === undefined ? "" : String(value) }));
  const head = element("tr", {}, ...cells("th", heads.map((one) => one.replace("#", ""))));
  head.querySelectorAll("th").forEach((cell) => { cell.scope = "col"; });
  place.replaceChildren(element("table", {}, element("thead", {}, head),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Rollouts a second by outcome over the last 15 minutes, in columns of half a minute.
function chart(title, record) {
  const columns = 30, step = 30, width = 600, height = 150, left = 44, bottom = 130;
  const end = Math.ceil(Date.now() / 1000 / step) * step;
  const sums = Array.from({ length: columns }, () => ({}));
  const totals = {};
  for (const bucket of record.buckets || []) {
    const column = columns - Math.ceil((end - bucket.start) / step);
    for (const [outcome, count] of Object.entries(bucket.outcomes)) {
      totals[outcome] = (totals[outcome] || 0) + count;
      if (column >= 0 && column < columns) sums[column][outcome] = (sums[column][outcome] || 0) + count;
    }
  }
  const all = sums.map((sum) => Object.values(sum).reduce((a, b) => a + b, 0) / step);
  const top = Math.max(...all, 0.1);
  const seen = OUTCOMES.filter((outcome) => totals[outcome]);
  const said = seen.map((outcome) => `${outcome} ${totals[outcome]}`).join(", ") || "nothing was graded";
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${said}` });
  for (const share of [0, 0.5, 1]) {
    const y = bottom - share * (bottom - 12);
    svg.append(drawn("line", { x1: left, x2: width, y1: y, y2: y }),
      drawn("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, number(top * share)));
  }
  const wide = (width - left) / columns;
  sums.forEach((sum, column) => {
    let y = bottom;
    for (const outcome of seen) {
      const high = ((sum[outcome] || 0) / step / top) * (bottom - 12);
      if (!high) continue;
      y -= high;
      svg.append(drawn("rect", { class: outcome, x: left + column * wide + 1, y, width: wide - 2, height: high }));
    }
  });
  svg.append(drawn("text", { x: left, y: height - 4 }, "15 min ago"),
    drawn("text", { x: width, y: height - 4, "text-anchor": "end" }, "now"));
  const legend = element("ul", { className: "legend" }, ...seen.map((outcome) => element("li", {},
    element("span", { className: `swatch ${outcome}` }), `${outcome.replace("_", " ")} ${number(totals[outcome])}`)));
  return element("figure", {}, element("figcaption", { textContent: `${title}, rollouts a second` }), svg, legend);
}

function byScorer(records) {
  const sums = {};
  for (const record of records) {
    for (const [scorer, outcomes] of Object.entries(record.scorers || {})) {
      sums[scorer] = sums[scorer] || {};
      for (const [outcome, count] of Object.entries(outcomes)) {
        sums[scorer][outcome] = (sums[scorer][outcome] || 0) + count;
      }
    }
  }
  return sums;
}

function show(status) {
  const queue = status.queue;
  const work = queue ? queue.graded || {} : {};
  const good = status.ready && !status.draining && (!queue || queue.reachable);
  at("state").className = good ? "" : "bad";
  const word = status.draining ? "stopping" : !status.ready ? "starting" : good ? "ready" : "ready, but its queue is away";
  at("state").textContent = `${word} · version ${status.version} · up ${span(status.uptime_s)}`;
  facts(at("now"), [
    ["requests under way", number(status.in_flight.requests)],
    ["rollouts under way", number(status.in_flight.rollouts)],
    ["pooled here so far", number(status.workers.items)],
    ["pool restarts", number(status.workers.restarts)],
  ]);
  at("charts").replaceChildren(chart("Asked of this service", status),
    ...(queue ? [chart("Graded by the workers of the queue", work)] : []));
  const sums = byScorer(queue ? [status, work] : [status]);
  const known = OUTCOMES.filter((outcome) => Object.values(sums).some((sum) => sum[outcome]));
  table(at("outcomes"), ["scorer", ...known.map((outcome) => `#${outcome.replace("_", " ")}`)],
    Object.entries(sums).map(([scorer, sum]) => [scorer, ...known.map((outcome) => number(sum[outcome] || 0))]),
    "Nothing was graded yet.");
  at("queue-panel").hidden = !queue;
  if (queue) {
    facts(at("queue-facts"), [
      ["running jobs", number(queue.jobs)],
      ["batches under way", number(queue.leased)],
      ["groups that wait", number(queue.open_groups)],
      ["dead letters", number(queue.dead_letters)],
    ]);
    table(at("queues"), ["kind", "#batches that wait", "#oldest"],
      Object.entries(queue.kinds).map(([kind, one]) => [kind, number(one.batches), span(one.age_s)]),
      "No job has come yet.");
    table(at("workers"), ["worker", "host", "kinds", "#busy", "#graded", "#up"],
      queue.workers.map((one) => [one.name, one.host, (one.kinds || []).join(", "), `${one.busy} of ${one.slots}`,
        number(one.graded), span(Date.now() / 1000 - one.started)]),
      "No worker lives: start one with `rewarden worker`.");
  }
  const newest = (name) => [...(status[name] || []), ...(work[name] || [])].sort((a, b) => b.time - a.time).slice(0, 50);
  table(at("ungraded"), ["when", "rollout", "recipe", "reason", "why"],
    newest("ungraded").map((one) => [ago(one.time), one.id, one.recipe, one.reason, one.explanation]),
    "Everything was graded.");
  table(at("slow"), ["when", "rollout", "scorer", "#took", "outcome"],
    newest("slow").map((one) => [ago(one.time), one.id, one.scorer, span(one.seconds), one.outcome]),
    "Nothing took long.");
}

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    throw Object.assign(new Error(said.detail || `the service answered ${answer.status}`), { status: answer.status });
  }
  return said;
}

function wantKey(error) {
  if (error.status !== 401 && error.status !== 403) return false;
  refused = true;
  at("key-form").hidden = false;
  at("key-why").textContent = key || error.status === 403 ? `The key was refused: ${error.message}.` : "This service asks for an API key.";
  at("state").className = "bad";
  at("state").textContent = "an API key is needed";
  return true;
}

async function poll() {
  if (!document.hidden && !refused) {
    try {
      show(await ask("/v1/status"));
      at("key-form").hidden = true;
    } catch (error) {
      if (!wantKey(error)) {
        at("state").className = "bad";
        at("state").textContent = `the service does not answer: ${error.message}`;
      }
    }
  }
  setTimeout(poll, EVERY_MS);
}

async function listRecipes() {
  try {
    const chosen = at("recipe").value || "auto";
    const names = (await ask("/v1/scorers")).recipes.map((recipe) => recipe.name);
    at("recipe").replaceChildren(...names.map((name) => element("option", { value: name, textContent: name })));
    if (names.includes(chosen)) at("recipe").value = chosen;
  } catch (error) {
    wantKey(error);
  }
}

function reference(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function showVerdict(verdict) {
  const pairs = [["reward", verdict.reward === null ? "none" : verdict.reward], ["outcome", verdict.outcome.replace("_", " ")]];
  if (verdict.reason) pairs.push(["reason", verdict.reason]);
  if (verdict.scorer) pairs.push(["scorer", `${verdict.scorer.name} ${verdict.scorer.version}`]);
  const list = element("dl", { className: "facts" });
  facts(list, pairs);
  const rest = Object.fromEntries(["components", "evidence", "step_rewards", "spans", "advantage"]
    .filter((name) => verdict[name] !== undefined).map((name) => [name, verdict[name]]));
  at("verdict").replaceChildren(list,
    ...(verdict.explanation ? [element("p", { textContent: verdict.explanation })] : []),
    ...(Object.keys(rest).length ? [element("pre", { textContent: JSON.stringify(rest, null, 2) })] : []));
}

at("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  const rollout = { id: "try", completion: at("completion").value };
  if (at("prompt").value) rollout.prompt = at("prompt").value;
  if (at("reference").value) rollout.reference = reference(at("reference").value);
  try {
    const body = JSON.stringify({ recipe: at("recipe").value || "auto", rollouts: [rollout] });
    const said = await ask("/v1/score", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    showVerdict(said.verdicts[0]);
  } catch (error) {
    wantKey(error);
    at("verdict").replaceChildren(element("p", { className: "bad", textContent: error.message }));
  }
});

at("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  sessionStorage.setItem("rewarden-key", key);
  at("key").value = "";
  refused = false;
  await listRecipes();
});

listRecipes();
poll();

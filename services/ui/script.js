// What the service says of itself, and one rollout to try. Ids and explanations are hostile: all is shown as text.
"use strict";

const EVERY_MS = 2000;
const PATIENCE_MS = 15000;
const GRADING_MS = 610000; // longer than a service may take to grade
const COLUMN_S = 15;
const COLUMNS = 61; // 15 minutes, and what has begun of the next column
const SHOWN = 10; // rows of a long list until all are asked for
const KEY = "rewarden-key";
const OUTCOMES = ["correct", "partial", "scored", "incorrect", "no_answer", "ungraded"]; // from the bottom up
const KINDS = { correct: "good", incorrect: "bad", no_answer: "bad", ungraded: "warn" };

const $ = (id) => document.getElementById(id);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const words = (name) => name.replaceAll("_", " ");
const whole = (number) => number.toLocaleString("en");
const short = (number) => number.toLocaleString("en", { maximumSignificantDigits: 3 });

let status = null; // the last answer
let now = 0; // the service's clock, in seconds
let source = null; // "here" or "queue", once known
let recipes = [];
let timer = 0;
let asking = false; // a request for the status is under way
const drawn = {}; // what each part shows: only changes are drawn, so that marked text stays marked
const all = new Set(); // lists that are shown whole

// Pieces of the page

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : seen(String(child)))));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Characters that cannot be seen, or that turn the text around them, by their number.
function seen(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function draw(id, value, make) {
  const text = JSON.stringify(value);
  if (drawn[id] === text) return;
  drawn[id] = text;
  $(id).replaceChildren(...make());
}

// Rows: name, value, a smaller line, whether it is bad.
function facts(id, rows) {
  draw(id, rows, () =>
    rows.map(([name, value, more, bad]) => {
      const dd = h("dd", {}, value);
      if (more) dd.append(h("small", {}, more));
      return h("div", { class: bad ? "alert" : undefined }, h("dt", {}, name), dd);
    }),
  );
}

// Columns: [label, class]. The first one names the row. With `cards`, rows become cards on a phone.
function table(columns, rows, label, cards) {
  const role = (name) => (cards ? { role: name } : {}); // cards are no table to a browser
  const head = columns.map(([name, kind]) => h("th", { scope: "col", class: kind, ...role("columnheader") }, name));
  const body = rows.map((row) =>
    h("tr", role("row"), ...row.map((value, place) => {
      const [name, kind] = columns[place];
      const cell = { class: kind, "data-label": cards ? name : undefined };
      if (place === 0) return h("th", { scope: "row", ...cell, ...role("rowheader") }, h("span", {}, value));
      return h("td", { ...cell, ...role("cell") }, h("span", {}, value));
    })),
  );
  return h("table", { "aria-labelledby": label, class: cards ? "cards" : undefined, ...role("table") },
    h("thead", role("rowgroup"), h("tr", role("row"), ...head)), h("tbody", role("rowgroup"), ...body));
}

function list(id, label, columns, rows, none, cards = false) {
  draw(id, [columns, rows, all.has(id)], () => {
    if (!rows.length) return [h("p", { class: "empty" }, none)];
    const some = cards && !all.has(id) ? rows.slice(0, SHOWN) : rows;
    const made = [table(columns, some, label, cards)];
    if (some.length < rows.length) {
      const more = h("button", { type: "button", class: "more" }, `Show all ${rows.length}`);
      more.addEventListener("click", () => {
        all.add(id);
        show();
        const next = $(id).querySelectorAll("tbody tr")[SHOWN];
        next.tabIndex = -1;
        next.focus();
      });
      made.push(more);
    }
    return made;
  });
}

function lasts(seconds) {
  if (seconds < 1) return seconds > 0 ? `${short(seconds * 1000)} ms` : "0 s";
  if (seconds < 10) return `${short(seconds)} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[first];
  const [smaller, less] = units[first + 1] ?? ["", Infinity];
  const rest = Math.floor((seconds % size) / less);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${smaller}` : ""}`;
}

function clock(seconds, short = false) {
  const second = short ? undefined : "2-digit";
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second });
}

// The status

function show() {
  const queue = status.queue;
  const counted = (record) => sum((record.buckets ?? []).map((bucket) => bucket.rollouts));
  if (!queue) source = "here";
  else source ??= counted(queue.graded) >= counted(status) ? "queue" : "here";
  $("source").hidden = !queue;
  $("queue").hidden = !queue;
  if (queue) {
    $("n-queue").textContent = `(${whole(counted(queue.graded))})`;
    $("n-here").textContent = `(${whole(counted(status))})`;
    document.querySelector(`[name=source][value=${source}]`).checked = true;
    queued(queue);
  }
  if (status.draining) pill("Draining", "warn");
  else if (!status.ready) pill("Starting", "warn");
  else if (queue && !queue.reachable) pill("Queue away", "bad");
  else pill("Ready", "good");
  $("version").textContent = status.version;
  $("uptime").textContent = `up ${lasts(Math.floor(status.uptime_s))}`;
  $("updated").textContent = `as of ${clock(now)}`;
  const record = source === "queue" ? queue.graded : status;
  verdicts({ buckets: [], scorers: {}, ungraded: [], slow: [], reasons: {}, ...record });
  const { in_flight: under, workers } = status;
  const killed = Object.entries(workers.kills).map(([cause, number]) => `${whole(number)} ${words(cause)}`);
  const failed = sum(status.buckets.map((bucket) => bucket.failed));
  facts("service-facts", [
    ["Requests in flight", whole(under.requests), `${whole(under.rollouts)} rollouts`],
    ["Refused (429, 503), 15 min", whole(sum(status.buckets.map((bucket) => bucket.refused)))],
    ["Failed (500), 15 min", whole(failed), "", failed > 0],
    ["Done in processes", whole(workers.items), `${lasts(workers.cpu_s)} of CPU`],
    ["Processes restarted", whole(workers.restarts), `${whole(workers.crashes)} crashed, ${whole(workers.outside_kills)} ended from outside`],
    ["Processes killed", whole(sum(Object.values(workers.kills))), killed.join(", ")],
  ]);
  const unseen = $("status").hidden;
  $("status").hidden = false;
  if (unseen) show(); // the chart has a width only now
}

function pill(text, kind) {
  $("state").textContent = text;
  $("state").className = `pill ${kind}`;
}

function verdicts(record) {
  const buckets = record.buckets;
  const total = (name) => sum(buckets.map((bucket) => bucket[name]));
  const rollouts = total("rollouts");
  const minute = sum(buckets.filter((bucket) => bucket.start > now - 60).map((bucket) => bucket.rollouts));
  const totals = outcomesOf(buckets);
  const share = (number) => (rollouts ? `${short((100 * number) / rollouts)} %` : "");
  facts("facts", [
    ["Rollouts, 15 min", whole(rollouts)],
    ["Rollouts/s, last minute", short(minute / 60)],
    ["Ungraded, 15 min", whole(totals.ungraded), share(totals.ungraded), totals.ungraded > 0],
    ["From the cache, 15 min", whole(total("cached")), share(total("cached"))],
    ["Scorer time per rollout", rollouts ? lasts(total("seconds") / rollouts) : "–"],
  ]);
  draw("legend", [totals, rollouts], () =>
    OUTCOMES.map((one) =>
      h("li", {}, h("i", { class: one }), words(one), h("b", {}, whole(totals[one])), ` ${share(totals[one])}`),
    ),
  );
  chart(buckets, totals);
  minutes(buckets);
  const scorers = Object.entries(record.scorers);
  const known = OUTCOMES.filter((outcome) => scorers.some(([, counts]) => counts[outcome]));
  list("t-scorers", "h-scorers", [["scorer"], ...numeric([...known, "all"])],
    scorers.map(([scorer, counts]) => [scorer === "none" ? "(none was asked)" : scorer, ...numbers(counts, known)]),
    "Nothing yet.");
  const reasons = Object.entries(record.reasons).sort((a, b) => b[1] - a[1]);
  const said = reasons.map(([reason, number]) => `${whole(number)} ${reason}`);
  $("reasons").hidden = !said.length;
  $("reasons").textContent = seen(`Since the start: ${said.join(", ")}`);
  list("t-ungraded", "h-ungraded",
    [["rollout", "mono"], ["time", "time"], ["recipe"], ["scorer"], ["reason", "time"], ["explanation"]],
    record.ungraded.map((row) => [
      row.id || "–", clock(row.time), row.recipe, row.scorer ?? "–", row.reason, row.explanation || "–",
    ]),
    "None.", true);
  list("t-slow", "h-slow",
    [["rollout", "mono"], ["time", "time"], ["recipe"], ["scorer"], ["took", "num"], ["outcome"]],
    record.slow.map((row) => [
      row.id || "–", clock(row.time), row.recipe, row.scorer ?? "–", lasts(row.seconds), words(row.outcome),
    ]),
    "None.", true);
}

const numeric = (names) => names.map((name) => [words(name), "num"]);

function numbers(counts, names) {
  return [...names.map((name) => whole(counts[name] ?? 0)), whole(sum(Object.values(counts)))];
}

function outcomesOf(buckets) {
  const count = (outcome) => sum(buckets.map((bucket) => bucket.outcomes[outcome] ?? 0));
  return Object.fromEntries(OUTCOMES.map((outcome) => [outcome, count(outcome)]));
}

function spoken(counts) {
  const some = OUTCOMES.filter((outcome) => counts[outcome]);
  return some.map((outcome) => `${whole(counts[outcome])} ${words(outcome)}`).join(", ") || "no rollouts";
}

function chart(buckets, totals) {
  const width = Math.max(200, $("chart").clientWidth);
  const end = (Math.floor(now / COLUMN_S) + 1) * COLUMN_S;
  const first = end - COLUMNS * COLUMN_S;
  draw("chart", [buckets, end, width], () => {
    const columns = Array.from({ length: COLUMNS }, (_, place) => {
      const start = first + place * COLUMN_S;
      return outcomesOf(buckets.filter((bucket) => bucket.start >= start && bucket.start < start + COLUMN_S));
    });
    const most = Math.max(...columns.map((counts) => sum(Object.values(counts)))) / COLUMN_S;
    const [top, step] = scale(most);
    const [left, right, above, bottom] = [48, 6, 8, 196];
    const x = (place) => left + ((width - left - right) * place) / COLUMNS;
    const y = (rate) => bottom - ((bottom - above) * rate) / top;
    const wide = x(1) - x(0);
    const gap = width > 500 ? 2 : 1;
    const parts = [];
    for (let rate = 0; rate < top + step / 2; rate += step) {
      const height = { y1: y(rate), y2: y(rate) };
      parts.push(svg("line", { x1: left, x2: width - right, ...height, class: rate ? "grid" : "base" }));
      parts.push(svg("text", { x: left - 8, y: y(rate) + 4, "text-anchor": "end" }, short(rate)));
    }
    columns.forEach((counts, place) => {
      const group = svg("g", {}, svg("title", {}, `${clock(first + place * COLUMN_S)}: ${spoken(counts)}`));
      group.append(svg("rect", { class: "hit", x: x(place), y: above, width: wide, height: bottom - above }));
      let from = 0;
      for (const outcome of OUTCOMES) {
        if (!counts[outcome]) continue;
        const to = from + counts[outcome] / COLUMN_S;
        const size = { y: y(to), height: Math.max(1, y(from) - y(to)) };
        group.append(svg("rect", { class: outcome, x: x(place) + gap / 2, width: wide - gap, ...size }));
        from = to;
      }
      parts.push(group);
    });
    const every = width > 500 ? 180 : 300;
    for (let time = Math.ceil(first / every) * every; time < end; time += every) {
      const middle = x((time - first) / COLUMN_S);
      if (middle < left + 14 || middle > width - right - 14) continue;
      parts.push(svg("text", { x: middle, y: 214, "text-anchor": "middle" }, clock(time, true)));
    }
    if (!most) {
      const place = { x: (width + left) / 2, y: 100, "text-anchor": "middle" };
      parts.push(svg("text", place, "No rollouts in the last 15 minutes"));
    }
    const text = `${spoken(totals)}; at most ${short(most)} rollouts per second.`;
    const attributes = { width, height: 220, role: "img", "aria-labelledby": "h-chart", "aria-describedby": "said" };
    return [svg("svg", attributes, svg("desc", { id: "said" }, text), ...parts)];
  });
}

// The end of the axis, and the distance of its marks: up to five of them, at 1, 2 or 5 times a power of ten.
function scale(most) {
  if (!most) return [1, 1];
  const power = 10 ** Math.floor(Math.log10(most / 5));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor * 5 >= most);
  return [Math.ceil(most / step - 1e-9) * step, step];
}

function minutes(buckets) {
  if (!$("minutes").open) return;
  const of = (bucket) => Math.floor(bucket.start / 60);
  const begun = [...new Set(buckets.map(of))].reverse();
  list("t-minutes", "h-chart", [["minute", "time"], ...numeric([...OUTCOMES, "all"])],
    begun.map((minute) => {
      const counts = outcomesOf(buckets.filter((bucket) => of(bucket) === minute));
      return [clock(minute * 60, true), ...numbers(counts, OUTCOMES)];
    }),
    "No rollouts in the last 15 minutes.");
}

function queued(queue) {
  const dead = queue.dead_letters;
  facts("queue-facts", [
    ["Redis", queue.reachable ? "answers" : "is away", "", !queue.reachable],
    ["Jobs not done", whole(queue.jobs)],
    ["Batches at workers", whole(queue.leased)],
    ["Open groups", whole(queue.open_groups)],
    ["Dead letters", whole(dead), dead ? "see: rewarden dead list" : "", dead > 0],
  ]);
  list("t-kinds", "h-kinds", [["kind"], ["batches", "num"], ["oldest", "num"]],
    Object.entries(queue.kinds).map(([kind, one]) => [kind, whole(one.batches), one.batches ? lasts(one.age_s) : "–"]),
    "No job has come yet.");
  list("t-workers", "h-workers",
    [["worker", "mono"], ["host"], ["kinds"], ["busy", "num"], ["graded", "num"], ["up", "num"]],
    queue.workers.map((one) => [
      one.name, one.host, one.kinds.join(", "), `${one.busy} of ${one.slots}`, whole(one.graded),
      lasts(Math.max(0, Math.floor(now - one.started))),
    ]),
    "No worker lives: nothing in the queue is graded. Start one with: rewarden worker");
}

// Asking

const key = () => sessionStorage.getItem(KEY);

async function call(path, { limit = PATIENCE_MS, headers = {}, ...options } = {}) {
  if (key()) headers.Authorization = `Bearer ${key()}`;
  const limits = { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(limit) };
  const answer = await fetch(path, { ...options, headers, ...limits });
  return { answer, body: await answer.json() };
}

function notice(text) {
  if ($("notice").textContent !== text) $("notice").textContent = text;
  $("notice").hidden = !text;
}

function again(wait = EVERY_MS) {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(poll, wait);
}

async function poll() {
  if (asking || document.hidden) return;
  asking = true;
  const shown = key();
  const found = await call("v1/status").catch(() => null);
  asking = false;
  if (shown !== key()) {
    again(0);
  } else if (!found) {
    away("The service does not answer.");
  } else if (found.answer.ok) {
    status = found.body;
    const date = (Date.parse(found.answer.headers.get("date")) || Date.now()) / 1000; // may lag by a second
    now = Math.max(date, ...[status, status.queue?.graded].map((record) => record?.buckets?.at(-1)?.start ?? 0));
    document.body.classList.remove("stale");
    $("ask").hidden = true;
    notice("");
    again();
    show();
  } else if ([401, 403].includes(found.answer.status)) {
    refused(found.body);
  } else {
    away(`The service answers ${found.answer.status}: ${seen(String(found.body.detail))}.`);
  }
}

function away(why) {
  pill("Away", "bad");
  document.body.classList.add("stale");
  const last = status ? ` What is below is as of ${clock(now)}.` : "";
  notice(`${why} Trying again every ${EVERY_MS / 1000} s.${last}`);
  again();
}

// The service wants a key, or another one. It is not asked again until there is one.
function refused(problem) {
  status = null;
  $("status").hidden = true;
  document.body.classList.remove("stale");
  for (const id of ["version", "uptime", "updated"]) $(id).textContent = "";
  notice("");
  if (problem.code === "foreign_host") {
    pill("Not allowed", "bad");
    notice(`The service refuses this page: ${seen(problem.detail)}.`);
    return;
  }
  const why = {
    no_key: "This service answers only with an API key.",
    bad_key: "The service does not take this key: it is unknown, revoked or has expired.",
    wrong_scope: "This key may not see the status: it lacks the scope admin. Use another one, or only try a rollout below.",
  };
  pill("Needs a key", "warn");
  $("ask-why").textContent = why[problem.code] ?? seen(String(problem.detail));
  $("ask").hidden = false;
  if (problem.code === "wrong_scope") return;
  forget();
  $("key").focus();
}

function forget() {
  sessionStorage.removeItem(KEY);
  $("forget").hidden = true;
  $("try").hidden = true;
}

async function offers() {
  const shown = key();
  const found = await call("v1/scorers").catch(() => null);
  if (!found) {
    setTimeout(offers, EVERY_MS);
    return;
  }
  const { answer, body } = found;
  if (answer.status === 401 || shown !== key()) return; // the status asks for the key
  $("try").hidden = false;
  $("rollout").hidden = !answer.ok;
  if (!answer.ok) {
    complain(`A rollout cannot be tried here: ${body.detail}.`);
    return;
  }
  recipes = body.recipes;
  $("recipe").replaceChildren(...recipes.map((one) => h("option", { value: one.name }, one.name)));
  about();
}

function about() {
  const one = recipes.find((recipe) => recipe.name === $("recipe").value);
  if (!one) return;
  const alone = one.unit === "rollout" ? "" : " It may compare the members of a group; here there is one.";
  const needs = one.needs ? ` Missing here: ${one.needs}.` : "";
  $("about").textContent = seen(`${one.description} Reads: ${one.reads.map(words).join(", ")}.${alone}${needs}`);
}

// The verdict

const judge = (...parts) => $("verdict").replaceChildren(...parts);
const complain = (text) => judge(h("p", { class: "notice" }, text));

async function grade() {
  const rollout = { id: "try", completion: $("completion").value };
  const reference = $("reference").value;
  if ($("prompt").value) rollout.prompt = $("prompt").value;
  if (reference) rollout.reference = reference;
  if ($("json").checked) {
    try {
      rollout.reference = JSON.parse(reference);
    } catch (error) {
      complain(`The reference is not JSON: ${error.message}`);
      return;
    }
  }
  $("grade").disabled = true;
  judge(h("p", { class: "quiet" }, "Grading ..."));
  const found = await call("v1/score", {
    method: "POST",
    limit: GRADING_MS,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ recipe: $("recipe").value, rollouts: [rollout] }),
  }).catch(() => null);
  $("grade").disabled = false;
  if (!found) complain("The service did not answer: there is no verdict. Try again.");
  else if (found.answer.ok) verdict(found.body.verdicts[0]);
  else complain(`${found.body.title}: ${found.body.detail}.`);
}

function verdict(found) {
  const reward = found.reward === null ? "no reward" : `reward ${found.reward}`;
  const outcome = h("span", { class: `pill ${KINDS[found.outcome] ?? ""}` }, words(found.outcome));
  const { name, version, digest } = found.scorer ?? {};
  const scorer = name && `${name}@${version}, digest ${digest}`;
  const told = Object.entries({ reason: found.reason, explanation: found.explanation, scorer });
  const parts = ["components", "advantage", "step_rewards", "spans", "evidence"].filter((part) => found[part] !== undefined);
  judge(
    h("p", { class: "result" }, outcome, h("b", {}, reward)),
    tree(Object.fromEntries(told.filter(([, value]) => value))),
    ...parts.flatMap((part) => [h("h3", {}, words(part)), tree(found[part])]),
    h("details", {}, h("summary", {}, "As JSON"), h("pre", { tabindex: "0" }, JSON.stringify(found, null, 2))),
  );
}

function tree(value) {
  if (value === null || typeof value !== "object") return h("span", { class: "said" }, value ?? "none");
  const entries = Object.entries(value);
  if (!entries.length) return h("span", {}, "none");
  const name = (one) => (Array.isArray(value) ? Number(one) + 1 : words(one));
  return h("dl", { class: "tree" }, ...entries.flatMap(([one, inner]) => [h("dt", {}, name(one)), h("dd", {}, tree(inner))]));
}

// The beginning

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value.trim());
  $("key").value = "";
  $("forget").hidden = false;
  poll();
  offers();
});
$("forget").addEventListener("click", () => {
  forget();
  location.reload(); // what the key has shown goes too
});
$("rollout").addEventListener("submit", (event) => {
  event.preventDefault();
  grade();
});
$("source").addEventListener("change", (event) => {
  source = event.target.value;
  show();
});
$("recipe").addEventListener("change", about);
$("minutes").addEventListener("toggle", () => status && show());
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  poll();
});
new ResizeObserver(() => status && show()).observe($("chart"));
$("forget").hidden = !key();
poll();
offers();

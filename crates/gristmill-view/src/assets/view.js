// Steps through the frames of a game without loading the page again; puts names of columns into conditions.
// Pages are whole without it: it only asks the server for parts of the page that it made.

// While a search runs, its page loads itself again.
const busy = document.querySelector("[data-again]");
if (busy) setTimeout(() => location.reload(), 1000 * Number(busy.dataset.again));

const game = document.querySelector("[data-game]");
if (game) scrub(game);

for (const word of document.querySelectorAll("[data-word]")) {
  const box = document.querySelector("#where");
  word.tabIndex = 0;
  word.setAttribute("role", "button");
  const put = () => {
    const space = box.value && !box.value.endsWith(" ") ? " " : "";
    box.value += space + word.textContent + " ";
    box.focus();
  };
  word.addEventListener("click", put);
  word.addEventListener("keydown", (event) => event.key === "Enter" && put());
}

// `/` leads to the condition, as in many programs.
document.addEventListener("keydown", (event) => {
  const box = document.querySelector("#where");
  if (!box || event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  box.focus();
  box.select();
});

// The last word of a condition is completed, and what stands before it stays.
for (const box of document.querySelectorAll("input[list]")) {
  const names = [...box.list.options].map((option) => option.value);
  box.addEventListener("input", () => {
    const [, before, word] = box.value.match(/^(.*?)(\w*)$/s);
    const fitting = names.filter((name) => word && name !== word && name.startsWith(word));
    const shown = before || word ? fitting : names;
    box.list.replaceChildren(...shown.map((name) => new Option("", before + name)));
  });
}

// A brush over the bars of a column keeps the games of its range.
for (const form of document.querySelectorAll("[data-range]")) {
  const bars = [...form.closest(".card").querySelectorAll(".bars a")];
  let from = -1;
  let to = -1;
  const mark = () => bars.forEach((bar, i) => {
    bar.classList.toggle("chosen", from >= 0 && i >= Math.min(from, to) && i <= Math.max(from, to));
  });
  for (const [i, bar] of bars.entries()) {
    bar.addEventListener("dragstart", (event) => event.preventDefault());
    bar.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      [from, to] = [i, i];
      mark();
    });
    bar.addEventListener("pointerenter", (event) => {
      if (from < 0 || !event.buttons) return;
      to = i;
      mark();
    });
    bar.addEventListener("click", (event) => from !== to && event.preventDefault());
  }
  document.addEventListener("pointerup", () => {
    if (from >= 0 && from !== to) {
      const chosen = [bars[Math.min(from, to)], bars[Math.max(from, to)]];
      form.elements.from.value = chosen[0].dataset.from;
      form.elements.to.value = chosen[1].dataset.to;
      form.requestSubmit();
    } else {
      from = -1;
      mark();
    }
  });
}

function scrub(game) {
  const base = game.dataset.game;
  const last = Number(game.dataset.frames) - 1;
  const slider = game.querySelector("[data-slider]");
  const number = game.querySelector("[data-number]");
  const play = game.querySelector("[data-play]");
  const says = game.querySelector("#says");
  const cursors = game.querySelectorAll(".cursor");
  const parts = new Map();
  let at = Number(game.querySelector("#frame").dataset.frame);
  let wanted = at;
  let playing = 0;

  for (const hidden of game.querySelectorAll("[hidden]")) hidden.hidden = false;
  game.querySelector("[data-go]").hidden = true;

  // The newest parts are kept, those of frames long ago are not.
  function part(frame) {
    if (!parts.has(frame)) {
      if (parts.size > 200) parts.delete(parts.keys().next().value);
      const got = fetch(`${base}frame/${frame}`).then((answer) => {
        if (!answer.ok) throw new Error(`${answer.status}`);
        return answer.text();
      });
      got.catch(() => parts.delete(frame));
      parts.set(frame, got);
    }
    return parts.get(frame);
  }

  async function show(frame) {
    wanted = Math.max(0, Math.min(last, frame));
    const own = wanted;
    slider.value = own;
    if (document.activeElement !== number) number.value = own;
    for (const cursor of cursors) {
      const x = last ? (own / last) * 1000 : 500;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    let text;
    try {
      text = await part(own);
    } catch (error) {
      says.textContent = `The server does not answer (${error.message}).`;
      return stop();
    }
    if (own !== wanted) return;
    at = own;
    const made = new DOMParser().parseFromString(text, "text/html").querySelector("#frame");
    game.querySelector("#frame").replaceWith(made);
    if (!playing) says.textContent = made.dataset.says;
    const to = { first: 0, back: at - 1, on: at + 1, last };
    for (const link of game.querySelectorAll("[data-step]")) {
      const frame = Math.max(0, Math.min(last, to[link.dataset.step]));
      link.href = address(frame);
      link.toggleAttribute("aria-disabled", frame === at);
    }
    remember();
    for (const near of [at + 1, at - 1]) if (near >= 0 && near <= last) part(near).catch(() => {});
  }

  // Browsers refuse addresses that change too often.
  let noted = 0;
  function remember() {
    clearTimeout(noted);
    noted = setTimeout(() => history.replaceState(null, "", address(at)), 150);
  }

  // What was chosen of the games stays in the address.
  function address(frame) {
    const query = new URLSearchParams(location.search);
    query.set("frame", frame);
    return `?${query}`;
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  }

  function toggle() {
    if (playing) return stop();
    if (at === last) show(0);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Stop");
    playing = setInterval(() => {
      if (wanted !== at) return;
      if (at === last) return stop();
      show(at + 1);
    }, 220);
  }

  // Boards stay turned from game to game.
  const flips = game.querySelector(".board") !== null;
  game.querySelector("[data-flips]").hidden = !flips;
  const flip = (turned) => {
    game.classList.toggle("flipped", turned);
    sessionStorage.setItem("flipped", turned ? "1" : "");
  };
  flip(sessionStorage.getItem("flipped") === "1");

  slider.addEventListener("input", () => show(Number(slider.value)));
  number.addEventListener("change", () => show(Number(number.value) || 0));
  number.form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(Number(number.value) || 0);
  });
  play.addEventListener("click", toggle);
  game.querySelector(".steps").addEventListener("click", (event) => {
    const link = event.target.closest("[data-step]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show({ first: 0, back: wanted - 1, on: wanted + 1, last }[link.dataset.step]);
  });
  for (const chart of game.querySelectorAll("[data-chart]")) {
    const seek = (event) => {
      const box = chart.getBoundingClientRect();
      show(Math.round(((event.clientX - box.left) / box.width) * last));
    };
    chart.addEventListener("pointerdown", (event) => {
      chart.setPointerCapture(event.pointerId);
      seek(event);
    });
    chart.addEventListener("pointermove", (event) => event.buttons && seek(event));
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const own = event.target.closest("input, textarea, select");
    if (own && !(own === slider && event.key === " ")) return;
    if (event.key === " " && event.target.closest("button, a, summary, [role=button]")) return;
    const steps = { ArrowLeft: wanted - 1, ArrowRight: wanted + 1, PageUp: wanted - 10, PageDown: wanted + 10, Home: 0, End: last };
    if (event.key in steps) show(steps[event.key]);
    else if (event.key === " ") toggle();
    else if (event.key === "f" && flips) flip(!game.classList.contains("flipped"));
    else if (event.key === "[") document.querySelector("[data-game-prev]")?.click();
    else if (event.key === "]") document.querySelector("[data-game-next]")?.click();
    else return;
    event.preventDefault();
  });
}

// A run is renewed each second; what people have opened, marked or moved stays as they left it.
const run = document.querySelector("[data-run]");
if (run) follow(run);

function follow(run) {
  const says = run.querySelector("#says");
  const gone = run.querySelector("#gone");
  const pause = run.querySelector("[data-pause]");
  let still = false;
  for (const hidden of run.querySelectorAll("[data-keys]")) hidden.hidden = false;

  function put(made) {
    const old = run.querySelector("#run");
    const moved = [...old.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
    const links = [...old.querySelectorAll("a, [tabindex]")];
    const focused = links.indexOf(document.activeElement);
    if (made.dataset.state !== old.dataset.state) says.textContent = `The run is: ${made.dataset.state}.`;
    old.replaceWith(made);
    made.querySelectorAll(".wide").forEach((wide, i) => (wide.scrollLeft = moved[i] || 0));
    if (focused >= 0) made.querySelectorAll("a, [tabindex]")[focused]?.focus({ preventScroll: true });
  }

  async function renew() {
    const marks = !getSelection().isCollapsed;
    if (!still && !marks && !document.hidden) {
      try {
        const answer = await fetch(run.dataset.run + location.search);
        if (!answer.ok) throw new Error(`${answer.status}`);
        const made = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#run");
        if (!still) put(made);
        gone.hidden = true;
      } catch (error) {
        gone.textContent = `gristmill view does not answer (${error.message}); these are the last numbers.`;
        gone.hidden = false;
      }
    }
    setTimeout(renew, 1000);
  }

  function hold() {
    still = !still;
    pause.setAttribute("aria-pressed", still);
    run.classList.toggle("held", still);
  }

  pause.addEventListener("click", hold);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "p" || event.ctrlKey || event.metaKey || event.altKey) return;
    hold();
  });
  setTimeout(renew, 1000);
}

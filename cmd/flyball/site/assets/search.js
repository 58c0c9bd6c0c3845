// The search: it shows the sections that have all words, those with the words in their heading first. The glossary comes
// before the rest of the book, and the book before the other pages.
"use strict";
const program = document.getElementById("search-program");
const root = program.dataset.root;
const field = document.getElementById("search");
const list = document.getElementById("found");
const most = 20;
let chosen = -1;

field.disabled = false;

// load runs the script with the sections, once.
let loading;
function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + "assets/sections.js";
    script.onload = () => resolve(globalThis.flyballSections.map((s) => ({
      ...s, head: (s.page + " " + s.heading).toLowerCase(), all: (s.page + " " + s.heading + " " + s.text).toLowerCase(),
    })));
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

// found returns the best sections for the words.
function found(sections, words) {
  const scored = [];
  for (const s of sections) {
    if (!words.every((w) => s.all.includes(w))) continue;
    let score = s.address.includes("#term-") ? 90 : s.address.startsWith("docs/book/") ? 60 : 0;
    for (const w of words) {
      score += s.head.includes(w) ? 100 : Math.min(s.all.split(w).length - 1, 10);
    }
    scored.push([score, s]);
  }
  return scored.sort((a, b) => b[0] - a[0]).slice(0, most).map(([, s]) => s);
}

// excerpt returns the text around the first of the words.
function excerpt(text, words) {
  const at = Math.min(...words.map((w) => text.toLowerCase().indexOf(w)).filter((i) => i >= 0), text.length);
  const from = text.lastIndexOf(" ", at - 50) + 1;
  return (from > 0 ? "…" : "") + text.slice(from, from + 150) + "…";
}

async function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  chosen = -1;
  if (words.length === 0) return hide();
  const sections = await load();
  const items = found(sections, words).map((s, i) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const where = document.createElement("small");
    item.id = "found-" + i;
    link.href = root + s.address;
    link.textContent = s.heading === s.page ? s.page : s.page + " › " + s.heading;
    where.textContent = excerpt(s.text, words);
    link.append(where);
    item.append(link);
    return item;
  });
  if (items.length === 0) {
    const item = document.createElement("li");
    item.textContent = "No section has these words.";
    items.push(item);
  }
  list.replaceChildren(...items);
  list.hidden = false;
  field.setAttribute("aria-expanded", "true");
}

function hide() {
  list.hidden = true;
  field.setAttribute("aria-expanded", "false");
}

function choose(step) {
  const items = [...list.querySelectorAll("li:has(a)")];
  if (items.length === 0) return;
  chosen = (chosen + step + items.length) % items.length;
  items.forEach((item, i) => item.setAttribute("aria-selected", i === chosen));
  items[chosen].scrollIntoView({block: "nearest"});
  field.setAttribute("aria-activedescendant", items[chosen].id);
}

field.addEventListener("input", show);
field.addEventListener("keydown", (e) => {
  switch (e.key) {
    case "ArrowDown": choose(1); break;
    case "ArrowUp": choose(-1); break;
    case "Escape": field.value = ""; hide(); return;
    case "Enter": list.querySelectorAll("li a")[Math.max(chosen, 0)]?.click(); break;
    default: return;
  }
  e.preventDefault();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.target.closest("input, textarea")) {
    e.preventDefault();
    field.focus();
  }
});
document.addEventListener("click", (e) => {
  if (!e.target.closest("header")) hide();
});

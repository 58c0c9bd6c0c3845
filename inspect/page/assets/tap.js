// Step mode: what is held up, and what lets it through. A process offers it if its API server is in the process too.

import {chapter, duration, el, get, list, many, say, show} from './dom.js';

const stages = [
  {name: 'event', title: 'Event', chapter: '02-list-and-watch',
    says: 'A watch is about to bring this change: the server has it, the program does not know of it yet.'},
  {name: 'delta', title: 'Delta', chapter: '06-informers',
    says: 'The cache has this change, and the handlers, which make keys of changes, do not know of it yet.'},
  {name: 'key', title: 'Key', chapter: '07-workqueue',
    says: 'A worker has taken this key from the queue, and its reconcile is about to begin.'},
  {name: 'write', title: 'Write', chapter: '09-read-your-writes',
    says: 'A reconcile asks the server for this change, and its cache will not have it before the event comes back.'},
];

// explained are the chapters about single controllers.
const explained = {
  'deployment-controller': '11-deployment', 'replicaset-controller': '11-deployment',
  'endpoints-controller': '10-endpoints', 'endpointslice-controller': '10-endpoints',
};

const faults = {
  '': 'No fault',
  'conflict': 'Conflict: the server refuses it with 409',
  'lost answer': 'Lost answer: it takes effect, the program does not hear of it',
  'cut watch': 'Cut watch: it takes effect, and the watch ends at the next event',
  'crash': 'Crash: it takes effect, and the program ends before the answer',
};

const delays = [0.2, 0.5, 1, 3]; // in seconds

// period is the time between two questions about the state, in milliseconds; soon is that after a step was let through.
const period = 500;
const soon = 100;

/** TapPanel is the panel above the views. It is hidden if the process does not offer step mode. */
export class TapPanel {
  offers = false;
  asked = 0; // how many requests were sent; the answer to an older one than the last counts no more

  waiting = []; // what is held up

  /** held is called with what is held up, whenever that may have changed. */
  constructor(root, held) {
    this.root = root;
    this.changed = held;
    this.words = el('p', {class: 'words', role: 'status'});
    this.problem = el('p', {class: 'problem', role: 'alert', hidden: true});
    this.pause = this.mode('Pause', () => this.do({do: 'pause'}));
    this.slow = this.mode('Slow motion', () => this.open());
    this.full = this.mode('Full speed', () => this.do({do: 'open'}));
    this.delay = el('select', {
      'aria-label': 'Slow motion', change: () => this.state?.delay && !this.state.paused && this.open(),
    }, delays.map((s) => el('option', {value: s + 's', selected: s === 1}, s + ' s a step')));
    this.next = this.step('', 'Next step', 'the step that has been held up for the longest time');
    this.steps = stages.map((s) => this.step(s.name, s.title, s.says));
    this.fault = el('select', {id: 'fault', change: () => this.do({do: 'inject', fault: this.fault.value})});
    this.held = el('ol', {class: 'held', 'aria-label': 'Held up, oldest first'});
    this.happened = el('p', {class: 'note', hidden: true});
    root.replaceChildren(
      el('div', {class: 'line'}, el('h2', {}, 'Step mode'),
        el('div', {class: 'modes', role: 'group', 'aria-label': 'Speed'}, this.pause, this.slow, this.full),
        this.delay, this.words),
      el('div', {class: 'line'},
        el('div', {class: 'steps', role: 'group', 'aria-label': 'Let one step through'},
          el('span', {class: 'label'}, 'Let through'), this.next, this.steps),
        el('div', {class: 'fault'}, el('label', {class: 'label', for: 'fault'}, 'At the next write'), this.fault)),
      this.problem, this.held, this.happened);
  }

  mode(text, click) {
    return el('button', {type: 'button', 'aria-pressed': 'false', click}, text);
  }

  /** step returns a button that lets the oldest step of a stage through. */
  step(stage, text, more) {
    const number = el('b', {});
    const button = el('button', {type: 'button', title: more, click: () => {
      // A disabled button would lose the focus, which the next step needs again.
      if (button.getAttribute('aria-disabled') === 'false') {
        this.do({do: 'step', stage});
      }
    }}, text, ' ', number);
    button.set = (n) => {
      say(number, n);
      button.setAttribute('aria-disabled', String(n === 0));
    };
    return button;
  }

  open() {
    return this.do({do: 'open', delay: this.delay.value});
  }

  /** offer shows the panel if the process offers step mode. */
  offer({tap: offers = false, book}) {
    this.book = book;
    if (this.offers !== offers) {
      this.offers = offers;
      show(this.root, offers);
      this.ask();
    }
  }

  /** ask asks for the state, from now on again and again. */
  async ask() {
    clearTimeout(this.timer);
    if (!this.offers) {
      return;
    }
    const number = ++this.asked;
    try {
      const state = document.hidden ? this.state : await get('tap');
      if (number === this.asked) {
        this.draw(state);
      }
    } catch {
      // The head of the page says that the process is gone.
    }
    if (number === this.asked) {
      this.timer = setTimeout(() => this.ask(), period);
    }
  }

  /** do changes the state. */
  async do(parameters) {
    clearTimeout(this.timer);
    const number = ++this.asked;
    try {
      const state = await get('tap?' + new URLSearchParams(parameters), undefined, 'POST');
      if (number === this.asked) {
        show(this.problem, false);
        this.draw(state);
      }
    } catch (err) {
      say(this.problem, err.name === 'TypeError' ? 'The process does not answer.' : err.message);
      show(this.problem, true);
    }
    if (number === this.asked) {
      // What the step leads to is held up in a moment.
      this.timer = setTimeout(() => this.ask(), soon);
    }
  }

  draw(state) {
    if (!state) {
      return;
    }
    this.state = state;
    this.changed(this.waiting = state.waiting);
    const focused = this.held.contains(document.activeElement);
    const n = state.waiting.length;
    say(this.words, !state.paused ? (state.delay ? `Each step waits ${duration(state.delay)}.` : 'Nothing is held up.') :
      n ? many(n, 'step is', 'steps are') + ' held up.' : 'Paused. No step is on its way.');
    [[this.pause, state.paused], [this.slow, !state.paused && state.delay], [this.full, !state.paused && !state.delay]]
      .forEach(([button, on]) => button.setAttribute('aria-pressed', String(Boolean(on))));
    this.next.set(n);
    stages.forEach((s, i) => this.steps[i].set(state.waiting.filter((w) => w.stage === s.name).length));
    list(this.fault, ['', ...state.faults], (f) => f, (f) => el('option', {value: f}, faults[f] ?? f));
    this.choose(this.fault, state.fault ?? '');
    this.choose(this.delay, state.delay ? state.delay / 1e9 + 's' : this.delay.value);
    list(this.held, state.waiting, (w) => w.id, (w) => this.row(w), (row, w) => row.update(w));
    show(this.held, state.paused && n > 0); // In slow motion, a row would be there for a moment only.
    if (focused && !this.held.contains(document.activeElement)) {
      (this.held.querySelector('button') ?? this.next).focus();
    }
    const last = state.happened ?? [];
    say(this.happened, 'Happened: ' + last.slice(-3).reverse().join('; '));
    show(this.happened, last.length > 0);
  }

  /** choose sets a selector to what the process has, unless that is what it had before: the reader may be choosing. */
  choose(selector, value) {
    if (selector.told !== value) {
      selector.told = selector.value = value;
    }
  }

  row(w) {
    const since = el('span', {class: 'since'});
    const stage = stages.find((s) => s.name === w.stage);
    const row = el('li', {}, el('span', {class: 'chip ' + w.stage}, stage?.title ?? w.stage),
      el('bdi', {}, w.text), since,
      el('button', {type: 'button', click: () => this.do({do: 'release', id: w.id})}, 'Let through'),
      el('p', {class: 'says'}, stage?.says, ' See ',
        chapter(explained[w.controller] ?? stage?.chapter, this.book), '.'));
    row.update = () => say(since, duration(Math.max(0, Date.now() - new Date(w.since)) * 1e6));
    return row;
  }
}

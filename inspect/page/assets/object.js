// One object: why nothing happens to it, and what has happened.

import {address, clock, count, duration, el, get, list, many, nameOf, objectAddress, query, say, show} from './dom.js';

const stages = {
  event: 'Event', cache: 'Cache', handler: 'Handler', reconcile: 'Reconcile', read: 'Read', log: 'Log', write: 'Write',
};

/** ObjectView shows one object, or those that have steps. */
export class ObjectView {
  constructor([resource, namespace, name]) {
    this.asked = new AbortController();
    this.problem = el('p', {class: 'problem', role: 'alert', hidden: true});
    if (!name) {
      this.title = 'Objects';
      this.overview();
      return;
    }
    this.object = {resource, namespace, name};
    this.title = `${resource} ${nameOf(this.object)}`;
    this.entries = new Map(); // by number
    this.newestFirst = true;
    this.answers = el('ul', {class: 'answers'}, el('li', {}, 'Looking.'));
    this.number = el('p', {class: 'note'});
    this.order = el('button', {type: 'button', click: () => this.turn()}, 'Oldest first');
    this.rows = el('tbody', {});
    this.root = el('div', {class: 'object'}, this.problem,
      el('section', {class: 'why'}, el('h2', {}, 'What is happening, or why nothing is'), this.answers,
        el('p', {class: 'note'}, el('a', {href: objectAddress(this.object, 'caches')}, 'Compare the cache with the server'))),
      el('section', {},
        el('div', {class: 'head'}, el('h2', {}, 'Timeline'), this.order), this.number,
        el('table', {class: 'timeline'},
          el('thead', {}, el('tr', {}, ['Step', 'Time', 'Stage', 'Controller', 'What happened']
            .map((c) => el('th', {scope: 'col'}, c)))), this.rows)));
    this.check();
  }

  close() {
    this.asked.abort();
  }

  /** overview lists the objects with the newest steps. */
  async overview() {
    const found = el('ul', {class: 'recent'});
    this.root = el('div', {}, el('p', {}, 'These objects have the newest steps. Press / to find another.'),
      this.problem, found);
    try {
      const objects = await get('objects', this.asked.signal);
      found.append(...objects.map((o) => el('li', {}, el('a', {href: objectAddress(o)},
        el('span', {class: 'kind'}, o.resource), el('bdi', {}, nameOf(o))))));
      show(found, objects.length > 0);
      if (objects.length === 0) {
        this.fail('Nothing has been recorded yet.');
      }
    } catch (err) {
      this.fail(err.message);
    }
  }

  /** check asks once, because the stream cannot say why it does not open: perhaps there is no such resource. */
  async check() {
    try {
      const t = await get('object?' + query(this.object), this.asked.signal);
      if (t.object.resource !== this.object.resource) {
        location.replace(objectAddress(t.object));
      }
    } catch (err) {
      if (err.name !== 'AbortError' && err.name !== 'TypeError') {
        this.fail(err.message);
      }
    }
  }

  fail(text) {
    say(this.problem, text);
    show(this.problem, true);
  }

  /** restart drops what another process has told. */
  restart() {
    this.entries?.clear();
  }

  why(lines) {
    list(this.answers, lines, (line) => line, (line) => el('li', {}, line));
  }

  steps(changes) {
    for (const number of changes.gone ?? []) {
      this.entries.delete(number);
    }
    for (const entry of changes.steps) {
      this.entries.set(entry.number, entry);
    }
    this.before = changes.before ?? 0;
    this.draw();
  }

  turn() {
    this.newestFirst = !this.newestFirst;
    say(this.order, this.newestFirst ? 'Oldest first' : 'Newest first');
    this.draw();
  }

  draw() {
    const entries = [...this.entries.values()].sort((a, b) => a.number - b.number);
    const seen = new Map(); // the event that brings a write, or the change that shows it, by the number of the write
    for (const e of entries) {
      if (e.from && !seen.has(e.from)) {
        seen.set(e.from, e);
      }
    }
    if (this.newestFirst) {
      entries.reverse();
    }
    say(this.number, entries.length === 0 ? 'No step of this object is recorded.' :
      many(entries.length, 'step') + (this.before ? `; ${count(this.before)} older ones are forgotten.` : '.'));
    list(this.rows, entries, (e) => e.number, (e) => new Step(e, this).root,
      (row, e) => row.step.update(e, seen.get(e.number), this.entries.get(e.from)));
  }

  /** go moves the focus to a step. */
  go(number) {
    const row = this.rows.keyed?.get(number);
    if (row) {
      row.scrollIntoView({block: 'center'});
      row.focus({preventScroll: true});
    }
  }
}

/** Step is one row of the timeline. */
class Step {
  constructor(e, view) {
    this.view = view;
    this.text = el('bdi', {class: 'text'});
    this.details = el('ul', {class: 'details'});
    this.controller = el('span', {});
    this.links = el('span', {class: 'links'});
    this.root = el('tr', {tabindex: '-1', 'data-number': e.number},
      el('td', {class: 'number'}, '#' + e.number),
      el('td', {class: 'time'}, el('time', {datetime: e.time, title: e.time}, clock(e.time))),
      el('td', {class: 'stage'}, el('span', {class: 'chip ' + e.stage}, stages[e.stage] ?? e.stage)),
      el('td', {class: 'by'}, this.controller),
      el('td', {class: 'what'}, this.text, ' ', this.links, this.details));
    this.root.step = this;
  }

  /** update takes the entry, the event or change that shows this write, and the write that this one shows. */
  update(e, shown, write) {
    say(this.text, e.text);
    say(this.controller, e.controller ? e.controller + (e.run ? '-' + e.run : '') : '');
    this.root.classList.toggle('failed', Boolean(e.failed));
    this.root.classList.toggle('running', Boolean(e.running));
    this.root.classList.toggle('inner', Boolean(e.run) && e.stage !== 'reconcile');
    list(this.details, (e.details ?? []).map((text, n) => ({text, n})), (d) => d.n + d.text,
      (d) => el('li', {}, el('bdi', {}, d.text)));
    const links = [];
    if (e.from) {
      links.push({to: e.from, text: `from write #${e.from}` + (write ? ', ' + later(write, e) : '')});
    }
    if (shown) {
      const back = shown.stage === 'event' ? 'back as event' : 'back in the cache as';
      links.push({to: shown.number, text: `${back} #${shown.number}, ` + later(e, shown)});
    }
    if (e.object) {
      links.push({href: objectAddress(e.object), text: 'its timeline'});
    }
    list(this.links, links, (l) => l.text, (l) => (l.href ? el('a', {href: l.href}, l.text) :
      el('button', {type: 'button', class: 'link', click: () => this.view.go(l.to)}, l.text)));
  }
}

/** later says how much later one step was than another. */
function later(first, second) {
  const ms = new Date(second.time) - new Date(first.time);
  return ms > 0 ? duration(ms * 1e6) + ' later' : 'at once';
}

// The queue of each controller: what is ready, in work, delayed and failing.

import {address, count, duration, el, list, many, perSecond, say, show} from './dom.js';
import {stage} from './pipeline.js';
import {slow, stuck} from './state.js';

/** QueuesView shows one controller, or all of them. */
export class QueuesView {
  constructor([name]) {
    this.name = name;
    this.title = name ? 'Queue of ' + name : 'Queues';
    this.missing = el('p', {class: 'empty', hidden: true}, 'This process has no controller of that name.');
    this.queues = el('div', {class: 'queues'});
    this.root = el('div', {}, name ? el('p', {}, el('a', {href: '#/queues'}, 'All queues')) : null,
      this.missing, this.queues);
  }

  update(samples) {
    const shown = samples.latest.controllers.filter((c) => !this.name || c.name === this.name);
    show(this.missing, shown.length === 0);
    list(this.queues, shown, (c) => c.name, (c) => new Queue(c, Boolean(this.name)).root,
      (node, c) => node.queue.update(c, samples));
  }
}

const tables = [
  {
    field: 'processing', total: 'inFlight', title: 'In work',
    note: 'A worker reconciles each of these now.',
    columns: ['Key', 'For', 'Attempt', 'Because of', 'Once more because of'],
    cells: (k) => [k.key, duration(k.for), attempt(k), causes(k.causes), causes(k.again)],
    level: (k) => (k.for >= stuck ? 'bad' : k.for >= slow ? 'doubtful' : ''),
  },
  {
    field: 'ready', total: 'queued', title: 'Ready',
    note: 'These wait for a worker, the first of them for the next.',
    columns: ['Key', 'For', 'Attempt', 'Because of'],
    cells: (k) => [k.key, k.for ? duration(k.for) : '–', attempt(k), causes(k.causes)],
  },
  {
    field: 'waiting', total: 'delayed', title: 'Delayed',
    note: 'These become ready when their time comes.',
    columns: ['Key', 'Ready in', 'Attempt', 'Why'],
    cells: (k) => [k.key, k.in > 0 ? duration(k.in) : 'now', attempt(k), k.why ?? ''],
  },
  {
    field: 'failures', total: 'failing', title: 'Failing',
    note: 'The last reconcile of each of these has failed.',
    columns: ['Key', 'Failures', 'Error', 'Because of'],
    cells: (k) => [k.key, count(k.attempt), k.why ?? '', causes(k.causes)],
    level: () => 'bad',
  },
];

function attempt(k) {
  return k.attempt ? String(k.attempt + 1) : '1';
}

function causes(texts) {
  return (texts ?? []).map((c) => c.replace(/^because of /, '')).join('; ');
}

class Queue {
  constructor(c, alone) {
    this.numbers = ['Ready', 'In work', 'Delayed', 'Failing', 'Added', 'Reconciled'].map(stage);
    this.summary = el('p', {class: 'note'});
    this.problem = el('p', {class: 'problem', hidden: true});
    this.tables = tables.map((t) => new Table(t));
    this.root = el('section', {class: 'queue'},
      alone ? null : el('h2', {}, el('a', {href: address('queues', c.name)}, c.name)),
      el('div', {class: 'stages six'}, this.numbers), this.summary, this.problem, this.tables.map((t) => t.root));
    this.root.queue = this;
  }

  update(c, samples) {
    const [ready, work, delayed, failing, added, reconciled] = this.numbers;
    ready.set(count(c.queued), c.queued === 1 ? 'key' : 'keys');
    work.set(`${c.inFlight} of ${c.workers}`, 'workers are busy');
    delayed.set(count(c.delayed), c.delayed === 1 ? 'key' : 'keys');
    failing.set(count(c.failing), c.failing === 1 ? 'key' : 'keys', c.failing > 0 ? 'bad' : '');
    added.set(perSecond(samples.controllerRate(c, 'adds')), count(c.adds) + ' in all');
    reconciled.set(perSecond(samples.controllerRate(c, 'reconciles')),
      `${count(c.reconciles)} in all, ${many(c.errors, 'error')}`);
    say(this.summary, `${many(c.stale, 'reconcile was', 'reconciles were')} put off until the cache had an own write.`);
    show(this.summary, c.stale > 0);
    say(this.problem, c.problem ?? '');
    show(this.problem, Boolean(c.problem));
    this.tables.forEach((t) => t.update(c));
  }
}

class Table {
  constructor(t) {
    this.t = t;
    this.title = el('h3', {});
    this.rows = el('tbody', {});
    this.more = el('p', {class: 'more', hidden: true});
    this.root = el('div', {class: 'keys', hidden: true}, this.title, el('p', {class: 'note'}, t.note),
      el('table', {}, el('thead', {}, el('tr', {}, t.columns.map((c) => el('th', {scope: 'col'}, c)))), this.rows),
      this.more);
  }

  update(c) {
    const keys = c[this.t.field] ?? [];
    const total = Math.max(c[this.t.total], keys.length);
    show(this.root, total > 0);
    say(this.title, `${this.t.title} (${count(total)})`);
    list(this.rows, keys, (k) => k.key, () => this.row(), (row, k) => {
      this.t.cells(k).forEach((text, n) => say(row.values[n], text));
      row.className = this.t.level?.(k) ?? '';
      row.warning.textContent = this.t.field === 'processing' && k.for >= stuck ? ' Does it hang?' : '';
    });
    say(this.more, `and ${count(total - keys.length)} more`);
    show(this.more, total > keys.length);
  }

  row() {
    const row = el('tr', {});
    row.values = this.t.columns.map((c) => el('bdi', {}));
    row.warning = el('em', {});
    row.append(...row.values.map((value, n) =>
      el('td', {'data-column': this.t.columns[n]}, value, n === 1 ? row.warning : null)));
    return row;
  }
}

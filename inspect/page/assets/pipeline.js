// The pipeline: from the API server through the caches to the controllers, and back.

import {address, bytes, count, duration, el, list, many, perSecond, say, show, svg} from './dom.js';
import {busy, complaints, slow, stuck} from './state.js';

/** PipelineView draws all resources and controllers, and what goes between them. */
export class PipelineView {
  title = 'Pipeline';

  constructor() {
    this.unwell = el('ul', {class: 'unwell'});
    this.well = el('p', {class: 'well'}, 'Waiting for the first sample.');
    this.resources = el('div', {class: 'lane'});
    this.controllers = el('div', {class: 'lane'});
    this.lines = svg('svg', {'aria-hidden': 'true'});
    this.foot = el('p', {class: 'foot'});
    this.ways = el('div', {class: 'ways'}, this.lines);
    this.drawing = el('div', {class: 'pipeline'},
      this.server = el('div', {class: 'server'}, el('strong', {}, 'API server'),
        el('span', {class: 'down'}, 'lists and watches'), el('span', {class: 'up'}, 'writes')),
      el('section', {class: 'left', 'aria-label': 'Resources'},
        el('h2', {}, 'Resources ', el('small', {}, 'reflector → DeltaFIFO → indexer → handlers')), this.resources),
      this.ways,
      el('section', {class: 'right', 'aria-label': 'Controllers'},
        el('h2', {}, 'Controllers ', el('small', {}, 'queue → workers → writes')), this.controllers));
    this.root = el('div', {}, this.unwell, this.well, this.drawing, this.foot);
    this.root.addEventListener('mouseover', (event) => this.point(event));
    this.root.addEventListener('mouseleave', () => this.mark(''));
    this.root.addEventListener('focusin', (event) => this.point(event));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.drawing);
  }

  close() {
    this.resized.disconnect();
  }

  update(samples) {
    this.samples = samples;
    const p = samples.latest;
    drawComplaints(this.unwell, this.well, p);
    list(this.resources, p.resources, (r) => r.name, (r) => new ResourceCard(r).root,
      (node, r) => node.card.update(r, samples));
    list(this.controllers, p.controllers, (c) => c.name, (c) => new ControllerCard(c).root,
      (node, c) => node.card.update(c, samples));
    say(this.foot, `${many(p.steps, 'step')} recorded of ${many(p.subjects, 'object and key', 'objects and keys')}; ` +
      `those of ${count(p.forgotten)} others are forgotten.`);
    this.draw();
  }

  /** draw draws the ways from resources to controllers. */
  draw() {
    if (!this.samples?.latest || this.ways.offsetWidth === 0) {
      return;
    }
    const at = this.ways.getBoundingClientRect();
    const middle = (lane, name) => {
      const node = lane.keyed?.get(name);
      if (!node) {
        return null;
      }
      const box = node.getBoundingClientRect();
      return box.top + box.height / 2 - at.top;
    };
    this.lines.setAttribute('viewBox', `0 0 ${at.width} ${Math.max(1, at.height)}`);
    const flows = this.samples.latest.flows.filter((f) => f.handled > 0 &&
      middle(this.resources, f.resource) !== null && middle(this.controllers, f.controller) !== null);
    list(this.lines, flows, (f) => f.resource + ' ' + f.controller, () => svg('path'), (path, f) => {
      const from = middle(this.resources, f.resource);
      const to = middle(this.controllers, f.controller);
      const w = at.width;
      path.setAttribute('d', `M0 ${from}C${w / 2} ${from} ${w / 2} ${to} ${w - 3} ${to}`);
      path.flow = f;
      path.classList.toggle('active', (this.samples.flowRate(f, 'handled') ?? 0) > 0);
    });
    this.mark(this.marked);
  }

  /** held lights the stages at which something is held up, and that of the oldest in another way. */
  held(waiting) {
    const card = (lane, name) => lane.keyed?.get(name)?.card.stages;
    const at = waiting.map((w) => ({
      event: () => card(this.resources, w.resource)?.[0],
      delta: () => card(this.resources, w.resource)?.[3],
      key: () => card(this.controllers, w.controller)?.[1],
      write: () => this.server,
    })[w.stage]?.());
    for (const box of [this.server, ...this.drawing.querySelectorAll('.stage')]) {
      const n = at.indexOf(box);
      box.dataset.held = n < 0 ? '' : n === 0 ? 'next' : 'later';
    }
  }

  point(event) {
    this.mark(event.target.closest?.('.card')?.card.key ?? '');
  }

  /** mark makes the ways of one card stand out. */
  mark(key) {
    this.marked = key;
    for (const path of this.lines.children) {
      const mine = key === 'resource ' + path.flow.resource || key === 'controller ' + path.flow.controller;
      path.classList.toggle('marked', mine);
    }
  }
}

/** drawComplaints lists what is unwell, or says that nothing is. */
export function drawComplaints(node, well, p) {
  const all = complaints(p);
  // The words of a complaint change as time goes on; its place does not.
  list(node, all.map((c, n) => ({...c, n})), (c) => c.n, () => el('li', {}, el('a', {})), (item, c) => {
    item.className = c.bad ? 'bad' : 'doubtful';
    item.firstChild.setAttribute('href', address(...c.view));
    say(item.firstChild, c.text);
  });
  show(node, all.length > 0);
  say(well, 'All is well: the caches follow the server, and no key fails.');
  show(well, all.length === 0);
}

/** stage returns a box of a card: a name, a number, and words. */
export function stage(name) {
  const value = el('b', {});
  const words = el('span', {});
  const box = el('div', {class: 'stage'}, el('i', {}, name), value, words);
  box.set = (text, more, level = '') => {
    say(value, text);
    say(words, more);
    box.className = 'stage ' + level;
  };
  return box;
}

/** sparkline draws the rates of the last minute. */
function sparkline() {
  const line = svg('polyline');
  const node = svg('svg', {class: 'spark', viewBox: '0 0 60 16', 'aria-hidden': 'true', preserveAspectRatio: 'none'}, line);
  node.set = (points) => {
    const top = Math.max(...points);
    // A line of nothing, or of one sample, tells nothing.
    node.classList.toggle('none', points.length < 2 || top === 0);
    line.setAttribute('points', points.map((p, n) =>
      `${60 - points.length + n} ${(15 - 13 * p / (top || 1)).toFixed(1)}`).join(' '));
  };
  return node;
}

class ResourceCard {
  constructor(r) {
    this.key = 'resource ' + r.name;
    this.spark = sparkline();
    this.stages = ['Reflector', 'DeltaFIFO', 'Indexer', 'Handlers'].map(stage);
    this.problems = el('ul', {class: 'problems'});
    this.root = el('article', {class: 'card'},
      el('h3', {}, el('a', {href: address('caches', r.name)}, r.name), this.spark),
      el('div', {class: 'stages'}, this.stages), this.problems);
    this.root.card = this;
  }

  update(r, samples) {
    const [reflector, fifo, indexer, handlers] = this.stages;
    const pending = r.handlers.reduce((sum, h) => sum + h.pending, 0);
    const longest = Math.max(0, ...r.handlers.map((h) => h.running));
    reflector.set(perSecond(samples.resourceRate(r, 'events')),
      'events, ' + perSecond(samples.resourceRate(r, 'bytes'), bytes));
    fifo.set(count(r.queued), 'queued', r.queued > 1000 ? 'doubtful' : '');
    indexer.set(count(r.objects), 'at version ' + (r.version || 'none'), r.unreadable > 0 ? 'bad' : '');
    handlers.set(count(r.handlers.length), pending > 0 ? many(pending, 'event') + ' behind' : 'none behind',
      longest > 5e9 ? 'bad' : pending > 1000 ? 'doubtful' : '');
    this.spark.set(samples.history.get(this.key) ?? []);
    list(this.problems, r.problems ?? [], (p) => p, (p) => el('li', {}, p));
    this.root.classList.toggle('bad', (r.problems ?? []).length > 0);
  }
}

class ControllerCard {
  constructor(c) {
    this.key = 'controller ' + c.name;
    this.spark = sparkline();
    this.stages = ['Queue', 'Workers', 'Writes'].map(stage);
    this.from = el('p', {class: 'from'});
    this.problems = el('ul', {class: 'problems'});
    this.root = el('article', {class: 'card'},
      el('h3', {}, el('a', {href: address('queues', c.name)}, c.name), this.spark),
      el('div', {class: 'stages three'}, this.stages), this.from, this.problems);
    this.root.card = this;
  }

  update(c, samples) {
    const [queue, workers, writes] = this.stages;
    const longest = busy(c);
    const flows = samples.latest.flows.filter((f) => f.controller === c.name);
    queue.set(count(c.queued), 'ready, ' + count(c.delayed) + ' delayed', c.queued > 1000 ? 'doubtful' : '');
    workers.set(`${c.inFlight} of ${c.workers}`,
      longest >= slow ? 'busy, one for ' + duration(longest) :
        'busy, ' + perSecond(samples.controllerRate(c, 'reconciles')),
      longest >= stuck ? 'bad' : longest >= slow ? 'doubtful' : '');
    const written = flows.filter((f) => f.written > 0).map((f) => f.resource.split('.')[0]);
    writes.set(perSecond(samples.writeRate(c)), written.length ? 'to ' + written.join(', ') : 'none so far');
    say(this.from, 'Hears of ' + (flows.filter((f) => f.handled > 0).map((f) => f.resource).join(', ') || 'nothing yet'));
    this.spark.set(samples.history.get(this.key) ?? []);
    const problems = c.problem ? [c.problem] : [];
    if (c.failing > 0) {
      problems.push(`${count(c.failing)} ${c.failing === 1 ? 'key fails' : 'keys fail'}`);
    }
    list(this.problems, problems, (p) => p, (p) => el('li', {}, p));
    this.root.classList.toggle('bad', Boolean(c.problem) || longest >= stuck);
  }
}

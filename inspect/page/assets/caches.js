// The caches, and an object of one beside the server's.

import {address, bytes, clock, count, el, get, list, many, nameOf, objectAddress, perSecond, query, say, show} from './dom.js';
import {parse} from './search.js';

/** CachesView shows all caches, or one object in them. */
export class CachesView {
  constructor([resource, namespace, name]) {
    this.asked = new AbortController();
    this.title = name ? `${resource} ${nameOf({namespace, name})}` : 'Caches';
    this.problem = el('p', {class: 'problem', role: 'alert', hidden: true});
    if (name) {
      this.compared = {resource, namespace, name};
      this.result = el('div', {});
      this.root = el('div', {class: 'compare'},
        el('p', {class: 'head'}, el('a', {href: '#/caches'}, 'All caches'),
          el('a', {href: objectAddress(this.compared)}, 'Its timeline'),
          el('button', {type: 'button', click: () => this.compare()}, 'Read both again')),
        this.problem, this.result);
      this.compare();
      return;
    }
    this.rows = el('tbody', {});
    this.which = el('input', {
      type: 'text', id: 'which', spellcheck: 'false', autocomplete: 'off', value: resource ? resource + ' ' : null,
      placeholder: 'kind and namespace/name',
    });
    this.columns = ['Resource', 'Objects', 'Version', 'Read', 'Events', 'Lists', 'Unreadable', 'Last heard of'];
    this.root = el('div', {class: 'caches'},
      el('form', {class: 'ask', submit: (event) => this.ask(event)},
        el('label', {for: 'which'}, 'Compare an object with the server'), this.which,
        el('button', {}, 'Compare')),
      this.problem,
      el('table', {}, el('thead', {}, el('tr', {}, this.columns.map((c) => el('th', {scope: 'col'}, c)))), this.rows));
  }

  close() {
    this.asked.abort();
  }

  update(samples) {
    if (!this.rows) {
      return;
    }
    list(this.rows, samples.latest.resources, (r) => r.name, (r) => this.row(r), (row, r) => {
      const values = [
        r.name, count(r.objects), r.version || 'none', bytes(r.bytes) + ', ' +
        perSecond(samples.resourceRate(r, 'bytes'), bytes), count(r.events) + ', ' +
        perSecond(samples.resourceRate(r, 'events')), count(r.lists), count(r.unreadable),
        r.lastEvent.startsWith('0001') ? 'never' : clock(r.lastEvent).slice(0, 8),
      ];
      values.forEach((v, n) => say(row.values[n], v));
      list(row.problems, r.problems ?? [], (p) => p, (p) => el('li', {}, p));
      row.classList.toggle('bad', (r.problems ?? []).length > 0 || r.unreadable > 0);
    });
  }

  row(r) {
    const row = el('tr', {});
    row.values = this.columns.map(() => el('span', {}));
    row.problems = el('ul', {class: 'problems'});
    row.append(...row.values.map((value, n) => el(n === 0 ? 'th' : 'td',
      {'data-column': this.columns[n], scope: n === 0 ? 'row' : null}, value, n === 0 ? row.problems : null)));
    return row;
  }

  ask(event) {
    event.preventDefault();
    const object = parse(this.which.value);
    if (!object) {
      this.fail('Write a kind and a name, such as: deployment default/web');
      return;
    }
    location.hash = objectAddress(object, 'caches');
  }

  fail(text) {
    say(this.problem, text);
    show(this.problem, true);
  }

  async compare() {
    try {
      const c = await get('compare?' + query(this.compared), this.asked.signal);
      show(this.problem, false);
      this.result.replaceChildren(...c.caches.map(comparison));
    } catch (err) {
      if (err.name !== 'AbortError') {
        this.fail(err.message);
      }
    }
  }
}

/** comparison returns one cache beside the server. */
function comparison(c) {
  const version = (v) => (v ? 'version ' + v : 'not there');
  const rows = c.rows.map((r) => el('div', {class: r.same ? 'row same' : 'row'},
    el('code', {class: 'cached' + (r.same ? '' : ' changed') + (r.cached === undefined ? ' none' : '')}, r.cached ?? ''),
    el('code', {class: 'live' + (r.same ? '' : ' changed') + (r.same || r.live !== undefined ? '' : ' none')},
      (r.same ? r.cached : r.live) ?? '')));
  return el('section', {},
    c.cache ? el('h2', {}, 'Cache of ' + c.cache) : null,
    el('p', {class: c.different || c.problem ? 'verdict differs' : 'verdict'}, verdict(c)),
    c.cut ? el('p', {class: 'note'}, 'The object is too large to be shown whole.') : null,
    el('div', {class: 'yaml'},
      el('div', {class: 'row heads'}, el('strong', {}, 'Cache', el('small', {}, version(c.cachedVersion))),
        el('strong', {}, 'Server', el('small', {}, version(c.liveVersion)))),
      rows));
}

/** verdict says how the two states compare. */
function verdict(c) {
  if (c.problem) {
    return 'The server does not show the object: ' + c.problem;
  }
  if (!c.cachedVersion && !c.liveVersion) {
    return 'Neither the cache nor the server has the object.';
  }
  if (!c.cachedVersion) {
    return 'The server has the object, the cache does not.';
  }
  if (!c.liveVersion) {
    return 'The cache has the object, the server does not.';
  }
  if (c.different) {
    return many(c.different, 'line') + ' differ' + (c.different === 1 ? 's' : '') +
      ': a change that is on its way, or fields that the cache leaves out.';
  }
  return 'The cache and the server agree.';
}

// Elements are built here and nowhere else. What comes from objects is text: it never becomes markup.

import {chapters, request} from './server.js';

/** el returns an element. Attributes that are functions are listeners; children are nodes, texts or null. */
export function el(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** svg returns an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      node.addEventListener(name, value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) {
      node.append(child instanceof Node ? child : plain(child));
    }
  }
  return node;
}

const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** plain returns a text in which characters that are invisible, or that turn the direction of text, are spelt out. */
export function plain(value) {
  return String(value).replace(invisible, (c) => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'));
}

/** say sets the text of a node, if it is another. */
export function say(node, value) {
  const text = plain(value);
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** show shows or hides a node. */
export function show(node, visible) {
  if (node.hidden === visible) {
    node.hidden = !visible;
  }
}

/**
 * list makes the children of a node those of items, in their order. An item whose key was there before keeps its node,
 * and so its focus. make(item) returns a node; update(node, item) is called for each.
 */
export function list(parent, items, key, make, update = () => {}) {
  if (!parent.keyed) {
    parent.replaceChildren();
  }
  const old = parent.keyed ?? new Map();
  const now = new Map();
  let next = parent.firstChild;
  for (const item of items) {
    const k = key(item);
    if (now.has(k)) {
      continue;
    }
    const node = old.get(k) ?? make(item);
    now.set(k, node);
    old.delete(k);
    update(node, item);
    if (node === next) {
      next = next.nextSibling;
    } else {
      parent.insertBefore(node, next);
    }
  }
  for (const node of old.values()) {
    node.remove();
  }
  parent.keyed = now;
}

/** seconds returns a duration of Go, in nanoseconds, as a short text. */
export function duration(nanoseconds) {
  const s = (nanoseconds ?? 0) / 1e9;
  if (s < 0.001) {
    return Math.round(s * 1e6) + ' µs';
  }
  if (s < 1) {
    return Math.round(s * 1e3) + ' ms';
  }
  if (s < 10) {
    return s.toFixed(1) + ' s';
  }
  if (s < 60) {
    return Math.floor(s) + ' s';
  }
  if (s < 3600) {
    return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  }
  return Math.floor(s / 3600) + ' h ' + Math.floor((s % 3600) / 60) + ' min';
}

/** count returns a number as people write it. */
export function count(n) {
  return (n ?? 0).toLocaleString('en-US');
}

/** many returns a number and the noun, in the plural if need be. */
export function many(n, one, more = one + 's') {
  return count(n) + ' ' + (n === 1 ? one : more);
}

/** bytes returns a size. */
export function bytes(n) {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (n >= size) {
      return (n / size).toFixed(n >= 10 * size ? 0 : 1) + ' ' + unit;
    }
  }
  return Math.round(n) + ' B';
}

/** perSecond returns a rate; null means that it is not known yet. */
export function perSecond(rate, format = (n) => (n > 0 && n < 10 ? n.toFixed(1) : count(Math.round(n)))) {
  return rate === null ? '–' : format(rate) + '/s';
}

/** clock returns the time of day of an RFC 3339 time, with milliseconds. */
export function clock(time) {
  const t = new Date(time);
  const two = (n) => String(n).padStart(2, '0');
  return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}.` +
    String(t.getMilliseconds()).padStart(3, '0');
}

/** address returns the part of an address after # of a view and its parameters. */
export function address(...parts) {
  return '#/' + parts.map((part) => encodeURIComponent(part ?? '')).join('/');
}

/** nameOf returns "namespace/name" of an object, or its name alone. */
export function nameOf(object) {
  return object.namespace ? object.namespace + '/' + object.name : object.name;
}

/** objectAddress returns the address of an object's view. */
export function objectAddress(object, view = 'object') {
  return address(view, object.resource, object.namespace, object.name);
}

/** chapter returns a link to a chapter, by the name of its page. The process may have the book, the repository has it. */
export function chapter(name, book) {
  return el('a', {
    href: book ? `${chapters}${name}.html` : `https://github.com/flyball-dev/flyball/blob/main/docs/book/${name}.md`,
    target: '_blank', rel: 'noopener',
  }, 'chapter ' + parseInt(name, 10));
}

/** query returns the parameters of a request about an object. */
export function query(object) {
  const q = new URLSearchParams({resource: object.resource, name: object.name});
  if (object.namespace) {
    q.set('namespace', object.namespace);
  }
  return q.toString();
}

/** get asks the process. Its errors are those of the process, in words. */
export async function get(path, signal, method = 'GET') {
  const answer = await request(path, {signal, method});
  if (!answer.ok) {
    throw new Error((await answer.text()).trim() || answer.statusText);
  }
  return answer.json();
}

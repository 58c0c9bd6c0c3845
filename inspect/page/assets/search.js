// The search box: a kind and a name, with the objects that have steps as suggestions.

import {el, get, nameOf, objectAddress, show} from './dom.js';

/** Search is the form in the head of the page. */
export class Search {
  found = []; // the objects that are suggested
  at = -1; // the index of the chosen one

  constructor(form) {
    this.input = form.querySelector('input');
    this.box = form.querySelector('ul');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.go();
    });
    this.input.addEventListener('input', () => this.suggest());
    this.input.addEventListener('focus', () => this.suggest());
    this.input.addEventListener('blur', () => this.close());
    this.input.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('keydown', (event) => {
      const writes = event.target.closest?.('input, textarea, select');
      if (event.key === '/' && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        this.input.focus();
        this.input.select();
      }
    });
  }

  async suggest() {
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    try {
      const found = await get('objects?find=' + encodeURIComponent(this.input.value.trim()), asked.signal);
      if (document.activeElement === this.input) {
        this.found = found.slice(0, 12);
        this.at = -1;
        this.draw();
      }
    } catch {
      // Another character has been typed, or the process is gone: the head of the page says so.
    }
  }

  draw() {
    this.box.replaceChildren(...this.found.map((object, n) => el('li', {
      role: 'option', id: 'found-' + n, 'aria-selected': String(n === this.at),
      mousedown: (event) => {
        event.preventDefault();
        this.open(object);
      },
    }, el('span', {class: 'kind'}, object.resource), ' ', el('bdi', {}, nameOf(object)))));
    show(this.box, this.found.length > 0);
    this.input.setAttribute('aria-expanded', String(this.found.length > 0));
    if (this.at >= 0) {
      this.input.setAttribute('aria-activedescendant', 'found-' + this.at);
    } else {
      this.input.removeAttribute('aria-activedescendant');
    }
  }

  key(event) {
    const n = this.found.length;
    if (event.key === 'ArrowDown' && n > 0) {
      this.at = (this.at + 1) % n;
    } else if (event.key === 'ArrowUp' && n > 0) {
      this.at = (this.at - 1 + n) % n;
    } else if (event.key === 'Escape') {
      this.close();
      return;
    } else {
      return;
    }
    event.preventDefault();
    this.draw();
  }

  go() {
    const object = this.found[this.at] ?? parse(this.input.value) ?? this.found[0];
    if (object) {
      this.open(object);
    }
  }

  open(object) {
    this.input.value = object.resource + ' ' + nameOf(object);
    this.close();
    this.input.blur();
    location.hash = objectAddress(object);
  }

  close() {
    this.asked?.abort();
    this.found = [];
    this.at = -1;
    this.draw();
  }
}

/** parse returns the object that a text names as "kind name" or "kind namespace/name"; null if it does not. */
export function parse(text) {
  const words = text.trim().split(/\s+/);
  if (words.length === 3) {
    return {resource: words[0], namespace: words[1], name: words[2]};
  }
  if (words.length !== 2) {
    return null;
  }
  const cut = words[1].indexOf('/');
  return {
    resource: words[0], namespace: cut < 0 ? '' : words[1].slice(0, cut), name: words[1].slice(cut + 1),
  };
}

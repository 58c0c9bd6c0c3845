// The address, the connection and the views come together here.

import {el, query, say, show} from './dom.js';
import {Samples} from './state.js';
import {Stream} from './stream.js';
import {Search} from './search.js';
import {PipelineView} from './pipeline.js';
import {QueuesView} from './queues.js';
import {ObjectView} from './object.js';
import {CachesView} from './caches.js';
import {StoryPanel} from './story.js';
import {TapPanel} from './tap.js';

const views = {pipeline: PipelineView, queues: QueuesView, object: ObjectView, caches: CachesView};
const samples = new Samples();
const main = document.getElementById('main');
const lost = document.getElementById('lost');
const connection = document.getElementById('connection');
const story = new StoryPanel(document.getElementById('story'));
let view = null;
const tap = new TapPanel(document.getElementById('tap'), (waiting) => view?.held?.(waiting));
let answered = false; // whether the process has ever answered

const stream = new Stream({
  opened() {
    samples.forget();
    view?.restart?.();
  },
  pipeline(sample) {
    answered = true;
    samples.add(sample);
    story.update(sample);
    tap.offer(sample);
    view?.update?.(samples);
  },
  steps(changes) {
    view?.steps?.(changes);
  },
  why(lines) {
    view?.why?.(lines);
  },
  status(words, wait, reason) {
    connection.className = words;
    say(connection.lastElementChild, {live: 'Live', lost: 'Not connected', paused: 'Paused'}[words]);
    document.body.classList.toggle('stale', words === 'lost');
    if (reason) {
      say(lost, `The process refuses the connection: ${reason}. Trying again.`);
    } else if (wait) {
      say(lost, answered ?
        'The connection is lost: the process may have stopped. What you see is from before. Trying again.' :
        'The process does not answer. Trying again.');
    }
    show(lost, words === 'lost');
  },
});

/** route draws the view that the address names. */
function route() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const name = parts[0] in views ? parts[0] : 'pipeline';
  view?.close?.();
  view = new views[name](parts.slice(1));
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === name) {
      link.setAttribute('aria-current', 'page');
    } else {
      link.removeAttribute('aria-current');
    }
  }
  document.title = view.title + ' – Flyball';
  main.replaceChildren(el('h1', {}, view.title), view.root);
  if (samples.latest) {
    view.update?.(samples);
    view.held?.(tap.waiting);
  }
  stream.watch(view.object ? query(view.object) : '');
}

addEventListener('hashchange', () => {
  route();
  scrollTo(0, 0);
  main.focus({preventScroll: true});
});
new Search(document.getElementById('search'));
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
route();

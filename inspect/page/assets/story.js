// The story that the demo plays: where it is, and what it took in the end.

import {chapter, el, list, many, say, show} from './dom.js';

/** StoryPanel is the panel above all others. It is hidden if the process plays nothing. */
export class StoryPanel {
  constructor(root) {
    this.root = root;
    this.steps = el('ol', {});
    this.title = el('strong', {});
    this.text = el('span', {});
    this.missing = el('span', {class: 'words'});
    this.link = el('span', {});
    this.sum = el('p', {});
    this.next = el('p', {}, 'Read on in ', this.explained = el('span', {}), '. Then build the parts ' +
      'yourself: ', el('code', {}, 'make learn'), ' gives you the first task. The page stays, with ',
      el('a', {href: '#/object/deployments.apps/default/web'}, 'all that happened to the Deployment'), '.');
    root.replaceChildren(this.steps,
      this.now = el('p', {class: 'line', role: 'status'}, this.title, this.text, this.missing, this.link),
      this.end = el('div', {class: 'end', hidden: true}, el('h2', {}, 'The end'), this.sum, this.next));
  }

  update({story, book, flows}) {
    show(this.root, Boolean(story));
    if (!story) {
      return;
    }
    const step = story.steps[story.at];
    list(this.steps, story.steps.map((s, n) => ({...s, n})), (s) => s.name, (s) => el('li', {title: s.title}, s.name),
      (item, s) => {
        item.className = s.n < story.at ? 'done' : '';
        item.ariaCurrent = s.n === story.at ? 'step' : null;
      });
    show(this.now, Boolean(step));
    show(this.end, !step);
    const chapters = step ? [step.chapter] : [...new Set(story.steps.map((s) => s.chapter))].sort();
    list(step ? this.link : this.explained, chapters, (c) => c, (c) => el('span', {},
      c === chapters[0] ? '' : ', ', chapter(c, book)));
    if (step) {
      say(this.title, `${story.at + 1} of ${story.steps.length}: ${step.title}`);
      say(this.text, story.text);
      say(this.missing, story.missing ? 'Expected: ' + story.missing : '');
      return;
    }
    say(this.sum, `${many(story.steps.length, 'step')}: ${story.sum}, and ` +
      `${many(flows.reduce((sum, f) => sum + f.written, 0), 'write')} of the process that the page shows.`);
  }
}

// The service worker: it keeps the files of the page, so that the playground works without a network after the first
// visit. The page keeps the program itself.

const version = 'flyball-page-VERSION'; // The build puts in what identifies the files.
const files = ['FILES']; // and their names

addEventListener('install', (event) => event.waitUntil((async () => {
  await (await caches.open(version)).addAll(files);
  await skipWaiting();
})()));

addEventListener('activate', (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) {
    if (name.startsWith('flyball-page-') && name !== version) {
      await caches.delete(name);
    }
  }
  await clients.claim();
})()));

addEventListener('fetch', (event) => event.respondWith((async () => {
  // The page is kept as the folder: a server may lead from index.html to that, and what was led elsewhere is no page.
  const asked = event.request.mode === 'navigate' ? './' : event.request;
  const kept = await (await caches.open(version)).match(asked, {ignoreSearch: true});
  return kept ?? fetch(event.request);
})()));

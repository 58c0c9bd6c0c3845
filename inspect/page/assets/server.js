// The process that the page shows. No other module asks it: a page whose process is not on a server has another module
// in place of this one, as that of folder playground does.

/** request sends a request, as fetch does. The path is below api/. */
export function request(path, init) {
  return fetch('api/' + path, init);
}

/** chapters is where the process has the book, if it has it. */
export const chapters = 'book/docs/book/';

// A figure opens as large as the window, until Escape or a click.
"use strict";
const large = document.createElement("dialog");
document.body.append(large);
large.addEventListener("click", () => large.close());
document.addEventListener("click", (e) => {
  const link = e.target.closest("a:has(> img)");
  if (!link || link.href !== link.firstElementChild.src || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  large.replaceChildren(link.firstElementChild.cloneNode());
  large.showModal();
});

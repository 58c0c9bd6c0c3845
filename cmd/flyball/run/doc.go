// Package run implements the one-shot command. It applies files to an embedded API, runs controllers until there is
// nothing more to do, reports the state of the objects, and ends.
//
//	files ─server-side apply─▶ embedded API ◀─▶ controllers, fake kubelet ─idle─▶ table and summary
//	                              │
//	                            store: memory, or a directory that the next run goes on with
package run

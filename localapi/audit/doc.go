// Package audit records the requests that an embedded API server answered, for tests to ask questions about: which
// writes did this controller send, how many lists, did anybody get a conflict.
package audit

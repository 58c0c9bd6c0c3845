// Package audit records the requests that an embedded API server answered. Tests ask it questions such as: which writes
// did this controller send, how many lists, did any client get a conflict?
package audit

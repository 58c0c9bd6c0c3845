// Package storyteller runs the stories of the operators' commands. A story changes something, waits for the operator's
// reaction, shows and counts it, and at the end checks that the operator is idle. If it does not go as told, it ends
// with an error.
package storyteller

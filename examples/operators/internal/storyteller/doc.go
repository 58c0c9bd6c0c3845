// Package storyteller runs the demos of the operators' commands, called stories. A story changes something, waits for
// the operator's reaction, prints and counts it, and at the end checks that the operator is idle. If a step does not
// happen, the story ends with an error.
package storyteller

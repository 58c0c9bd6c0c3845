// Package storyteller tells the stories that the operators' commands have: somebody does things, what the operator sees to is awaited,
// shown and counted, and at the end it is idle. A story that is not true ends with an error.
package storyteller

// Command projects is an operator: every Project gets an API server of its own, and when it is deleted its contents are cleared away
// first. It works on all of those API servers at once, as they come and go. README.md is for people.
//
//	projects            the operator, for the cluster that --kubeconfig leads to
//	projects story      a story, on API servers inside the process
package main

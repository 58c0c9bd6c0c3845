// Command projects is an operator. It gives every Project an API server of its own, and deletes the content of that
// server before the Project goes. It works on all of those API servers at once, as they come and go. README.md
// describes its use.
//
//	projects            the operator, for the cluster that --kubeconfig leads to
//	projects story      a story, on API servers inside the process
package main

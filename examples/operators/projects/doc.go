// Command projects is an operator that gives every Project an API server of its own. It works on all of these API
// servers at once, as they come and go, and empties each one before its Project is removed. README.md describes its
// use.
package main

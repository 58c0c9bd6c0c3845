// Package handler has the types of event handlers: what a program gives to informer.Informer's AddHandler, and what it
// gets back. Package informer has second names for those that users meet first, such as informer.Handler.
//
// Read handler.go, then registration.go.
package handler

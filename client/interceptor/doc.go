// Package interceptor puts something between a [client.Client] and its user: a function that sees every call, or the
// option that makes every write a dry run.
//
// Reading order: interceptor.go, then dryrun.go.
package interceptor

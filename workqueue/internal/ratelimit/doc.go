// Package ratelimit holds the rate limiters of a queue: how long a key that failed waits before it is retried. Package
// workqueue describes them and their options, and fills in the defaults.
//
// Reading order: failures.go counts the failures of each key; exponential.go, fastslow.go and bucket.go each decide a
// wait; combine.go makes one limiter of others.
package ratelimit

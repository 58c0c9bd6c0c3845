// Package discovery tells clients what the server serves: groups, versions, resources, OpenAPI documents, and the
// server's version and health.
package discovery

// Package discovery tells clients what the server serves: groups, versions, resources, OpenAPI documents, the server's
// version and health.
package discovery

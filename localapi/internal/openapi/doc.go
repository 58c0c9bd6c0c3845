// Package openapi describes the served types as OpenAPI v3 documents, one per group version, made from the Go types
// by reflection: their JSON tags, their patch tags and their SwaggerDoc methods. kubectl reads them to validate, to
// compute patches for apply, and to explain.
package openapi

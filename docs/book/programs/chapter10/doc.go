// Package chapter10 has the programs of the chapter about Endpoints and EndpointSlice: two controllers of Endpoints
// that are wrong, beside the real one, and what the real ones do in small clusters.
package chapter10

// Package serving determines what is behind a Service: which Services select a pod, which changes of a pod concern
// them, at which port the pod serves, and since when a change waits to be published. The controllers of Endpoints and
// of EndpointSlices publish the same facts in two formats, and share these definitions so that they agree.
package serving

// Package multicluster measures a fleet of clusters beside multicluster-runtime, and runs multicluster-runtime's own
// tests of its providers on interop/controllerruntime.
package multicluster

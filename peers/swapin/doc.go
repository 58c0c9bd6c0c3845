// Package swapin tests, on the real API server, the parts of Flyball that operators on controller-runtime can use.
package swapin

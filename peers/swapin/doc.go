// Package swapin tests the parts that operators on controller-runtime may take from Flyball on the real API server.
package swapin

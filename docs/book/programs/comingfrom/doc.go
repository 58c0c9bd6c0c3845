// Package comingfrom has the controller of docs/book/c-coming-from.md twice: as one writes it with client-go, and with
// Flyball.
package comingfrom

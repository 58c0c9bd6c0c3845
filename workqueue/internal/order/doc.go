// Package order decides which ready key of a queue is handed out next. It holds data structures: a queue uses them
// with its lock held, so nothing here may call what a user wrote, wait, or call the queue.
//
// order.go has the interfaces, priority.go and fair.go the orders.
package order

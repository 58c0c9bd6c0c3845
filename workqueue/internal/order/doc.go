// Package order decides which ready key of a queue is handed out next. A queue uses these data structures with its lock
// held, so nothing here may block, call a user's code or call the queue.
//
// order.go has the interfaces, priority.go and fair.go the orders.
package order

// Package metrics shows queues to prometheus, under the names the field has agreed on:
//
//	workqueue.Queue ──durations──▶ Provider ◀──scrape── prometheus
//	                ◀───Stats────┘
//
// Durations are pushed when they are known. Everything else is read from the queues when somebody scrapes: a stuck
// worker shows in workqueue_unfinished_work_seconds while it is stuck, and an unwatched queue pays nothing.
package metrics

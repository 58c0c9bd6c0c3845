// Package metrics shows what a manager does to Prometheus, under the names that client-go's queues and controller-runtime's
// controllers have made known.
//
// A [Registry] belongs to one manager: there is no global one, so that two managers of one process do not get into each other's
// way. Counters and gauges are read when they are scraped, from the counters that queues, informers and controllers keep
// anyway; only the two durations of a queue are histograms that are written as work goes on.
//
//	workqueue_*           name        depth, adds, retries, durations, unfinished work
//	informer_*            resource    objects in the cache, events, lists, watches, errors
//	controller_runtime_*  controller  reconciles by result, errors, panics, workers at work
//	leader_election_*     name        1 while this process leads
//	client_*              outcome     cached reads that waited for own writes, and own writes that caches do not show yet
//	events_*              result      what became of recorded events
package metrics
